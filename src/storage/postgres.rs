//! PostgreSQL: any number of servers on one database, in step through the clock's row lock.

mod batch;
mod error;
mod fate;
mod listener;
mod pool;
mod reads;
mod registration;
mod stale;
mod timeline;
mod transfer;
mod upkeep;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::time::Instant;

use self::batch::Failure;
use self::fate::Fate;
use self::listener::{Channel, Listener};
use self::pool::{Lent, Pool, long, short};
use super::judge::{Write, judge_under};
use super::{
    Backend, Batch, Changes, Clock, Commit, Error, Mutation, OpenError, ResourceId, RowStream, Scan, Stale,
    StaleRow, Swept, Terms, TokenKey, migrations,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/postgres");

/// Two batches in flight, upkeep, and short reads; a database is shared with other replicas.
const CONNECTIONS: u32 = 6;
/// Lists from SQL have connections of their own: a slow client that reads one must not hold up a write.
const SCANS: u32 = 4;
/// A second batch gathers its lock while the first commits: about a fifth more throughput (measured).
const BATCHES_IN_FLIGHT: usize = 2;
/// How long the outcome of a broken COMMIT is asked for before the writer is told that nobody knows.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// A store in one PostgreSQL schema.
pub struct Postgres {
    pool: Pool,
    scans: Pool,
    listener: Listener,
    channel: Channel,
}

impl Postgres {
    /// Connects and brings the schema up to date. The tables live in the connection's current schema.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let shown = without_password(url);
        let options: PgConnectOptions = url
            .parse()
            .map_err(|error: sqlx::Error| OpenError::Url { url: shown.clone(), reason: error.to_string() })?;
        let options = options.application_name("rowplane").disable_statement_logging();
        let unreachable = |source| OpenError::Unreachable { url: shown.clone(), source };
        migrate(&options, &shown).await?;
        let (pool, scans) = (Pool::new(options.clone(), CONNECTIONS), Pool::new(options.clone(), SCANS));
        let mut connection = pool.try_acquire().await.map_err(unreachable)?;
        // By number, for a channel's name is limited to the length of a schema's.
        let channel: String = sqlx::query_scalar(
            "SELECT 'rowplane_' || oid FROM pg_namespace WHERE nspname = current_schema()",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(unreachable)?;
        drop(connection);
        let channel = Channel::new(&channel);
        Ok(Self { listener: Listener::spawn(options, channel.clone()), pool, scans, channel })
    }

    /// Asks the database what became of a batch, until it answers.
    async fn settle(
        &self,
        transaction: &str,
        mutations: &[Mutation],
        writes: &[Write],
        error: Error,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        loop {
            match self.fate(transaction, mutations, writes).await {
                Ok(Fate::Committed) => return Ok(()),
                Ok(Fate::Aborted) => return Err(error),
                Ok(Fate::InProgress) | Err(_) if Instant::now() < deadline => {
                    tokio::time::sleep(SETTLE_PAUSE).await;
                }
                Ok(Fate::InProgress | Fate::Forgotten) | Err(_) => {
                    return Err(Error::Unknown(error.to_string().into()));
                }
            }
        }
    }

    async fn fate(&self, transaction: &str, mutations: &[Mutation], writes: &[Write]) -> Result<Fate, Error> {
        let mut connection = self.pool.acquire().await?;
        let fate = short(fate::of(&mut connection, transaction, mutations, writes)).await;
        checked(connection, fate)
    }
}

/// Brings the schema up to date.
async fn migrate(options: &PgConnectOptions, shown: &str) -> Result<(), OpenError> {
    let unreachable = |source| OpenError::Unreachable { url: shown.to_owned(), source };
    let mut connection = pool::connect(options).await.map_err(unreachable)?;
    // Only what really changes the schema may take its time.
    let newest = pool::short(reads::newest_migration(&mut connection)).await.ok();
    let known = MIGRATIONS.iter().map(|migration| migration.version).max();
    let applied = migrations::apply(&MIGRATIONS, &mut connection, shown);
    if newest.is_some() && newest == known {
        let silent = |_| unreachable(sqlx::Error::PoolTimedOut);
        tokio::time::timeout(pool::LONG, applied).await.map_err(silent)??;
    } else {
        applied.await?;
    }
    let _ = connection.close().await;
    Ok(())
}

/// A URL that may be shown and logged.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            let user = login.split(':').next().unwrap_or(login);
            format!("{scheme}://{user}@{place}")
        }
        None => url.to_owned(),
    }
}

#[async_trait]
impl Backend for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn pipeline_depth(&self) -> usize {
        BATCHES_IN_FLIGHT
    }

    fn shared(&self) -> bool {
        true
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        let floor = terms.floor;
        let mut connection = self.pool.acquire_warm().await?;
        let begun = match short(batch::begin(&mut connection)).await {
            Ok(begun) if begun.base >= floor => begun,
            other => {
                connection.discard();
                return Err(other.map_or_else(|e| e, |begun| Error::Regressed { floor, found: begun.base }));
            }
        };
        let mutations = batch.close();
        let judged = short(batch::look_up(&mut connection, mutations, terms.fence)).await.and_then(|found| {
            let judged = judge_under(mutations, begun.base, &found.live, found.registered, terms)?;
            Ok((judged, found.format))
        });
        let ((verdict, registry), format) = match judged {
            Ok(judged) => judged,
            Err(error) => {
                connection.discard();
                return Err(error);
            }
        };
        let commit = Commit { base: begun.base, outcomes: verdict.outcomes };
        let writes = &verdict.writes;
        let finished =
            batch::finish(&mut connection, &self.channel, mutations, (writes, format), registry).await;
        match finished {
            Ok(()) => {
                self.pool.keep(connection);
                Ok(commit)
            }
            Err(Failure::Before(error)) => {
                connection.discard();
                Err(error)
            }
            Err(Failure::During(error)) => {
                connection.discard();
                let settled = self.settle(&begun.transaction, mutations, writes, error).await;
                settled.map(|()| commit)
            }
        }
    }

    async fn clock(&self) -> Result<Clock, Error> {
        let mut connection = self.pool.acquire().await?;
        let clock = short(reads::clock(&mut connection)).await;
        checked(connection, clock)
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        reads::scan(&self.scans, scan, at).await
    }

    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error> {
        long(reads::count(&self.pool, scan, at)).await
    }

    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error> {
        long(stale::rows(&self.pool, stale, after, limit)).await
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        long(stale::count(&self.pool, stale)).await
    }

    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        reads::changes(&self.pool, after, resource, limit).await
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        short(upkeep::compact(&self.pool, to)).await
    }

    async fn oldest_change(&self) -> Result<Option<Revision>, Error> {
        short(upkeep::oldest_change(&self.pool)).await
    }

    async fn sweep(&self, limit: u32) -> Result<Swept, Error> {
        let begun = Instant::now();
        let changes = long(upkeep::sweep(&self.pool, limit)).await?;
        Ok(Swept { changes, took: begun.elapsed() })
    }

    /// Autovacuum does it.
    async fn reclaim(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        short(upkeep::advance_clock(&self.pool, floor)).await
    }

    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        short(upkeep::resource_ids(&self.pool, resources)).await
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        short(upkeep::token_keys(&self.pool, now, max_age)).await
    }

    async fn hint(&self) {
        self.listener.hint().await
    }

    async fn close(&self) {
        self.listener.stop();
        self.scans.close().await;
        self.pool.close().await;
    }
}

/// Keeps a connection that failed out of the pool.
fn checked<T>(connection: Lent, result: Result<T, Error>) -> Result<T, Error> {
    if result.is_err() {
        connection.discard();
    }
    result
}
