//! SQLite: one process, one writing connection, a few reading ones.
//!
//! A statement costs a hop to sqlx's worker thread, so a batch is two calls of several statements each: one that
//! opens the transaction and reads, one that writes and commits.

mod batch;
mod desk;
mod error;
mod lock;
mod log;
mod reads;
mod registration;
mod stale;
#[cfg(test)]
mod tests;
mod transfer;
mod upkeep;

pub use batch::LARGEST as LARGEST_BATCH;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use self::desk::Desk;
use self::error::unavailable;
use self::lock::FileLock;
use super::judge::judge_under;
use super::migrations;
use super::{
    Backend, Batch, BlockStream, Changes, Clock, Commit, Error, OpenError, ResourceId, RowStream, Scan, Stale, StaleRow,
    Terms, TokenKey,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/sqlite");

/// With larger pages every key of a batch logs a larger page of the index, with smaller ones fewer rows of 2 KB share
/// a page: 4 KB and 16 KB both write 15 to 20 % less per second (measured).
const PAGE_SIZE: u32 = 8 * 1024;
/// Pages in the log before the writer folds them back: 8 MB. A longer log gains 5 % and doubles the p99.
const CHECKPOINT_PAGES: u32 = 1000;
/// Of the writing connection, in KiB: more than the pages of the largest batch, so that none is written to the log
/// before the commit. Not much more: after a page split, SQLite's commit walks the whole cache.
const WRITER_CACHE_KIB: i32 = 4 * 1024;
/// The log file is cut back to this many bytes after a checkpoint.
const LOG_LIMIT: u64 = 64 << 20;
/// One is in SQLite while the log is synced for the other.
const BATCHES_IN_FLIGHT: usize = 2;
/// Readers do not wait for the writer in WAL mode; this bounds waiting for a checkpoint or for recovery.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// For short reads: the clock, counts, the changefeed.
const READERS: u32 = 4;
/// Lists have connections of their own: a slow client that reads one must not hold up the clock.
const SCANS: u32 = 8;

/// A store in one SQLite file.
pub struct Sqlite {
    desk: Desk,
    readers: SqlitePool,
    scans: SqlitePool,
    statements: batch::Statements,
}

impl Sqlite {
    /// Opens or creates the file and brings its schema up to date. Refuses a file another server has open.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let url = format!("sqlite:{}", path.display());
        let lock = FileLock::take(&lock_path(path)).map_err(|error| match error {
            lock::Error::Held => OpenError::Locked(url.clone()),
            lock::Error::Io(source) => OpenError::Unreachable { url: url.clone(), source: source.into() },
        })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(64)
            .disable_statement_logging();
        // Readers inherit none of the pragmas below: setting them takes a connection that may write.
        let reading = options.clone().read_only(true);
        let options = options
            .create_if_missing(true)
            .page_size(PAGE_SIZE)
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
            .pragma("cache_size", (-WRITER_CACHE_KIB).to_string())
            .pragma("journal_size_limit", LOG_LIMIT.to_string());
        let unreachable = |source| OpenError::Unreachable { url: url.clone(), source };
        let mut writer = options.connect().await.map_err(unreachable)?;
        migrations::apply(&MIGRATIONS, &mut writer, &url).await?;
        let pool = |connections| {
            let options = SqlitePoolOptions::new().max_connections(connections).test_before_acquire(false);
            options.connect_lazy_with(reading.clone())
        };
        let (readers, scans) = (pool(READERS), pool(SCANS));
        let statements = batch::Statements::new();
        let desk = Desk::open(path, options, writer, lock).await;
        let desk = desk.map_err(|error| unreachable(sqlx::Error::Configuration(error.into())))?;
        Ok(Self { desk, readers, scans, statements })
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[async_trait]
impl Backend for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn pipeline_depth(&self) -> usize {
        BATCHES_IN_FLIGHT
    }

    fn shared(&self) -> bool {
        false
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        let mut turn = self.desk.turn().await?;
        let mutations = batch.close();
        let statements = self.statements.for_len(mutations.len());
        let begun = batch::begin(&mut turn.connection, &statements, mutations, terms.fence).await?;
        let base = begun.base;
        if base < terms.floor {
            return Err(Error::Regressed { floor: terms.floor, found: base });
        }
        let (verdict, registry) = judge_under(mutations, base, &begun.live, begun.registered, terms)?;
        let commit = Commit { base, outcomes: verdict.outcomes };
        let last = verdict.writes.last().map(|write| write.revision);
        if last.is_none() && registry.is_none() {
            batch::rollback(&mut turn.connection).await?;
            turn.unused();
            // What the verdict was made by may not be on the disk yet.
            self.desk.flush().await?;
            return Ok(commit);
        }
        let writes = &verdict.writes;
        match (batch::finish(&mut turn.connection, &statements, mutations, writes, registry).await, last) {
            (Ok(()), last) => turn.done(last).flush().await?,
            (Err(error), Some(last)) => turn.settle(last, error).await?,
            // The clock does not tell, but a change of the registry alone can be asked for again.
            (Err(error), None) => return Err(error),
        }
        Ok(commit)
    }

    async fn clock(&self) -> Result<Clock, Error> {
        let mut connection = self.readers.acquire().await.map_err(unavailable)?;
        let clock = reads::clock(&mut connection).await?;
        Ok(clock.until(self.desk.durable()))
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        reads::scan(&self.scans, self.desk.durable(), scan, at).await
    }

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        reads::live_revisions(&self.scans, self.desk.durable(), resources, at).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        reads::rows_of(&self.scans, revisions).await
    }

    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error> {
        reads::count(&self.readers, self.desk.durable(), scan, at).await
    }

    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error> {
        stale::rows(&self.readers, stale, after, limit).await
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        stale::count(&self.readers, stale).await
    }

    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        reads::changes(&self.readers, self.desk.durable(), after, resource, limit).await
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        let mut turn = self.desk.turn().await?;
        let clock = upkeep::compact(&mut turn.connection, to).await?;
        turn.done(None).flush().await?;
        Ok(clock)
    }

    async fn sweep(&self, limit: u32) -> Result<u64, Error> {
        let mut turn = self.desk.turn().await?;
        let swept = upkeep::sweep(&mut turn.connection, limit).await?;
        turn.done(None).flush().await?;
        Ok(swept)
    }

    async fn reclaim(&self) -> Result<(), Error> {
        loop {
            let mut turn = self.desk.turn().await?;
            let more = upkeep::reclaim(&mut turn.connection).await?;
            turn.done(None).flush().await?;
            if !more {
                return Ok(());
            }
        }
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        let mut turn = self.desk.turn().await?;
        let clock = upkeep::advance_clock(&mut turn.connection, floor).await?;
        turn.done(Some(clock.revision)).flush().await?;
        Ok(clock)
    }

    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        let mut turn = self.desk.turn().await?;
        let ids = upkeep::resource_ids(&mut turn.connection, resources).await?;
        turn.done(None).flush().await?;
        Ok(ids)
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        let mut turn = self.desk.turn().await?;
        let keys = upkeep::token_keys(&mut turn.connection, now, max_age).await?;
        turn.done(None).flush().await?;
        Ok(keys)
    }

    /// Nobody else commits to this file.
    async fn hint(&self) {
        std::future::pending().await
    }

    async fn close(&self) {
        self.scans.close().await;
        self.readers.close().await;
        self.desk.close().await;
    }
}
