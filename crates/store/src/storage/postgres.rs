//! PostgreSQL: any number of servers share one database and take turns by the lock on the clock's row.

mod address;
mod audit;
mod batch;
mod charged;
mod commit;
mod database;
mod engine;
pub(super) mod error;
mod fate;
mod flight;
mod history;
mod holder;
mod hosts;
mod lent;
mod lineage;
mod link;
mod listener;
mod needs;
mod numbers;
mod places;
mod pool;
mod pooler;
mod procedure;
mod reads;
mod registration;
mod rows;
mod session;
mod ticket;
mod tls;
mod transfer;
mod upkeep;
mod whole;

use std::sync::LazyLock;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;

pub use self::address::Address;
use self::charged::Remembered;
pub use self::database::{Database, Databases};
use self::database::{make_schema, schema_named};
use self::flight::Flights;
use self::holder::Through;
use self::lent::Lent;
pub use self::lineage::ClusterId;
use self::listener::{Channel, Listener};
use self::places::Lane;
pub use self::places::Sizes;
use self::pool::{LONG, Pool, SHORT, long, short};
use self::session::{Connector, Purpose};
use self::ticket::Tickets;
pub use self::transfer::foreign_snapshot;
use super::history::KnownAuthors;
use super::migrations::embedded_migrations;
use super::{
    Batch, BlockStream, Changes, Clock, Commit, Commits, DriverError, Error, Feed, OpenError, Reads,
    ResourceId, RowStream, Scan, Stale, StaleRow, Terms, migrations,
};
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;

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
    "0012_history.sql",
    "0013_counting.sql",
);

/// A store in one PostgreSQL schema.
pub struct Postgres {
    database: Database,
    connector: Connector,
    pool: Pool,
    scans: Pool,
    repairs: Pool,
    listener: Listener,
    channel: Channel,
    tickets: Tickets,
    flights: Flights,
    /// The number of the format in which the last batch was written.
    format: AtomicI32,
    remembered: tokio::sync::Mutex<Remembered>,
    authors: KnownAuthors,
}

impl Postgres {
    /// Connects and migrates the schema, with connections for this store alone. The tables live in the schema that the URL
    /// names, or else in the connection's current schema.
    pub async fn open(address: impl Into<Address>) -> Result<Self, OpenError> {
        Self::open_in(&Database::new(address)?, None).await
    }

    /// Opens the store in a schema of a database, and migrates it. `None` is the schema that the database's URL names, or else
    /// the connection's current one. A schema that is named is made if it is not there. Stores of several schemas share the database's connections and nothing else.
    pub async fn open_in(database: &Database, schema: Option<&str>) -> Result<Self, OpenError> {
        let shown = database.shown();
        let schema = schema_named(shown, schema.or(database.schema()))?;
        let connector = database.connector(schema.clone());
        let pool = Pool::join(database.sessions(), connector.clone());
        let place = pool.reserve().await.map_err(|error| not_opened(shown, error))?;
        let connected = connector.connect(Purpose::Whole).await;
        let (mut connection, host) = connected.map_err(|error| not_opened(shown, error))?;
        soon(shown, SHORT, database.check(&host, &mut connection)).await?;
        soon(shown, SHORT, make_schema(&mut connection, shown, &schema)).await?;
        migrate(&connector, &mut connection, shown).await?;
        soon(shown, SHORT, procedure::check(&mut connection, shown)).await?;
        let channel = async { channel(&mut connection).await.map_err(|error| unreachable(shown, error)) };
        let channel = soon(shown, SHORT, channel).await?;
        let _ = connection.close().await;
        drop(place);
        let connection = pool.try_acquire().await.map_err(|error| not_opened(shown, error))?;
        pool.keep(connection);
        Ok(Self {
            listener: database.listeners().add(channel.clone()),
            database: database.clone(),
            connector,
            scans: pool.lane(Lane::Scans),
            repairs: pool.lane(Lane::Repairs),
            pool,
            tickets: Tickets::new(&channel.sender),
            flights: Flights::new(),
            format: AtomicI32::new(ValueFormat::NEWEST.number()),
            remembered: tokio::sync::Mutex::default(),
            authors: KnownAuthors::default(),
            channel,
        })
    }
}

fn unreachable(shown: &str, source: impl Into<DriverError>) -> OpenError {
    OpenError::Unreachable { url: shown.to_owned(), source: source.into() }
}

fn not_opened(shown: &str, error: lineage::Error) -> OpenError {
    match error {
        lineage::Error::Sql(source) => unreachable(shown, source),
        lineage::Error::Refused(refusal) => {
            OpenError::Refused { url: shown.to_owned(), reason: refusal.to_string() }
        }
        nowhere @ lineage::Error::Nowhere(_) => unreachable(shown, nowhere.to_string()),
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
impl Commits for Postgres {
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        self.commit_batch(batch, terms).await
    }

    fn pipeline_depth(&self) -> usize {
        // The second one waits for its turn, and gathers meanwhile.
        flight::MOST + 1
    }
}

#[async_trait]
impl Reads for Postgres {
    async fn clock(&self) -> Result<Clock, Error> {
        let mut connection = self.pool.acquire().await?;
        let clock = short(reads::clock(&mut connection)).await;
        checked(connection, clock)
    }

    async fn size(&self) -> Result<Option<u64>, Error> {
        short(upkeep::size(&self.pool)).await.map(Some)
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

    async fn lag_at(&self, at: Revision) -> Result<i64, Error> {
        long(reads::lag_at_revision(&self.pool, at)).await
    }

    async fn sequence_of(&self, revision: i64) -> Result<Revision, Error> {
        long(reads::sequence(&self.pool, revision)).await
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
        let read = async {
            let mut connection = self.pool.acquire().await?;
            reads::stale_rows(&mut connection, stale, after, limit).await
        };
        long(read).await
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        let count = async {
            let mut connection = self.pool.acquire().await?;
            reads::stale_count(&mut connection, stale).await
        };
        long(count).await
    }
}

#[async_trait]
impl Feed for Postgres {
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        reads::changes(&self.pool, after, resource, limit).await
    }

    async fn hint(&self) {
        self.listener.hint().await
    }

    fn shared(&self) -> bool {
        true
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
