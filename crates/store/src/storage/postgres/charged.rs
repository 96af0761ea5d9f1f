//! Batches with charges. What a charge makes of a counted row only this server can say (`storage/counting.rs`), and it
//! must not hold the clock's lock while it does. So it judges the batch by the state that it expects, and the batch is
//! committed if the rows are so in the database; otherwise the database tells how they are, and the batch is judged again.
//!
//! The batch's own revisions are not known while it is judged. So a mutation that expects a version which only this batch
//! gives, and which nobody can have seen, is a conflict here, and would pass where the clock is locked first.
//!
//! Servers that charge one row at once may have to try several times. Each time, another one has committed.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::Postgres;
use super::batch::{Answer, Assumed, Call, Standing, joins};
use super::flight::Flight;
use super::needs::Ranges;
use super::rows::Rows;
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;
use crate::storage::commit::{ranges, required_keys};
use crate::storage::counting::Counted;
use crate::storage::history::KnownAuthors;
use crate::storage::judge::{self, Found, Verdict, judge_under};
use crate::storage::{
    Change, Commit, Error, Expect, Key, Mutation, Outcome, Requirement, Terms, UnchangedRange, Units,
};

/// How long a batch is tried while others are faster.
const PATIENCE: Duration = Duration::from_secs(10);
/// Counted rows that are remembered.
const REMEMBERED: usize = 1024;
/// Stands for the clock while a batch is judged; later than all versions, so that what the batch writes can be told from
/// what it finds.
const BASE: Revision = Revision(1 << 62);
/// The assumed version of a counted row that is not remembered. No row has it.
const UNKNOWN: Revision = Revision((1 << 62) - 1);

/// The counted rows and the clock's `compacted` as this server has seen them last.
#[derive(Default)]
pub struct Remembered {
    counted: HashMap<Key, (Revision, Bytes)>,
    compacted: Revision,
}

impl Remembered {
    fn insert(&mut self, key: &Key, version: Revision, value: Bytes) {
        if self.counted.len() >= REMEMBERED {
            self.counted.clear();
        }
        self.counted.insert(key.clone(), (version, value));
    }
}

/// Whether the batch charges rows.
pub fn is_charged(batch: &[Mutation]) -> bool {
    batch.iter().any(|mutation| !mutation.charges.is_empty() || matches!(mutation.change, Change::Count(_)))
}

impl Postgres {
    /// Commits a batch with charges. One at a time: the next one has to know what this one makes of the counted rows.
    pub(super) async fn commit_charged(
        &self,
        units: &Units,
        terms: Terms<'_>,
        flight: &mut Flight<'_>,
    ) -> Result<Commit, Error> {
        let turn = self.remembered.lock().await;
        let mut belief = Belief::new(units, &turn);
        let mut turn = Some(turn);
        let mut format = self.format(terms);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let copies = with_counts_of_their_own(units);
            let judged = belief.judge(&copies, terms)?;
            let connection = self.pool.acquire().await?;
            let call = judged.call(format, &self.authors);
            let sent = self.send(connection, &call, || {
                turn = None;
                flight.lose();
            });
            let answer = sent.await?;
            // What a batch whose answer was lost finds out comes out of turn, and may be old.
            let mut old = Remembered::default();
            let remembered = turn.as_deref_mut().unwrap_or(&mut old);
            match answer {
                Answer::Done(recorded) => {
                    return Ok(judged.settle(units, recorded.base, format, remembered));
                }
                Answer::Stale(standing) => belief = judged.learn(standing, remembered),
                Answer::Format(needed) => format = self.note_format(needed),
            }
        }
        Err(Error::Unavailable("other servers were faster, again and again".into()))
    }
}

/// Judging a batch settles its counts, which can be done once.
fn with_counts_of_their_own(units: &Units) -> Units {
    units.map(|mutation| match mutation.change {
        Change::Count(_) => Mutation { change: Change::Count(Counted::default()), ..mutation.clone() },
        Change::Put { .. } | Change::Delete => mutation.clone(),
    })
}

/// The state that a batch expects to find.
struct Belief {
    live: HashMap<Key, Option<Revision>>,
    counted: HashMap<Revision, Bytes>,
    lost: bool,
    compacted: Revision,
    /// Whether each of the batch's ranges has changed; what has changed stays so.
    changed: Vec<bool>,
}

impl Belief {
    /// The counted rows are as they are remembered, and all others as the batch wants them to be.
    fn new(batch: &[Mutation], remembered: &Remembered) -> Self {
        let compacted = remembered.compacted;
        let changed = ranges(batch).map(|_| false).collect();
        let mut belief =
            Self { live: HashMap::new(), counted: HashMap::new(), lost: false, compacted, changed };
        for mutation in batch.iter().filter(|mutation| matches!(mutation.change, Change::Count(_))) {
            let version = match remembered.counted.get(&mutation.key) {
                Some((version, value)) => {
                    belief.counted.insert(*version, value.clone());
                    *version
                }
                None => UNKNOWN,
            };
            belief.live.insert(mutation.key.clone(), Some(version));
        }
        let own = batch.iter().map(|mutation| (&mutation.key, mutation.expect));
        let required =
            batch.iter().flat_map(|mutation| mutation.requires.iter().chain(mutation.shares.as_deref()));
        let required = required.map(|Requirement { key, expect }| (key, *expect));
        for (key, expect) in own.chain(required) {
            let version = match expect {
                Expect::Absent => None,
                Expect::At(version) => Some(version.min(UNKNOWN)),
            };
            belief.live.entry(key.clone()).or_insert(version);
        }
        belief
    }

    fn judge<'a>(&'a self, batch: &'a Units, terms: Terms<'a>) -> Result<Judged<'a>, Error> {
        let version = |key: &Key| self.live.get(key).copied().flatten();
        let keys = || batch.iter().map(|mutation| &mutation.key).chain(required_keys(batch));
        let live: Vec<_> = keys().map(version).collect();
        let Self { counted, compacted, lost, changed, .. } = self;
        // Revisions in etcd's terms are the database's.
        let found = Found { live: &live, counted, registered: !lost, compacted: *compacted, changed, lag: 0 };
        let (verdict, registry) = judge_under(batch, BASE, found, terms)?;
        let rows = Rows::new(verdict.writes.iter().map(|write| &batch[write.index].key), keys());
        let live = rows.keys.iter().map(|key| version(key)).collect();
        let counted = counted_keys(batch).map(|key| rows.place(key)).collect();
        let decided = batch.iter().any(|mutation| mutation.decided_at.is_some());
        Ok(Judged {
            batch,
            rows,
            live,
            counted,
            lost: *lost,
            compacted: decided.then_some(*compacted),
            changed,
            verdict,
            terms: Terms { registry, ..terms },
        })
    }
}

fn counted_keys(batch: &[Mutation]) -> impl Iterator<Item = &Key> {
    let counted = batch.iter().filter(|mutation| matches!(mutation.change, Change::Count(_)));
    counted.map(|mutation| &mutation.key)
}

/// A batch with its verdict, and the state by which it was judged.
struct Judged<'a> {
    batch: &'a Units,
    rows: Rows<'a>,
    live: Vec<Option<Revision>>,
    counted: Vec<i32>,
    lost: bool,
    compacted: Option<Revision>,
    changed: &'a [bool],
    verdict: Verdict,
    terms: Terms<'a>,
}

impl Judged<'_> {
    /// The call that commits what has passed.
    fn call(&self, format: ValueFormat, authors: &KnownAuthors) -> Call<'_> {
        let places = self.verdict.writes.iter().map(|write| write.index);
        let mutations: Vec<&Mutation> = places.clone().map(|place| &self.batch[place]).collect();
        Call {
            told: authors.tell(mutations.iter().map(|mutation| mutation.author.as_ref())),
            mutations,
            joins: joins(self.batch, places),
            rows: &self.rows,
            ranges: Ranges::unchanged(self.unchanged()),
            terms: self.terms,
            format,
            assumed: Some(Assumed {
                live: &self.live,
                lost: self.lost,
                compacted: self.compacted,
                counted: &self.counted,
            }),
        }
    }

    /// The batch is committed: settles the counts of its mutations.
    fn settle(
        self,
        mutations: &[Mutation],
        base: Revision,
        format: ValueFormat,
        remembered: &mut Remembered,
    ) -> Commit {
        for write in &self.verdict.writes {
            let (judged, asked) = (&self.batch[write.index], &mutations[write.index]);
            if let (Change::Count(judged), Change::Count(asked)) = (&judged.change, &asked.change) {
                asked.set(judged.get().clone());
                if let Change::Put { value, .. } = judged.get() {
                    let version = moved(write.revision, base);
                    remembered.insert(&mutations[write.index].key, version, value.bytes_in(format));
                }
            }
        }
        let outcomes = self.verdict.outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Committed(revision) => Outcome::Committed(moved(revision, base)),
            Outcome::Conflict { found } => Outcome::Conflict { found: found.map(|found| moved(found, base)) },
            Outcome::Unmet { requirement, found } => {
                Outcome::Unmet { requirement, found: found.map(|found| moved(found, base)) }
            }
            other @ (Outcome::RangeChanged
            | Outcome::Apart
            | Outcome::Unfit { .. }
            | Outcome::Outdated
            | Outcome::Fenced) => other,
        });
        Commit { base, outcomes: outcomes.collect() }
    }

    /// The ranges that are assumed not to have changed, of all mutations, as those that fail are judged by them, too.
    fn unchanged(&self) -> impl Iterator<Item = &UnchangedRange> {
        ranges(self.batch).zip(self.changed).filter(|(_, changed)| !**changed).map(|(range, _)| range)
    }

    /// The rows are otherwise.
    fn learn(self, standing: Standing, remembered: &mut Remembered) -> Belief {
        let live: HashMap<Key, Option<Revision>> =
            self.rows.keys.iter().map(|key| (*key).clone()).zip(standing.live).collect();
        let mut counted = HashMap::new();
        for (key, value) in counted_keys(self.batch).zip(standing.counts) {
            match (live.get(key).copied().flatten(), value) {
                (Some(version), Some(value)) => {
                    remembered.insert(key, version, value.clone());
                    counted.insert(version, value);
                }
                _ => drop(remembered.counted.remove(key)),
            }
        }
        remembered.compacted = standing.compacted;
        let mut moved = standing.moved.into_iter();
        let changed = self.changed.iter().map(|known| *known || moved.next().unwrap_or_default()).collect();
        Belief { live, counted, lost: standing.lost, compacted: standing.compacted, changed }
    }
}

/// A revision of a batch that was judged at [`BASE`], and committed at `base`.
fn moved(revision: Revision, base: Revision) -> Revision {
    match revision {
        judge::UNWRITTEN => revision,
        Revision(number) if number > BASE.0 => Revision(number - BASE.0 + base.0),
        found => found,
    }
}
