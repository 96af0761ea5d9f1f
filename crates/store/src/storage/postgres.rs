//! PostgreSQL: any number of servers share one database and take turns by the lock on the clock's row.

mod address;
mod audit;
mod batch;
mod error;
mod fate;
mod lineage;
mod link;
mod listener;
mod pool;
mod reads;
mod registration;
mod session;
mod stale;
mod tls;
mod transfer;
mod upkeep;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryFutureExt as _;
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;
use tokio::time::Instant;

pub use self::address::Address;
use self::batch::{Failure, JudgeInput};
use self::error::unavailable;
use self::fate::Fate;
pub use self::lineage::ClusterId;
use self::lineage::Lineage;
use self::listener::{Channel, Listener};
use self::pool::{Lent, Pool, long, short};
use self::session::{Connector, Purpose};
use super::counting::counted_versions;
use super::judge::{Found, Write, judge_under};
use super::migrations::embedded_migrations;
use super::{
    AuditQuery, AuditRemoval, AuditRow, Backend, Batch, BlockStream, Changes, Clock, Commit, Error,
    HighWaterMark, Mutation, OpenError, ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
    migrations,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

pub(super) static MIGRATIONS: LazyLock<Migrator> = embedded_migrations!(
    "postgres":
    "0001_store.sql",
    "0002_storage_versions.sql",
    "0003_timeline.sql",
    "0004_system_identifier.sql",
    "0005_value_formats.sql",
    "0006_audit_events.sql",
);

/// Connections for two batches in flight, upkeep, and short reads. Few, since the database is shared with other
/// replicas.
const CONNECTIONS: usize = 6;
/// Connections for lists from SQL. They are separate so that a slow client that reads a list does not hold up writes.
const SCANS: usize = 4;
/// A second batch waits for the lock while the first commits: about a fifth more throughput (measured).
const BATCHES_IN_FLIGHT: usize = 2;
/// How long the database is asked for the outcome of a broken COMMIT before the caller gets [`Error::Unknown`].
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// A store in one PostgreSQL schema.
pub struct Postgres {
    connector: Connector,
    /// The URL without secrets.
    shown: String,
    pool: Pool,
    scans: Pool,
    listener: Listener,
    channel: Channel,
}

impl Postgres {
    /// Connects and migrates the schema. The tables live in the connection's current schema.
    pub async fn open(address: impl Into<Address>) -> Result<Self, OpenError> {
        let (connector, shown) = connector(&address.into()).await?;
        let mut connection =
            connector.connect(Purpose::Whole).await.map_err(|error| unreachable(&shown, error))?;
        migrate(&mut connection, &shown).await?;
        warn_of_settings(&mut connection).await.map_err(|error| unreachable(&shown, error))?;
        let _ = connection.close().await;
        let (pool, scans) = (Pool::new(connector.clone(), CONNECTIONS), Pool::new(connector.clone(), SCANS));
        let mut connection = pool.try_acquire().await.map_err(|error| not_opened(&shown, error))?;
        // The channel's name uses the schema's number: a name with the schema's name in it could be too long.
        let channel: String = sqlx::query_scalar(
            "SELECT 'rowplane_' || oid FROM pg_namespace WHERE nspname = current_schema()",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| unreachable(&shown, error))?;
        drop(connection);
        let channel = Channel::new(&channel);
        Ok(Self {
            listener: Listener::spawn(connector.clone(), channel.clone()),
            connector,
            shown,
            pool,
            scans,
            channel,
        })
    }

    /// Asks the database whether a batch was committed, until it answers.
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
        let fate = async {
            let fate = fate::of(&mut connection, transaction, mutations, writes).await?;
            if matches!(fate, Fate::Committed) {
                fate::confirm(&mut connection).await?;
            }
            Ok(fate)
        };
        let fate = short(fate).await;
        checked(connection, fate)
    }
}

/// How to connect to a database, and its URL without secrets.
async fn connector(address: &Address) -> Result<(Connector, String), OpenError> {
    let shown = address.to_string();
    let route = address.resolve()?;
    let connector = Connector::new(route, Lineage::new(address.accepted)).await;
    Ok((connector.map_err(|error| unreachable(&shown, error))?, shown))
}

fn unreachable(shown: &str, source: sqlx::Error) -> OpenError {
    OpenError::Unreachable { url: shown.to_owned(), source }
}

fn not_opened(shown: &str, error: lineage::Error) -> OpenError {
    match error {
        lineage::Error::Sql(source) => unreachable(shown, source),
        lineage::Error::Refused(refusal) => {
            OpenError::Refused { url: shown.to_owned(), reason: refusal.to_string() }
        }
    }
}

/// Brings the schema up to date.
async fn migrate(connection: &mut PgConnection, shown: &str) -> Result<(), OpenError> {
    // Migrations may take long; the common case, a schema that is up to date, is found out with a short limit of time.
    let newest = pool::short(reads::newest_migration(connection)).await.ok();
    let known = MIGRATIONS.iter().map(|migration| migration.version).max();
    let applied = migrations::apply(&MIGRATIONS, connection, shown);
    if newest.is_some() && newest == known {
        let silent = |_| unreachable(shown, sqlx::Error::PoolTimedOut);
        tokio::time::timeout(pool::LONG, applied).await.map_err(silent)?
    } else {
        applied.await
    }
}

/// Warns about settings that an operator may switch off in a test, but not in production.
async fn warn_of_settings(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let off: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes', 'data_checksums']) AS name \
         WHERE current_setting(name, true) = 'off'",
    )
    .fetch_all(connection)
    .await?;
    for name in off {
        let danger = match &*name {
            "data_checksums" => "damage on the database's disk goes unnoticed",
            _ => "a crash of the database's host may lose or damage everything",
        };
        tracing::warn!("{name} is off: {danger}");
    }
    Ok(())
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
        let mut connection = self.pool.acquire().await?;
        let begun = match short(batch::begin(&mut connection)).await {
            Ok(begun) if begun.base >= floor => begun,
            other => {
                connection.discard();
                return Err(other.map_or_else(|e| e, |begun| Error::Regressed { floor, found: begun.base }));
            }
        };
        connection.observe(begun.base, begun.flushed);
        let mutations = batch.close();
        let found = short(batch::look_up(&mut connection, mutations, terms.fence)).await;
        let counted = match &found {
            Ok(found) => {
                let counted = counted_versions(mutations, &found.live);
                short(batch::values_of(&mut connection, &counted)).await
            }
            Err(_) => Ok(HashMap::new()),
        };
        let judged = found.and_then(|JudgeInput { live, registered, format }| {
            let found = Found { live: &live, counted: &counted?, registered, compacted: begun.compacted };
            Ok((judge_under(mutations, begun.base, found, terms)?, format))
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
            Ok(()) if connection.is_current() => {
                self.pool.keep(connection);
                Ok(commit)
            }
            // Another server has been promoted meanwhile, and it may not have this commit.
            Ok(()) => {
                connection.discard();
                let error = Error::Unavailable("the database has been promoted".into());
                let settled = self.settle(&begun.transaction, mutations, writes, error).await;
                settled.map(|()| commit)
            }
            Err(Failure::Before(error)) => {
                connection.discard();
                Err(error)
            }
            Err(Failure::During(error)) => {
                connection.leave();
                let settled = self.settle(&begun.transaction, mutations, writes, error).await;
                settled.map(|()| commit)
            }
        }
    }

    async fn hold_to(&self, mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        self.connector.hold_to(mark);
        self.pool.forget_idle();
        self.scans.forget_idle();
        let looked = self.pool.try_acquire().await;
        looked.map(drop).map_err(|error| not_opened(&self.shown, error))
    }

    async fn clock(&self) -> Result<Clock, Error> {
        let mut connection = self.pool.acquire().await?;
        let clock = short(reads::clock(&mut connection)).await;
        checked(connection, clock)
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        reads::scan(&self.scans, scan, at).await
    }

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        long(reads::live_revisions(&self.scans, resources, at)).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        reads::rows_of(&self.scans, revisions).await
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

    /// Does nothing: autovacuum does the work.
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

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let rows: Vec<&AuditRow> = rows.iter().collect();
        let added = short(audit::insert(&mut connection, &rows).map_err(unavailable)).await;
        checked(connection, added)
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        let mut connection = self.pool.acquire().await?;
        let found = long(audit::find(&mut connection, query)).await;
        checked(connection, found)
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        let mut connection = self.pool.acquire().await?;
        let removed = long(audit::remove(&mut connection, removal)).await;
        checked(connection, removed)
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

/// Discards the connection if the result is an error, so that it does not return to the pool.
fn checked<T>(connection: Lent, result: Result<T, Error>) -> Result<T, Error> {
    if result.is_err() {
        connection.discard();
    }
    result
}
