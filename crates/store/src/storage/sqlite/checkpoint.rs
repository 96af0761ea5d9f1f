//! Checkpoints, which move the write-ahead log into the database file. Only `write_connection` makes them: if SQLite made
//! one by itself, nobody would see its errors.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::BUSY_TIMEOUT;
use super::error::{corrupt, passes, unavailable};
use super::failure::Failure;
use crate::storage::Error;

/// A checkpoint is made when the log has this many frames, each a page: 8 MB. A longer log gains 5 % and doubles the
/// p99.
const DUE: u32 = 1000;
/// From this many frames on, writers wait until short reads have left the log, so that it can start anew.
const LONG: u32 = 4 * DUE;
/// How long writers wait for that, in milliseconds. They do not wait for a long list, which may keep the log in use for
/// longer.
const PATIENCE_MS: u32 = 20;

/// How much a checkpoint moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The frames that no reader holds back.
    Passive,
    /// All frames, so that the next write starts the log anew.
    Restart,
    /// All frames, and the log file is truncated.
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

/// How full the log is, and how full it may become before the next checkpoint.
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
    /// The filling after an error, when the log's length is unknown; a checkpoint is due at once, since the error may
    /// be a lack of space that a checkpoint cures.
    pub fn unknown() -> Self {
        Self { frames: 0, due: 0 }
    }

    /// Notes the number of frames after a commit.
    pub fn reached(&mut self, frames: u32) {
        if frames < self.frames {
            // The log has started anew.
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

    /// Notes an attempt, successful or not. The next one is made when as many frames have been added again.
    fn attempted(&mut self, frames: u32) {
        *self = Self { frames, due: frames.saturating_add(DUE) };
    }
}

/// Asks how many frames the log has, without moving any. The text that ends a batch contains this statement, too.
pub const FRAMES: &str = "PRAGMA wal_checkpoint(NOOP)";

/// Reads a row of [`FRAMES`] or of a checkpoint: the number of frames in the log, and how many of them have been moved.
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

/// Makes a checkpoint. Returns whether the whole log is in the file, on the disk.
///
/// A lack of space leaves the log as it was, and the next attempt writes everything again. Every other error is a
/// failure: it may have lost pages that the next attempt would not write again.
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

/// Moves the whole log of an earlier process into the file. Returns false if another process still reads an older
/// state.
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
