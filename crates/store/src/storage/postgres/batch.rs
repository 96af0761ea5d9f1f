//! A batch on PostgreSQL: one call of a procedure that locks the clock, reads the keys, judges, writes everything and
//! commits. What it is told and what it answers is described in `migrations/postgres/0013_counting.sql`.

use std::time::Duration;

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgConnection, PgDatabaseError, PgRow, PgSeverity};
use sqlx::query::Query;

use super::error::{corrupt, unavailable};
use super::history;
use super::listener::Channel;
use super::needs::{NONE, Needs, Ranges, expected, number, version};
use super::registration;
use super::rows::Rows;
use super::ticket::Ticket;
use crate::codec::at_rest::ValueFormat;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::storage::history::Told;
use crate::storage::{AuditRow, Change, ChangeKind, Commit, Error, Expect, Mutation, Outcome, Terms, Units};

/// A batch on its way.
pub struct Call<'a> {
    pub mutations: Vec<&'a Mutation>,
    /// Whether each mutation and the next one are of one unit; `None` if all are apart.
    pub joins: Option<Vec<bool>>,
    pub rows: &'a Rows<'a>,
    /// The ranges that must not have changed, or that are assumed not to have.
    pub ranges: Option<Ranges<'a>>,
    pub terms: Terms<'a>,
    pub format: ValueFormat,
    /// How the batch was judged, if that was not left to the database.
    pub assumed: Option<Assumed<'a>>,
    /// The writers of the mutations.
    pub told: Told,
}

/// The state of the rows by which a batch was judged before it was sent. It is committed only if they are so.
pub struct Assumed<'a> {
    /// The live version of each row.
    pub live: &'a [Option<Revision>],
    /// Whether the fence's registration is gone.
    pub lost: bool,
    /// The clock's `compacted`, if the verdict depends on it.
    pub compacted: Option<Revision>,
    /// The places of the counted rows.
    pub counted: &'a [i32],
}

/// The database's reply.
pub struct Reply {
    pub base: Revision,
    /// The position in the write-ahead log up to which the disk had everything; all earlier commits lie before it.
    pub flushed: u64,
    /// How long the call waited for the clock's lock.
    pub waited: Duration,
    /// An error says that nothing was written.
    pub answer: Result<Answer, Error>,
}

pub enum Answer {
    Done(Recorded),
    /// Nothing was written, since values must be in this format.
    Format(ValueFormat),
    /// Nothing was written, since the rows are not as they were assumed to be.
    Stale(Standing),
}

/// The result of a batch, as the database records it.
pub struct Recorded {
    pub base: Revision,
    /// `None` if everything has passed.
    pub outcomes: Option<Vec<i32>>,
    pub standing: Option<Vec<i64>>,
}

/// The rows of a batch that are not as they were assumed to be.
pub struct Standing {
    pub live: Vec<Option<Revision>>,
    pub lost: bool,
    pub compacted: Revision,
    /// The values of the counted rows.
    pub counts: Vec<Option<Bytes>>,
    /// Whether each of the ranges has changed.
    pub moved: Vec<bool>,
}

/// Why there is no reply.
pub enum Failure {
    /// Nothing was written.
    Refused(Error),
    /// It is not known whether the batch was committed.
    Open(Error),
}

/// Commits a batch.
pub async fn commit(
    connection: &mut PgConnection,
    ticket: &Ticket<'_>,
    channel: &Channel,
    call: &Call<'_>,
) -> Result<Reply, Failure> {
    let Call { mutations, joins, rows, ranges, terms, format, assumed, told } = call;
    let values: Vec<Bytes> = mutations.iter().map(|mutation| value(mutation, *format)).collect();
    let stored = |pick: fn(&Change) -> &str| {
        mutations.iter().map(|mutation| pick(mutation.change.settled())).collect::<Vec<_>>()
    };
    let fence = terms.fence;
    let exempt = fence.map(|fence| match strikes(Bug::FenceIgnored) {
        true => rows.keys.iter().map(|key| key.resource.0).collect::<Vec<_>>(),
        false => fence.exempt.iter().map(|id| id.0).collect(),
    });
    let needs = Needs::of(mutations, rows);
    let joins = joins.as_deref().filter(|_| !strikes(Bug::HalfAGroup));
    let decided =
        mutations.iter().any(|mutation| mutation.decided_at.is_some()) && !strikes(Bug::FailoverForgotten);
    let decided = decided.then(|| mutations.iter().map(|mutation| decision(mutation)).collect::<Vec<_>>());
    let live = assumed.as_ref().map(|assumed| assumed.live.iter().copied().map(number).collect::<Vec<_>>());
    let audits: Vec<(i32, &AuditRow)> = (1..)
        .zip(mutations)
        .filter_map(|(place, mutation)| Some((place, mutation.audit.as_deref()?)))
        .collect();
    let audited = !audits.is_empty();
    let texts = |pick: fn(&AuditRow) -> &str| {
        audited.then(|| audits.iter().map(|(_, row)| pick(row)).collect::<Vec<_>>())
    };
    let query = sqlx::query(include_str!("../sql/postgres/commit_batch.sql"))
        .bind(ticket.writer())
        .bind(ticket.place)
        .bind(ticket.number)
        .bind(channel.announced())
        .bind(terms.floor.0 as i64)
        .bind(fence.map(|fence| &*fence.server))
        .bind(fence.map(|fence| &*fence.incarnation))
        .bind(exempt.unwrap_or_default())
        .bind(format.number())
        .bind(ValueFormat::NEWEST.number())
        .bind(rows.keys.iter().map(|key| key.resource.0).collect::<Vec<_>>())
        .bind(rows.keys.iter().map(|key| &*key.namespace).collect::<Vec<_>>())
        .bind(rows.keys.iter().map(|key| &*key.name).collect::<Vec<_>>())
        .bind(rows.same.as_deref())
        .bind(mutations.iter().map(|mutation| expected(mutation.expect)).collect::<Vec<_>>())
        .bind(mutations.iter().map(|mutation| kind(mutation).code()).collect::<Vec<_>>())
        .bind(stored(uid))
        .bind(stored(stored_version))
        .bind(values.iter().map(|value| &value[..]).collect::<Vec<_>>())
        .bind(joins)
        .bind(needs.as_ref().map(|needs| &needs.ends[..]))
        .bind(needs.as_ref().map(|needs| &needs.places[..]))
        .bind(needs.as_ref().map(|needs| &needs.expects[..]))
        .bind(decided)
        .bind(live)
        .bind(assumed.as_ref().map(|assumed| assumed.lost))
        .bind(assumed.as_ref().and_then(|assumed| assumed.compacted).map(|at| at.0 as i64))
        .bind(assumed.as_ref().map(|assumed| assumed.counted))
        .bind(audited.then(|| audits.iter().map(|(place, _)| *place).collect::<Vec<_>>()))
        .bind(audited.then(|| audits.iter().map(|(_, row)| row.at).collect::<Vec<_>>()))
        .bind(texts(|row| &row.user))
        .bind(texts(|row| &row.verb))
        .bind(texts(|row| &row.object))
        .bind(audited.then(|| audits.iter().map(|(_, row)| &row.event[..]).collect::<Vec<_>>()))
        .bind(terms.registry.map(|change| registration::told(change).to_string()))
        .bind(told.ids.iter().any(Option::is_some).then_some(&told.ids[..]))
        .bind(history::new_authors(told));
    // The last row is answered when the connection is ready again.
    let answered = bind_counting(query, mutations, ranges.as_ref())
        .fetch_all(connection)
        .await
        .map_err(Failure::of)?
        .pop();
    let row =
        answered.ok_or_else(|| Failure::Open(Error::Corrupt("the procedure has answered nothing".into())))?;
    Reply::read(&row, terms.floor).map_err(|error| Failure::Open(corrupt(error)))
}

type BatchQuery<'q> = Query<'q, sqlx::Postgres, PgArguments>;

/// Binds how changes count, which values are stamped, and the ranges that must not have changed.
fn bind_counting<'q>(
    query: BatchQuery<'q>,
    mutations: &[&Mutation],
    ranges: Option<&'q Ranges<'_>>,
) -> BatchQuery<'q> {
    let uncounted: Vec<_> = mutations.iter().map(|mutation| mutation.counting.code()).collect();
    let stamped: Vec<bool> = mutations.iter().map(|mutation| is_stamped(mutation)).collect();
    query
        .bind(uncounted.iter().any(Option::is_some).then_some(uncounted))
        .bind(stamped.contains(&true).then_some(stamped))
        .bind(ranges.map(|ranges| &ranges.ends[..]))
        .bind(ranges.map(|ranges| &ranges.resources[..]))
        .bind(ranges.map(|ranges| &ranges.starts[..]))
        .bind(ranges.map(|ranges| &ranges.stops[..]))
        .bind(ranges.map(|ranges| &ranges.since[..]))
}

/// The joins of the operations at these places; `None` if all are units of their own.
pub fn joins(units: &Units, places: impl Iterator<Item = usize> + Clone) -> Option<Vec<bool>> {
    let joins = places.map(|place| units.is_joined(place));
    joins.clone().any(|joined| joined).then(|| joins.collect())
}

impl Reply {
    fn read(row: &PgRow, floor: Revision) -> Result<Self, sqlx::Error> {
        let waited: Option<i64> = row.try_get("waited")?;
        let base = Revision(row.try_get::<i64, _>("base")? as u64);
        let answer = match row.try_get::<&str, _>("verdict")? {
            "done" => Ok(Answer::Done(Recorded {
                base,
                outcomes: row.try_get("outcomes")?,
                standing: row.try_get("standing")?,
            })),
            "regressed" => Err(Error::Regressed { floor, found: base }),
            "fenced" => Err(Error::Fenced),
            "format" => Ok(Answer::Format(ValueFormat::up_to(row.try_get("format")?))),
            "stale" => {
                let live: Vec<i64> = row.try_get("live")?;
                let counts: Vec<Option<Vec<u8>>> = row.try_get("counts")?;
                let moved: Option<Vec<bool>> = row.try_get("moved")?;
                Ok(Answer::Stale(Standing {
                    live: live.into_iter().map(version).collect(),
                    lost: row.try_get("lost")?,
                    compacted: Revision(row.try_get::<i64, _>("compacted")? as u64),
                    counts: counts.into_iter().map(|value| value.map(Bytes::from)).collect(),
                    moved: moved.unwrap_or_default(),
                }))
            }
            other => return Err(sqlx::Error::Decode(format!("a verdict {other:?}").into())),
        };
        Ok(Self {
            base,
            flushed: row.try_get::<i64, _>("flushed")? as u64,
            waited: Duration::from_micros(waited.unwrap_or_default().max(0) as u64),
            answer,
        })
    }
}

impl Recorded {
    /// The outcomes of the mutations that were sent.
    pub fn commit(&self, mutations: &[Mutation]) -> Result<Commit, Error> {
        let mut last = self.base;
        let outcome = |(index, mutation): (usize, &Mutation)| {
            let code = self.outcomes.as_ref().map_or(Some(0), |codes| codes.get(index).copied())?;
            let standing = self.standing.as_ref().and_then(|standing| standing.get(index).copied());
            let found = version(standing.unwrap_or(NONE));
            Some(match code {
                0 => {
                    last = Revision(last.0 + 1);
                    Outcome::Committed(last)
                }
                -1 => Outcome::Conflict { found },
                -2 => Outcome::Apart,
                -3 => Outcome::Fenced,
                -4 => Outcome::Outdated,
                -5 => Outcome::RangeChanged,
                number => {
                    let number = usize::try_from(number).ok()? - 1;
                    let requirement = match mutation.shares {
                        Some(_) if number == 0 => mutation.requires.len(),
                        Some(_) => number - 1,
                        None => number,
                    };
                    Outcome::Unmet { requirement, found }
                }
            })
        };
        let outcomes: Option<_> = mutations.iter().enumerate().map(outcome).collect();
        let outcomes = outcomes.ok_or_else(|| Error::Corrupt("a batch has other outcomes".into()))?;
        Ok(Commit { base: self.base, outcomes })
    }
}

impl Failure {
    /// An error that the database reports before it commits says that nothing was written. All others may hide a commit:
    /// even a statement that was cancelled may have been, just after it.
    fn of(error: sqlx::Error) -> Self {
        /// Classes of SQLSTATE: constraints, conflicts with other transactions, locks, syntax or rights, and what the
        /// procedure raises; of those about resources, disks. (Memory may be short after the commit.)
        const BEFORE_COMMIT: [&str; 6] = ["23", "40", "55", "42", "53100", "P0"];
        let told = error.as_database_error().and_then(|told| told.try_downcast_ref::<PgDatabaseError>());
        let refused = told.is_some_and(|told| {
            told.severity() == PgSeverity::Error
                && BEFORE_COMMIT.iter().any(|class| told.code().starts_with(class))
        });
        match refused {
            true => Self::Refused(unavailable(error)),
            false => Self::Open(unavailable(error)),
        }
    }
}

/// The revision at which a mutation was decided.
fn decision(mutation: &Mutation) -> Option<i64> {
    mutation.decided_at.map(|decided_at| i64::try_from(decided_at.0).unwrap_or(i64::MAX))
}

/// The effect of a mutation that passes.
fn kind(mutation: &Mutation) -> ChangeKind {
    match (mutation.change.settled(), mutation.expect) {
        (Change::Put { .. }, Expect::Absent) => ChangeKind::Added,
        (Change::Put { .. }, Expect::At(_)) => ChangeKind::Modified,
        (Change::Delete | Change::Count(_), _) => ChangeKind::Deleted,
    }
}

fn value(mutation: &Mutation, format: ValueFormat) -> Bytes {
    match mutation.change.settled() {
        Change::Put { value, .. } => value.bytes_in(format),
        Change::Delete | Change::Count(_) => Bytes::new(),
    }
}

fn is_stamped(mutation: &Mutation) -> bool {
    matches!(mutation.change.settled(), Change::Put { value, .. } if value.is_stamped())
}

fn uid(change: &Change) -> &str {
    match change {
        Change::Put { uid, .. } => uid,
        Change::Delete | Change::Count(_) => "",
    }
}

fn stored_version(change: &Change) -> &str {
    match change {
        Change::Put { stored_version, .. } => stored_version,
        Change::Delete | Change::Count(_) => "",
    }
}
