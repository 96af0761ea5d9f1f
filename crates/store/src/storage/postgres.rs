//! PostgreSQL: any number of servers share one database and take turns by the lock on the clock's row.

mod address;
mod audit;
mod batch;
mod charged;
mod commit;
mod engine;
mod error;
mod fate;
mod flight;
mod holder;
mod hosts;
mod lineage;
mod link;
mod listener;
mod numbers;
mod pool;
mod pooler;
mod procedure;
mod reads;
mod registration;
mod rows;
mod session;
mod stale;
mod ticket;
mod tls;
mod transfer;
mod upkeep;
mod whole;

use std::sync::atomic::AtomicI32;
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
use self::charged::Remembered;
use self::error::unavailable;
pub(super) use self::error::{lacks_rights, waited_in_vain};
use self::flight::Flights;
use self::holder::Through;
use self::hosts::{Hosts, Use};
pub use self::lineage::ClusterId;
use self::lineage::Lineage;
use self::listener::{Channel, Listener};
use self::pool::{LONG, Lent, Pool, SHORT, long, short};
use self::session::{Connector, Purpose};
use self::ticket::Tickets;
use super::migrations::embedded_migrations;
use super::{
    AuditQuery, AuditRemoval, AuditRow, Backend, Batch, BlockStream, Changes, Clock, Commit, Error,
    HighWaterMark, OpenError, ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
    migrations,
};
use crate::codec::at_rest::ValueFormat;
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
    "0007_commit_batch.sql",
    "0008_identity.sql",
    "0009_turns.sql",
    "0010_audit_other_events.sql",
    "0011_audit_event_sizes.sql",
);

/// Connections for the batches under way, upkeep, and short reads. Few, since the database is shared with other replicas.
const CONNECTIONS: usize = 12;
/// Connections for lists from SQL. They are separate so that a slow client that reads a list does not hold up writes.
const SCANS: usize = 4;

/// A store in one PostgreSQL schema.
pub struct Postgres {
    connector: Connector,
    /// The URL without secrets.
    shown: String,
    pool: Pool,
    scans: Pool,
    listener: Listener,
    channel: Channel,
    tickets: Tickets,
    flights: Flights,
    /// The number of the format in which the last batch was written.
    format: AtomicI32,
    remembered: tokio::sync::Mutex<Remembered>,
}

impl Postgres {
    /// Connects and migrates the schema. The tables live in the connection's current schema.
    pub async fn open(address: impl Into<Address>) -> Result<Self, OpenError> {
        let (connector, shown) = connector(&address.into(), Use::Serving)?;
        let connected = connector.connect(Purpose::Whole).await;
        let (mut connection, host) = connected.map_err(|error| not_opened(&shown, error))?;
        let pooler =
            pooler::find(&host, &mut connection).await.map_err(|error| unreachable(&shown, error))?;
        if let Some(lends) = pooler {
            return Err(OpenError::Refused { url: shown, reason: lends.reason() });
        }
        migrate(&connector, &mut connection, &shown).await?;
        soon(&shown, SHORT, procedure::check(&mut connection, &shown)).await?;
        let channel = soon(&shown, SHORT, async {
            warn_of_settings(&mut connection).await.map_err(|error| unreachable(&shown, error))?;
            channel(&mut connection).await.map_err(|error| unreachable(&shown, error))
        });
        let channel = channel.await?;
        let _ = connection.close().await;
        let (pool, scans) = (Pool::new(connector.clone(), CONNECTIONS), Pool::new(connector.clone(), SCANS));
        let connection = pool.try_acquire().await.map_err(|error| not_opened(&shown, error))?;
        pool.keep(connection);
        Ok(Self {
            listener: Listener::spawn(connector.clone(), channel.clone(), pool.clone()),
            connector,
            shown,
            pool,
            scans,
            tickets: Tickets::new(&channel.sender),
            flights: Flights::new(),
            format: AtomicI32::new(ValueFormat::NEWEST.number()),
            remembered: tokio::sync::Mutex::default(),
            channel,
        })
    }
}

/// How to connect to a database, and its URL without secrets.
fn connector(address: &Address, used: Use) -> Result<(Connector, String), OpenError> {
    let shown = address.to_string();
    let route = address.resolve()?;
    for warning in &route.warnings {
        tracing::warn!("{warning}");
    }
    let hosts = Hosts::new(route, used).map_err(|reason| OpenError::Url { url: shown.clone(), reason })?;
    Ok((Connector::new(hosts, Lineage::new(address.accepted)), shown))
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
        nowhere @ lineage::Error::Nowhere(_) => {
            unreachable(shown, sqlx::Error::Io(std::io::Error::other(nowhere.to_string())))
        }
    }
}

/// Brings the schema up to date.
async fn migrate(connector: &Connector, connection: &mut PgConnection, shown: &str) -> Result<(), OpenError> {
    let locks = soon(shown, SHORT, async {
        engine::has_advisory_locks(connection).await.map_err(|error| unreachable(shown, error))
    });
    if !locks.await? {
        tracing::info!("the database has no advisory locks; a row is locked while the schema is changed");
        let connected = connector.connect(Purpose::Whole).await;
        let (mut lock, _host) = connected.map_err(|error| not_opened(shown, error))?;
        soon(shown, LONG, async {
            engine::lock_schema(&mut lock).await.map_err(|error| unreachable(shown, error))
        })
        .await?;
        let mut migrations = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
        let applied = migrations::apply(migrations.set_locking(false), connection, shown).await;
        let _ = lock.close().await;
        return applied;
    }
    // Migrations may take long; the common case, a schema that is up to date, is found out with a short limit of time.
    let newest = soon(shown, SHORT, async { Ok(reads::newest_migration(connection).await.ok()) }).await?;
    let known = MIGRATIONS.iter().map(|migration| migration.version).max();
    let applied = migrations::apply(&MIGRATIONS, connection, shown);
    // Others that start at once take turns.
    if newest.is_some() && newest == known {
        return soon(shown, LONG, applied).await;
    }
    // To change a table, one has to wait for all who have used it in their transactions.
    holder::outlast(Through::Connector(connector), applied).await
}

/// Ends work at the start that the database does not answer: its network may have gone without a word.
async fn soon<T>(
    shown: &str,
    limit: Duration,
    work: impl Future<Output = Result<T, OpenError>>,
) -> Result<T, OpenError> {
    let silent = |_| Err(unreachable(shown, sqlx::Error::PoolTimedOut));
    tokio::time::timeout(limit, work).await.unwrap_or_else(silent)
}

/// The channel of the connection's schema.
async fn channel(connection: &mut PgConnection) -> Result<Channel, sqlx::Error> {
    // The channel's name uses the schema's number: a name with the schema's name in it could be too long.
    let name = "SELECT 'rowplane_' || oid FROM pg_namespace WHERE nspname = current_schema()";
    let name: String = sqlx::query_scalar(name).fetch_one(&mut *connection).await?;
    let notifies = engine::notifies(connection, &name).await?;
    if !notifies {
        tracing::warn!(
            "the database has no pg_notify: the other servers find this one's changes by asking for them"
        );
    }
    Ok(Channel::new(&name, notifies))
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
        // The second one waits for its turn, and gathers meanwhile.
        flight::MOST + 1
    }

    fn shared(&self) -> bool {
        true
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        self.commit_batch(batch, terms).await
    }

    async fn hold_to(&self, mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        self.connector.hold_to(mark);
        self.pool.forget_idle();
        self.scans.forget_idle();
        let looked = self.pool.try_acquire().await;
        looked.map_err(|error| not_opened(&self.shown, error))?;
        self.connector.lineage().settle();
        Ok(())
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
        short(upkeep::resource_ids(&self.pool, self.connector.numbers(), resources)).await
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        short(upkeep::token_keys(&self.pool, now, max_age)).await
    }

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let added = short(audit::insert(&mut connection, &rows).map_err(unavailable)).await;
        checked(connection, added)
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        let mut connection = self.pool.acquire().await?;
        let found = long(audit::find(&mut connection, query, true)).await;
        checked(connection, found)
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        let mut connection = self.pool.acquire().await?;
        let removed = long(audit::remove(&mut connection, removal)).await;
        checked(connection, removed)
    }

    async fn size(&self) -> Result<Option<u64>, Error> {
        upkeep::size(&self.pool).await.map(Some)
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
    if let Err(error) = &result {
        if matches!(error, Error::Unavailable(_)) {
            connection.doubt();
        }
        connection.discard();
    }
    result
}
