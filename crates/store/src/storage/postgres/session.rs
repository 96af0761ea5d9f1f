//! Sessions of PostgreSQL: how a session starts, how it goes from one schema to another one, and how a stuck one is ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::Wanted;
use super::hosts::{Host, Hosts, unanswered};
use super::lineage::{self, BackendId, ClusterId, Lineage};
use super::numbers::Numbers;
use super::places::StoreKey;
use super::whole;
use crate::failpoints::{Bug, strikes};
use crate::storage::mark::HighWaterMark;

/// How long a session that has been accepted may take until it is ready for work.
const BEGIN: Duration = Duration::from_secs(5);
/// A session that does not answer in this time is busy, or its peer is gone.
pub const PING: Duration = Duration::from_secs(1);
/// How long it may take to end a stuck session from another connection.
const TERMINATE: Duration = Duration::from_secs(5);

/// Settings of every session, whatever the defaults of the role or the database are. The limits of time for statements
/// are this server's own (`pool.rs`). A wait for a lock ends before those limits, and so does a backend whose client is
/// gone, which would otherwise wait for ever: its keepalive ends an idle one, and `tcp_user_timeout` one whose last answer
/// is not acknowledged. (Backups have no such timeout, since it would also end a stream that nobody reads for a while.) Settings that this release of PostgreSQL does not have are left out.
const ALWAYS: &str = "('statement_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'), \
     ('lock_timeout', '8s'), ('default_transaction_isolation', 'read committed'), \
     ('default_transaction_read_only', 'off'), ('default_transaction_deferrable', 'off'), \
     ('standard_conforming_strings', 'on'), ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '10'), \
     ('tcp_keepalives_count', '3')";

/// Makes an answered write durable. A stronger setting of the operator's stays.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";

/// How often a busy backend checks whether its client is still connected. Refused by servers on systems that cannot
/// tell.
const WATCH_CLIENT: &str = "SET client_connection_check_interval = '2s'";

/// The purpose of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server's session. No transaction of it holds the clock's lock between two messages, nor any that other servers wait
    /// for; whatever stands between two messages ends after five seconds if the server stops or is cut off.
    ///
    /// Every statement of the store is written for an index, and plans are kept for as long as the session lives.
    /// Sequential scans are disabled, since a plan that was made while the tables were small would otherwise scan them
    /// completely ever after.
    Store,
    /// A session for changing the schema, or for reading everything in one transaction.
    Whole,
}

impl Purpose {
    fn settings(self) -> &'static str {
        match self {
            Purpose::Store => {
                "('idle_in_transaction_session_timeout', '5s'), ('tcp_user_timeout', '30s'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'), \
                 ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_hashjoin', 'off'), \
                 ('enable_mergejoin', 'off'), ('enable_indexscan', 'on'), ('enable_indexonlyscan', 'on'), \
                 ('enable_nestloop', 'on')"
            }
            // A statement that changes a table waits for all readers of the table, and everybody else waits behind it.
            Purpose::Whole => "('idle_in_transaction_session_timeout', '0'), ('lock_timeout', '30s')",
        }
    }
}

/// The schema that has a store's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The first one of the session's `search_path`, as the URL, the role or the database sets it.
    Default,
    /// A schema of this name.
    Named(Box<str>),
}

impl Schema {
    /// The statement that makes it the session's only schema.
    fn enter(&self) -> String {
        match self {
            Schema::Default => "RESET search_path".to_owned(),
            Schema::Named(name) => format!("SET search_path TO {}", whole::identifier(name)),
        }
    }
}

/// Applies the settings that the store relies on.
pub async fn prepare(
    connection: &mut PgConnection,
    purpose: Purpose,
    schema: &Schema,
) -> Result<(), sqlx::Error> {
    let durable = if strikes(Bug::CommitNotSynced) { "" } else { DURABLE };
    let settings = format!(
        "SELECT set_config(name, value, false) FROM (VALUES {ALWAYS}, {}) AS settings (name, value) \
         WHERE current_setting(name, true) IS NOT NULL; {}; {durable}",
        purpose.settings(),
        schema.enter(),
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    match connection.execute(sqlx::raw_sql(WATCH_CLIENT)).await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A connection that is ready for the work of one store.
pub struct Session {
    pub connection: PgConnection,
    pub timeline: u32,
    pub born: Instant,
    host: Arc<Host>,
    backend: BackendId,
    /// The store whose schema it is in, and the looks at the database that stores have taken through it.
    store: StoreKey,
    looks: BTreeSet<u64>,
}

impl Session {
    /// The store that has used it last.
    pub fn store(&self) -> StoreKey {
        self.store
    }

    /// How many stores have used it.
    pub fn stores(&self) -> usize {
        self.looks.len()
    }
}

/// The way to a database. Clones share what is known about it.
#[derive(Clone)]
pub struct Ways {
    pub hosts: Arc<Hosts>,
    /// Only one session at a time is ended from another connection: a database in trouble should not get more
    /// connections.
    ending: Arc<Semaphore>,
    /// The number of the last look at the database, and of the last store.
    last: Arc<AtomicU64>,
}

impl Ways {
    pub fn new(hosts: Hosts) -> Self {
        Self { hosts: Arc::new(hosts), ending: Arc::new(Semaphore::new(1)), last: Arc::default() }
    }

    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Opens the sessions of one store. Clones share what the store knows about its database.
#[derive(Clone)]
pub struct Connector(Arc<Known>);

struct Known {
    ways: Ways,
    store: StoreKey,
    schema: Schema,
    lineage: Lineage,
    numbers: Numbers,
    /// The number of the look that every session must have had before this store uses it.
    look: AtomicU64,
}

impl Connector {
    pub fn new(ways: &Ways, schema: Schema, accepted: Option<ClusterId>) -> Self {
        Self(Arc::new(Known {
            ways: ways.clone(),
            store: ways.next(),
            schema,
            lineage: Lineage::new(accepted),
            numbers: Numbers::default(),
            look: AtomicU64::new(ways.next()),
        }))
    }

    pub fn store(&self) -> StoreKey {
        self.0.store
    }

    pub fn lineage(&self) -> &Lineage {
        &self.0.lineage
    }

    pub fn numbers(&self) -> &Numbers {
        &self.0.numbers
    }

    /// From now on, compares the database with what the mark remembers, sessions that are open already too.
    pub fn hold_to(&self, mark: &Arc<HighWaterMark>) {
        self.0.lineage.hold_to(mark);
        self.0.look.store(self.0.ways.next(), Ordering::Release);
    }

    /// Opens a connection for work outside a server. Returns its host too.
    pub async fn connect(&self, purpose: Purpose) -> Result<(PgConnection, Arc<Host>), lineage::Error> {
        let mut failures = Vec::new();
        for (host, wanted) in self.0.ways.hosts.in_order() {
            let connecting = async {
                let mut connection = host.connect_to(wanted).await?;
                ready(prepare(&mut connection, purpose, &self.0.schema)).await?;
                Ok(connection)
            };
            match connecting.await {
                Ok(connection) => {
                    self.0.ways.hosts.note(&host);
                    return Ok((connection, host));
                }
                Err(error) => failures.push((host.name.clone(), error)),
            }
        }
        Err(lineage::Error::nowhere(failures))
    }

    /// Opens a session, and checks that it leads to the database that this server knows: of several hosts the first for
    /// which that is true.
    pub async fn begin(&self) -> Result<Session, lineage::Error> {
        let mut failures = Vec::new();
        for (host, wanted) in self.0.ways.hosts.in_order() {
            match self.begin_at(&host, wanted).await {
                Ok(session) => {
                    self.0.ways.hosts.note(&host);
                    return Ok(session);
                }
                Err(error) => failures.push((host.name.clone(), error)),
            }
        }
        Err(lineage::Error::nowhere(failures))
    }

    async fn begin_at(&self, host: &Arc<Host>, wanted: Wanted) -> Result<Session, lineage::Error> {
        let mut connection = host.connect_to(wanted).await?;
        let Known { store, schema, lineage, .. } = &*self.0;
        let look = self.0.look.load(Ordering::Acquire);
        let (backend, timeline) = ready(async {
            prepare(&mut connection, Purpose::Store, schema).await?;
            let (backend, timeline) = lineage.follow(&mut connection).await?;
            self.0.numbers.keep(&mut connection, timeline).await?;
            Ok::<_, lineage::Error>((backend, timeline))
        })
        .await?;
        let (born, host, looks) = (Instant::now(), host.clone(), BTreeSet::from([look]));
        Ok(Session { connection, timeline, born, host, backend, store: *store, looks })
    }

    /// Whether this store used the session last, and has looked at the database through it.
    pub fn is_at_home(&self, session: &Session) -> bool {
        session.store == self.0.store && session.looks.contains(&self.0.look.load(Ordering::Acquire))
    }

    /// Makes the session of another store one of this store's. Through each session, each store looks once whether it
    /// leads to the database that this store knows.
    pub async fn enter(&self, session: &mut Session) -> Result<(), lineage::Error> {
        let Known { store, schema, lineage, numbers, .. } = &*self.0;
        let look = self.0.look.load(Ordering::Acquire);
        ready(async {
            if session.store != *store {
                whole::run(&mut session.connection, schema.enter()).await?;
                session.store = *store;
            }
            if !session.looks.contains(&look) {
                let (_backend, timeline) = lineage.follow(&mut session.connection).await?;
                numbers.keep(&mut session.connection, timeline).await?;
                session.looks.insert(look);
            }
            Ok(())
        })
        .await
    }

    /// Ends a session, whatever state it is in. A busy session is terminated by the database: otherwise it would go on,
    /// and wait, after this server has forgotten it. No batch may be under way: while its commit waits for a
    /// standby its rows are invisible, and ending the wait would make them visible.
    pub async fn end(&self, mut session: Session) {
        match timeout(PING, session.connection.ping()).await {
            Ok(Ok(())) => drop(timeout(PING, session.connection.close()).await),
            Ok(Err(_)) => {}
            Err(_) => drop(timeout(TERMINATE, self.terminate(&session)).await),
        }
    }

    async fn terminate(&self, session: &Session) -> Result<(), sqlx::Error> {
        let Ok(_turn) = self.0.ways.ending.acquire().await else { return Ok(()) };
        let (backend, mut connection) = (&session.backend, session.host.connect().await?);
        sqlx::query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = $1 AND backend_start::text IS NOT DISTINCT FROM $2",
        )
        .bind(backend.process)
        .bind(&backend.started)
        .execute(&mut connection)
        .await?;
        connection.close().await
    }
}

async fn ready<T, E: From<sqlx::Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    timeout(BEGIN, work).await.unwrap_or_else(|_| Err(unanswered(BEGIN).into()))
}
