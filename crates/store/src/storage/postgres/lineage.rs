//! Whether a connection leads to the database that this server knows. Checked on every new connection: a crash, a
//! promotion or a restore ends all connections, so that later statements need no check.
//!
//! - **Another cluster, or a lower timeline** (an old primary that is back, a proxy that points to the wrong one) is
//!   refused, since two histories would diverge. The operator may say that it is the database from now on.
//! - **A higher timeline**: a standby has been promoted. Commits of the old primary that it had not received are lost,
//!   acknowledged or not, and its clock would give their revisions out again; so the clock jumps before anything else is
//!   done. The same happens if the clock's row says that it was made in another cluster and came here by a dump.
//! - **The same timeline, and the log ends before a position that was seen earlier**: a snapshot of the volume was started
//!   as it is. The clock jumps too. A restart, clean or after a crash, never goes back, since only flushed positions are
//!   remembered.
//!
//! A database has an identity of its own besides, which shows that it is simply a new one: its clock jumps over what this
//! server has shown its clients of the one before.
//!
//! The first two cases show in the clock's row, so that all servers notice them; the last one shows only in what
//! servers remember outside the database.

mod refusal;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Executor as _, Row as _};

pub use self::refusal::{Error, Refusal};
use super::address::Wanted;
use super::whole;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::storage::mark::{HighWaterMark, SAFETY_GAP, Sighting};
use crate::storage::migrations::lacks_rights;

/// A cluster's system identifier, which `initdb` makes, and its present timeline, for example `7711040465732606656/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterId {
    pub system: Option<u64>,
    pub timeline: u32,
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.system {
            Some(system) => write!(f, "{system}/{}", self.timeline),
            None => write!(f, "unknown/{}", self.timeline),
        }
    }
}

impl FromStr for ClusterId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (system, timeline) = text.split_once('/')?;
            let system = if system == "unknown" { None } else { Some(system.parse().ok()?) };
            Some(Self { system, timeline: timeline.parse().ok()? })
        };
        parse().ok_or_else(|| "must be <system identifier>/<timeline>".to_owned())
    }
}

impl From<&Sighting> for ClusterId {
    fn from(sighting: &Sighting) -> Self {
        Self { system: sighting.system, timeline: sighting.timeline }
    }
}

/// How a cluster compares with the one that this server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is the same, as far as this server can tell; the clock's row may know more.
    Whole,
    SetBack,
    /// It is unknown, and the operator has accepted it.
    Successor,
    /// It was made after this server has used the one that it knows.
    New,
}

/// The state of a server, on which depends what it may take for the database that it knows.
#[derive(Clone, Copy, Debug)]
enum Trust {
    /// It starts, and its mark was written at this time. A database that is younger than that is a new one.
    Starting(Option<SystemTime>),
    /// It runs, and relies on what it has read of the database.
    Running,
}

fn judge(
    known: Option<Sighting>,
    (present, made): (&Sighting, Option<SystemTime>),
    trust: Trust,
    accepted: Option<ClusterId>,
) -> Result<Verdict, Refusal> {
    let Some(known) = known else { return Ok(Verdict::Whole) };
    if known.identity.zip(present.identity).is_some_and(|(known, present)| known != present) {
        match trust {
            Trust::Running => return Err(Refusal::Replaced),
            Trust::Starting(Some(written)) if made.is_some_and(|made| made > written) => {
                return Ok(Verdict::New);
            }
            Trust::Starting(_) => {}
        }
    }
    let elsewhere = known.system.zip(present.system).is_some_and(|(known, present)| known != present);
    if elsewhere || present.timeline < known.timeline {
        let present = ClusterId::from(present);
        return match accepted == Some(present) {
            true => Ok(Verdict::Successor),
            false => Err(Refusal::Stranger { known: (&known).into(), present }),
        };
    }
    match present.timeline == known.timeline && present.flushed < known.flushed {
        true => Ok(Verdict::SetBack),
        false => Ok(Verdict::Whole),
    }
}

/// The identity of the database as far as this server knows it, shared by all its connections.
#[derive(Default)]
pub struct Lineage {
    accepted: Option<ClusterId>,
    known: Mutex<Option<Sighting>>,
    /// The mark that keeps the sighting between runs of the server. Not set for a store that is only read or filled.
    mark: OnceLock<Arc<HighWaterMark>>,
    /// Whether the server has begun to rely on what it has read of the database.
    running: AtomicBool,
}

/// A backend process as `pg_stat_activity` names it. The start time is part of it, since process ids are reused.
#[derive(Clone, Debug)]
pub struct BackendId {
    pub process: i32,
    pub started: Option<String>,
}

impl Lineage {
    pub fn new(accepted: Option<ClusterId>) -> Self {
        Self { accepted, ..Self::default() }
    }

    /// From now on, compares connections with what the mark remembers.
    pub fn hold_to(&self, mark: &Arc<HighWaterMark>) {
        let mut known = self.known();
        match mark.sighting() {
            Some(sighting) => *known = Some(sighting),
            None => known.iter().for_each(|known| mark.sight(*known)),
        }
        let _ = self.mark.set(mark.clone());
    }

    /// From now on, the database must not be replaced by another one.
    pub fn settle(&self) {
        self.running.store(true, Ordering::Relaxed);
    }

    /// Checks a new connection before its first use. Returns the backend process and its timeline.
    pub async fn follow(&self, connection: &mut PgConnection) -> Result<(BackendId, u32), Error> {
        // Read before the cluster is looked at: a sighting noted later may be younger than that look.
        let known = *self.known();
        let system = system_identifier(connection).await?;
        let look = Look::take(connection, system).await?;
        let trust = match self.running.load(Ordering::Relaxed) {
            true => Trust::Running,
            false => Trust::Starting(self.mark.get().and_then(|mark| mark.written())),
        };
        let verdict = judge(known, (&look.present, look.made), trust, self.accepted)?;
        let mut present = look.present;
        if verdict == Verdict::SetBack {
            tracing::error!(
                "the database has been set back, as by an old snapshot that was started, and may have lost acknowledged commits: \
                 its log ends at {:X}, and has been at {:X}",
                present.flushed,
                known.map_or(0, |known| known.flushed),
            );
        }
        if (verdict != Verdict::Whole || look.is_news()) && !strikes(Bug::PromotionUnnoticed) {
            let floor = self.mark.get().map(|mark| mark.get()).max(known.map(|known| known.revision));
            if let Some(revision) = self.move_clock(connection, &look, verdict, floor).await? {
                present.revision = revision;
            }
        }
        self.remember(present, verdict);
        Ok((look.backend, present.timeline))
    }

    /// Notes where the cluster stood when a batch held the clock's lock.
    pub fn observe(&self, timeline: u32, revision: Revision, flushed: u64) {
        let mut known = self.known();
        if let Some(last) = &mut *known
            && last.timeline == timeline
            && (revision, flushed) > (last.revision, last.flushed)
        {
            (last.revision, last.flushed) = (revision, flushed);
            if let Some(mark) = self.mark.get() {
                mark.sight(*last);
            }
        }
    }

    /// Whether connections on this timeline may still be used.
    pub fn is_current(&self, timeline: u32) -> bool {
        self.known().is_none_or(|known| timeline >= known.timeline)
    }

    fn remember(&self, present: Sighting, verdict: Verdict) {
        let mut known = self.known();
        if verdict != Verdict::Whole || known.is_none_or(|known| present > known) {
            *known = Some(present);
            if let Some(mark) = self.mark.get() {
                mark.sight(present);
            }
        }
    }

    /// Moves the clock if the cluster has changed. Returns the clock's new revision, or `None` if its row was left
    /// alone.
    async fn move_clock(
        &self,
        connection: &mut PgConnection,
        look: &Look,
        verdict: Verdict,
        floor: Option<Revision>,
    ) -> Result<Option<Revision>, sqlx::Error> {
        let statement = format!(
            include_str!("../sql/postgres/follow.sql"),
            gap = SAFETY_GAP,
            timeline = look.present.timeline,
            system = whole::number(look.present.system.map(|system| system as i64)),
            known = floor.unwrap_or_default().0 as i64,
            set_back = verdict != Verdict::Whole,
        );
        let moved = whole::run(connection, statement).await?.pop();
        let moved = moved.map(|row| Ok::<(i64, bool), sqlx::Error>((row.try_get(0)?, row.try_get(1)?)));
        let moved = moved.transpose()?;
        let cluster = ClusterId::from(&look.present);
        match moved {
            Some((revision, true)) if verdict == Verdict::New => tracing::info!(
                %cluster,
                revision,
                "the database is a new one; its clock begins above all revisions of the one before it"
            ),
            Some((revision, true)) => tracing::error!(
                %cluster,
                before = ?look.row,
                revision,
                "the database has been promoted or restored and may have lost acknowledged commits; its clock is moved \
                 ahead and older history is given up"
            ),
            _ => {}
        }
        Ok(moved.map(|(revision, _)| Revision(revision as u64)))
    }

    fn known(&self) -> MutexGuard<'_, Option<Sighting>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cluster as it is now, and the timeline and system identifier that the clock's row holds.
struct Look {
    backend: BackendId,
    present: Sighting,
    row: (Option<i64>, Option<i64>),
    /// When the database was made, if nothing older has been put into it.
    made: Option<SystemTime>,
}

impl Look {
    async fn take(connection: &mut PgConnection, system: Option<u64>) -> Result<Self, Error> {
        let row: PgRow =
            connection.fetch_one(sqlx::raw_sql(include_str!("../sql/postgres/sight.sql"))).await?;
        let timeline: Option<i64> = row.try_get(2)?;
        let timeline = timeline.ok_or(Refusal::Standby)?;
        let present = Sighting {
            revision: Revision(row.try_get::<i64, _>(4)? as u64),
            timeline: timeline as u32,
            flushed: row.try_get::<i64, _>(3)? as u64,
            system,
            identity: row.try_get::<Option<i64>, _>(7)?.map(|identity| identity as u64),
        };
        let backend = BackendId { process: row.try_get(0)?, started: row.try_get(1)? };
        let made: Option<i64> = row.try_get(8)?;
        let made = made.map(|at| UNIX_EPOCH + Duration::from_micros(at.unsigned_abs()));
        Ok(Self { backend, present, row: (row.try_get(5)?, row.try_get(6)?), made })
    }

    fn is_news(&self) -> bool {
        let (timeline, system) = self.row;
        timeline != Some(i64::from(self.present.timeline))
            || self.present.system.is_some_and(|present| system != Some(present as i64))
    }
}

/// The cluster's system identifier; `None` if the role may not read it.
async fn system_identifier(connection: &mut PgConnection) -> Result<Option<u64>, sqlx::Error> {
    let asked = sqlx::raw_sql("SELECT system_identifier FROM pg_control_system()");
    match connection.fetch_one(asked).await {
        Ok(row) => Ok(Some(row.try_get::<i64, _>(0)? as u64)),
        Err(error) if lacks_rights(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(system: u64, timeline: u32, flushed: u64) -> Sighting {
        Sighting { revision: Revision(1), timeline, flushed, system: Some(system), identity: Some(5) }
    }

    #[test]
    fn a_new_database_is_told_from_one_that_came_back() {
        let (known, other) = (at(7, 3, 100), Sighting { identity: Some(6), ..at(8, 1, 1) });
        let [before, written, after] = [1, 2, 3].map(|at| Some(UNIX_EPOCH + Duration::from_secs(at)));
        let starting = Trust::Starting(written);
        let judge = |present: &Sighting, made, trust| judge(Some(known), (present, made), trust, None);
        assert_eq!(judge(&other, after, starting), Ok(Verdict::New));
        // One that was there before, one with an older content, and where nobody knows when the mark was written.
        for (made, trust) in [(before, starting), (None, starting), (after, Trust::Starting(None))] {
            assert!(
                matches!(judge(&other, made, trust), Err(Refusal::Stranger { .. })),
                "{made:?} {trust:?}"
            );
        }
        assert_eq!(judge(&other, after, Trust::Running), Err(Refusal::Replaced));
        // Of the same cluster: a database that was dropped and made again.
        let again = Sighting { identity: Some(6), ..at(7, 3, 101) };
        assert_eq!(judge(&again, after, starting), Ok(Verdict::New));
        assert_eq!(judge(&again, None, starting), Ok(Verdict::Whole));
        // Earlier builds have remembered no identity.
        let unnamed = Sighting { identity: None, ..other };
        assert!(matches!(judge(&unnamed, after, starting), Err(Refusal::Stranger { .. })));
    }

    #[test]
    fn what_a_look_means() {
        let judge = |known, present: &Sighting, accepted| {
            judge(known, (present, None), Trust::Starting(None), accepted)
        };
        let known = at(7, 3, 100);
        let cases = [
            (at(7, 3, 100), Ok(Verdict::Whole)),
            (at(7, 3, 99), Ok(Verdict::SetBack)),
            // A promoted standby had received less.
            (at(7, 4, 50), Ok(Verdict::Whole)),
            (Sighting { system: None, ..at(0, 3, 101) }, Ok(Verdict::Whole)),
        ];
        for (present, verdict) in cases {
            assert_eq!(judge(Some(known), &present, None), verdict, "{present:?}");
        }
        assert_eq!(judge(None, &at(8, 1, 1), None), Ok(Verdict::Whole));
        for present in [at(7, 2, 200), at(8, 3, 200), at(8, 4, 1)] {
            let id = ClusterId::from(&present);
            let refused = judge(Some(known), &present, Some((&known).into())).unwrap_err();
            assert!(refused.to_string().ends_with(&format!("--datastore-accept={id}")), "{refused}");
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(judge(Some(known), &present, Some(id)), Ok(Verdict::Successor));
        }
    }
}
