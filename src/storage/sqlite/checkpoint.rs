//! Moving the log into the file, which nobody but the desk does: an error of a checkpoint that SQLite makes by itself
//! would be seen by nobody.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::BUSY_TIMEOUT;
use super::error::{corrupt, passes, unavailable};
use super::failure::Failure;
use crate::storage::Error;

/// Frames in the log, each a page, before it is moved: 8 MB. A longer log gains 5 % and doubles the p99.
const DUE: u32 = 1000;
/// Frames from which on writers wait for short reads to leave the log, so that it can begin anew.
const LONG: u32 = 4 * DUE;
/// How long they wait, in milliseconds. A long list may keep the log busy for longer: they do not wait for that.
const PATIENCE_MS: u32 = 20;

/// How far the log has to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As far as readers allow.
    Passive,
    /// Wholly, so that the next write begins it anew.
    Restart,
    /// Wholly, and its file is emptied.
    Truncate,
}

impl Extent {
    fn mode(self) -> &'static str {
        match self {
            Extent::Passive => "PASSIVE",
            Extent::Restart => "RESTART",
            Extent::Truncate => "TRUNCATE",
        }
    }
}

/// How full the log is, and when it is moved next.
#[derive(Debug)]
pub struct Filling {
    frames: u32,
    due: u32,
}

impl Default for Filling {
    fn default() -> Self {
        Self { frames: 0, due: DUE }
    }
}

impl Filling {
    /// Of a log nobody has looked at since an error, which may be for want of the space that moving it makes.
    pub fn unknown() -> Self {
        Self { frames: 0, due: 0 }
    }

    /// After a commit.
    pub fn reached(&mut self, frames: u32) {
        if frames < self.frames {
            // It has begun anew.
            self.due = DUE;
        }
        self.frames = frames;
    }

    pub fn is_due(&self) -> bool {
        self.frames >= self.due
    }

    pub fn extent(&self) -> Extent {
        if self.frames < LONG { Extent::Passive } else { Extent::Restart }
    }

    /// Whatever came of an attempt: the next one is worth it when there is as much more to move.
    fn attempted(&mut self, frames: u32) {
        *self = Self { frames, due: frames.saturating_add(DUE) };
    }
}

/// How many frames the log has. Its text ends that of a batch, too: it is asked for nothing.
pub const FRAMES: &str = "PRAGMA wal_checkpoint(NOOP)";

/// Out of a row of [`FRAMES`], or of a checkpoint: the frames in the log, and how many of them have been moved.
fn counts(row: &sqlx::sqlite::SqliteRow) -> Result<(u32, u32), Error> {
    let count = |index| row.try_get::<i64, _>(index).map_err(corrupt);
    Ok((count(1)?.max(0) as u32, count(2)?.max(0) as u32))
}

pub fn frames_of(row: &sqlx::sqlite::SqliteRow) -> Result<u32, Error> {
    counts(row).map(|(frames, _)| frames)
}

pub async fn frames(connection: &mut SqliteConnection) -> Result<u32, Error> {
    let row = sqlx::query(FRAMES).fetch_one(connection).await.map_err(unavailable)?;
    frames_of(&row)
}

/// Moves the log as far as it goes. Returns whether all of it is in the file, on the disk.
///
/// A lack of space leaves the log as it was, and another attempt writes everything again. Every other error is a
/// failure: pages may be lost that the next attempt would not write again.
pub async fn run(
    connection: &mut SqliteConnection,
    extent: Extent,
    filling: &mut Filling,
    failure: &Failure,
) -> Result<bool, Error> {
    match checkpoint(connection, extent, PATIENCE_MS).await {
        Ok((frames, moved)) => {
            filling.attempted(frames);
            Ok(frames == moved)
        }
        Err(error) if passes(&error) => {
            filling.attempted(filling.frames);
            Err(Error::Unavailable(format!("cannot fold the log: {error}").into()))
        }
        Err(error) => Err(failure.set(format!("the log could not be folded into the file: {error}"))),
    }
}

/// Moves the whole log of an earlier process. Returns whether it could: somebody else may read an older state.
pub async fn fold(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let (frames, moved) = checkpoint(connection, Extent::Truncate, BUSY_TIMEOUT.as_millis() as u32).await?;
    Ok(frames == moved)
}

async fn checkpoint(
    connection: &mut SqliteConnection,
    extent: Extent,
    patience: u32,
) -> Result<(u32, u32), sqlx::Error> {
    let text = format!(
        "PRAGMA busy_timeout = {patience}; PRAGMA wal_checkpoint({}); PRAGMA busy_timeout = {}",
        extent.mode(),
        BUSY_TIMEOUT.as_millis()
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(connection).await?;
    let row = rows.iter().find(|row| row.len() == 3).ok_or(sqlx::Error::RowNotFound)?;
    let count = |index| row.try_get::<i64, _>(index).map(|count| count.max(0) as u32);
    Ok((count(1)?, count(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_moved_when_it_is_full_and_again_when_there_is_as_much_more() {
        let mut filling = Filling::default();
        filling.reached(DUE - 1);
        assert!(!filling.is_due());
        filling.reached(DUE);
        assert!(filling.is_due() && filling.extent() == Extent::Passive);
        filling.attempted(DUE);
        filling.reached(2 * DUE - 1);
        assert!(!filling.is_due(), "a reader has kept it from beginning anew");
        filling.reached(2 * DUE);
        assert!(filling.is_due());
        filling.attempted(2 * DUE);
        filling.reached(10);
        filling.reached(DUE);
        assert!(filling.is_due(), "it has begun anew");
        filling.reached(LONG);
        assert_eq!(filling.extent(), Extent::Restart);
        assert!(Filling::unknown().is_due());
    }
}
