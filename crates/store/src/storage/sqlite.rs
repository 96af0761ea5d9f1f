//! SQLite: one process with one writing connection and a few reading ones.
//!
//! Every call of sqlx costs a hop to its worker thread, so a batch is two calls of several statements each: one opens
//! the transaction and reads, the other writes and commits.

mod anchor;
mod audit;
mod batch;
mod checkpoint;
pub(super) mod error;
mod failure;
mod feed;
mod files;
mod history;
mod log;
mod reads;
mod recording;
mod registration;
mod statements;
#[cfg(test)]
mod tests;
mod transfer;
mod upkeep;
mod write_connection;

pub use self::recording::Recorder;

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use sqlx::ConnectOptions;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteSynchronous,
};

use self::anchor::Anchor;
use self::error::unavailable;
use self::failure::Failure;
use self::files::Files;
use self::statements::Statements;
use self::write_connection::{Opened, WriteConnection};
use super::commit::ranges;
use super::counting::counted_versions;
use super::history::KnownAuthors;
use super::judge::{Found, judge_under};
use super::migrations::{self, embedded_migrations};
use super::{
    AuditQuery, AuditRemoval, AuditRow, Batch, BlockStream, Clock, Commit, Commits, Counting, DriverError,
    Error, OpenError, Reads, Registry, ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
    Upkeep,
};
use crate::revision::Revision;
use crate::scheduling::Scheduling;
use crate::schema::names::GroupResource;
use crate::wall_clock::WallClock;

pub(super) static MIGRATIONS: LazyLock<Migrator> = embedded_migrations!(
    "sqlite":
    "0001_store.sql",
    "0002_storage_versions.sql",
    "0003_timeline.sql",
    "0004_system_identifier.sql",
    "0005_value_formats.sql",
    "0006_audit_events.sql",
    "0007_audit_other_events.sql",
    "0008_audit_event_sizes.sql",
    "0009_history.sql",
    "0010_counting.sql",
    "0011_segments.sql",
);

/// With larger pages, every key of a batch logs a larger page of the index; with smaller ones, fewer rows of 2 KB share
/// a page. 4 KB and 16 KB both write 15 to 20 % less per second (measured).
const PAGE_SIZE: u32 = 8 * 1024;
/// The page cache of the writing connection, in KiB. It holds more than the pages of the largest batch, so that no page
/// is written to the log before the commit. It is not much larger, since after a page split SQLite's commit walks the
/// whole cache.
const WRITER_CACHE_KIB: i32 = 4 * 1024;
/// After a checkpoint the log file is truncated to this many bytes.
const LOG_LIMIT: u64 = 64 << 20;
/// While the log is synced for one batch, the next one runs in SQLite.
const BATCHES_IN_FLIGHT: usize = 2;
/// How long a connection waits for a checkpoint or for recovery. Readers do not wait for the writer in WAL mode.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections for short reads: the clock, counts, the changefeed.
const READERS: u32 = 4;
/// Connections for lists. They are separate so that a slow client that reads a list does not hold up reads of the
/// clock.
const SCANS: u32 = 8;

/// A store in one SQLite file.
pub struct Sqlite {
    writer: Arc<WriteConnection>,
    readers: SqlitePool,
    scans: SqlitePool,
    statements: Statements,
    clock: WallClock,
    authors: KnownAuthors,
}

impl Sqlite {
    /// Opens or creates the file and migrates its schema. Refuses a file that another server has open.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_beside(path, Scheduling::default(), WallClock::default()).await
    }

    /// Like [`Sqlite::open`], in a process whose threads give each other these hints. Commits are stamped by this clock.
    pub async fn open_beside(
        path: &Path,
        scheduling: Scheduling,
        clock: WallClock,
    ) -> Result<Self, OpenError> {
        let url = format!("sqlite:{}", path.display());
        let files = Files::claim(path).map_err(|error| error.of(&url))?;
        let unreachable = |source: DriverError| OpenError::Unreachable { url: url.clone(), source };
        let (writing, reading) = options(files.path());
        let first = if files.is_new().map_err(|error| unreachable(error.into()))? {
            creating(&writing)
        } else {
            writing.clone()
        };
        let mut connection = first.connect().await.map_err(|error| unreachable(error.into()))?;
        let failure = Failure::default();
        let anchor = anchor(&reading).await.map_err(|error| unreachable(error.into()))?;
        let anchor = Anchor::new(anchor, failure.clone());
        let log = files.open_log().map_err(|error| unreachable(error.into()))?;
        upkeep::fold(&mut connection, &log, &url).await.map_err(|error| {
            failure.set(error.to_string());
            unreachable(error.into())
        })?;
        migrations::apply(&MIGRATIONS, &mut connection, &url).await?;
        files.narrow();
        let opened = Opened { connection, anchor, files, log, failure, scheduling };
        let writer = WriteConnection::open(opened, writing).await;
        let writer = writer.map_err(|error| unreachable(error.into()))?;
        let pool = |connections| {
            let options = SqlitePoolOptions::new().max_connections(connections).test_before_acquire(false);
            options.connect_lazy_with(reading.clone())
        };
        let (readers, scans) = (pool(READERS), pool(SCANS));
        let (statements, authors) = (Statements::new(), KnownAuthors::default());
        Ok(Self { writer: Arc::new(writer), readers, scans, statements, clock, authors })
    }
}

/// The options of the writing connection, and those of the reading ones.
fn options(path: &Path) -> (SqliteConnectOptions, SqliteConnectOptions) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(64)
        .disable_statement_logging();
    // The reading options are copied before the pragmas below are added: setting those takes a connection that may
    // write.
    let reading = options.clone().read_only(true);
    let writing = options
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        // `write_connection` makes checkpoints, so that their errors are seen.
        .pragma("wal_autocheckpoint", "0")
        .pragma("cache_size", (-WRITER_CACHE_KIB).to_string())
        .pragma("journal_size_limit", LOG_LIMIT.to_string());
    (writing, reading)
}

/// The options that create a new file. They are not used for a file that exists: they would write to it, and on a full
/// disk no connection could be opened.
fn creating(writing: &SqliteConnectOptions) -> SqliteConnectOptions {
    let options = writing.clone().create_if_missing(true).page_size(PAGE_SIZE);
    options.auto_vacuum(SqliteAutoVacuum::Incremental)
}

async fn anchor(reading: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = reading.connect().await?;
    sqlx::query("SELECT COUNT(*) FROM sqlite_schema").fetch_one(&mut connection).await?;
    Ok(connection)
}

#[async_trait]
impl Commits for Sqlite {
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        let mut turn = self.writer.turn().await?;
        let mutations = batch.close();
        let statements = self.statements.for_len(mutations.len());
        let begun = batch::begin(&mut turn.connection, &statements, mutations, terms.fence).await?;
        let base = begun.base;
        if base < terms.floor {
            return Err(Error::Regressed { floor: terms.floor, found: base });
        }
        let counted = counted_versions(mutations, &begun.live);
        let counted = batch::values_of(&mut turn.connection, &counted).await?;
        let changed = batch::changed(&mut turn.connection, ranges(mutations)).await?;
        let batch::Begun { live, registered, compacted, lag, committed_ms, .. } = begun;
        let found = Found { live: &live, counted: &counted, registered, compacted, changed: &changed, lag };
        let (verdict, registry) = judge_under(mutations, base, found, terms)?;
        let commit = Commit { base, outcomes: verdict.outcomes };
        let last = verdict.writes.last().map(|write| write.revision);
        if last.is_none() && registry.is_none() {
            batch::rollback(&mut turn.connection).await?;
            turn.unused().flush().await?;
            return Ok(commit);
        }
        let writes = &verdict.writes;
        let told = self.authors.tell(writes.iter().map(|write| mutations[write.index].author.as_ref()));
        let uncounted =
            writes.iter().filter(|write| mutations[write.index].counting != Counting::Own).count();
        let committed_ms = self.clock.millis().max(committed_ms);
        let stamp = batch::Stamp { committed_ms, lag: lag + uncounted as i64, told };
        let finished =
            batch::finish(&mut turn.connection, &statements, mutations, writes, registry, &stamp).await;
        match (self.writer.heed(finished), last) {
            (Ok(frames), last) => {
                self.authors.note(&stamp.told);
                turn.done(last, frames).flush().await?;
            }
            (Err(error), Some(last)) => turn.settle(last, error).await?,
            // The clock does not show whether a change of the registry alone was committed, but that change can be
            // requested again.
            (Err(error), None) => return Err(error),
        }
        Ok(commit)
    }

    fn pipeline_depth(&self) -> usize {
        BATCHES_IN_FLIGHT
    }
}

#[async_trait]
impl Reads for Sqlite {
    async fn clock(&self) -> Result<Clock, Error> {
        let durable = self.writer.durable();
        reads::durable_clock(&mut *self.readers.acquire().await.map_err(unavailable)?, durable).await
    }

    async fn size(&self) -> Result<Option<u64>, Error> {
        reads::size(&self.readers).await.map(Some)
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        reads::scan(&self.scans, self.writer.durable(), scan, at).await
    }

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        reads::live_revisions(&self.scans, self.writer.durable(), resources, at).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        reads::rows_of(&self.scans, revisions).await
    }

    async fn lag_at(&self, at: Revision) -> Result<i64, Error> {
        reads::lag_at(&mut *reads::snapshot(&self.readers, self.writer.durable(), at).await?, at).await
    }

    async fn sequence_of(&self, revision: i64) -> Result<Revision, Error> {
        let durable = self.writer.durable();
        let mut transaction = self.readers.begin().await.map_err(unavailable)?;
        let clock = reads::durable_clock(&mut transaction, durable).await?;
        reads::sequence_of(&mut transaction, clock, revision).await
    }

    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error> {
        reads::count(&self.readers, self.writer.durable(), scan, at).await
    }

    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error> {
        let mut connection = self.readers.acquire().await.map_err(unavailable)?;
        reads::stale_rows(&mut connection, stale, after, limit).await
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        let mut connection = self.readers.acquire().await.map_err(unavailable)?;
        reads::stale_count(&mut connection, stale).await
    }
}

#[async_trait]
impl Upkeep for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        let mut turn = self.writer.turn().await?;
        let clock = self.writer.heed(upkeep::compact(&mut turn.connection, to).await)?;
        turn.finish(None).await?.flush().await?;
        Ok(clock)
    }

    async fn oldest_change(&self) -> Result<Option<Revision>, Error> {
        reads::oldest_change(&self.readers).await
    }

    async fn sweep(&self, limit: u32) -> Result<Swept, Error> {
        let mut turn = self.writer.turn().await?;
        let begun = Instant::now();
        let changes = self.writer.heed(upkeep::sweep(&mut turn.connection, limit).await)?;
        turn.leave().await?;
        Ok(Swept { changes, took: begun.elapsed() })
    }

    async fn reclaim(&self) -> Result<(), Error> {
        loop {
            let mut turn = self.writer.turn().await?;
            let more = self.writer.heed(upkeep::reclaim(&mut turn.connection).await)?;
            turn.leave().await?;
            if !more {
                return self.writer.cut_log().await;
            }
        }
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        let mut turn = self.writer.turn().await?;
        let clock = self.writer.heed(upkeep::advance_clock(&mut turn.connection, floor).await)?;
        turn.finish(Some(clock.revision)).await?.flush().await?;
        Ok(clock)
    }

    async fn broken(&self) -> Arc<str> {
        tokio::select! {
            reason = self.writer.failed() => reason,
            reason = self.writer.replaced() => reason,
        }
    }

    async fn close(&self) {
        self.scans.close().await;
        self.readers.close().await;
        self.writer.close().await;
    }
}

#[async_trait]
impl Registry for Sqlite {
    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        let mut turn = self.writer.turn().await?;
        let ids = self.writer.heed(upkeep::resource_ids(&mut turn.connection, resources).await)?;
        turn.finish(None).await?.flush().await?;
        Ok(ids)
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        let mut turn = self.writer.turn().await?;
        let keys = self.writer.heed(upkeep::token_keys(&mut turn.connection, now, max_age).await)?;
        turn.finish(None).await?.flush().await?;
        Ok(keys)
    }

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        let mut turn = self.writer.turn().await?;
        let added = audit::insert_each(&mut turn.connection, &rows).await.map_err(unavailable);
        self.writer.heed(added)?;
        turn.finish(None).await?.flush().await
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        let mut connection = self.readers.acquire().await.map_err(unavailable)?;
        audit::find(&mut connection, query, true).await
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        let mut turn = self.writer.turn().await?;
        let removed = self.writer.heed(audit::remove(&mut turn.connection, removal).await)?;
        turn.leave().await?;
        Ok(removed)
    }
}
