//! Sessions of PostgreSQL: how a session starts, and how a stuck one is ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::{Route, TlsTarget, Transport};
use super::lineage::{self, BackendId, Lineage};
use super::link::{self, Link};
use crate::storage::mark::HighWaterMark;

/// How long a new session may take until it is ready for work.
const BEGIN: Duration = Duration::from_secs(5);
/// A session that does not answer in this time is busy, or its peer is gone.
pub const PING: Duration = Duration::from_secs(1);
/// How long it may take to end a stuck session from another connection.
const TERMINATE: Duration = Duration::from_secs(5);

/// Settings of every session, whatever the defaults of the role or the database are. The limits of time for statements
/// are this server's own (`pool.rs`). A wait for a lock ends before those limits, and so does a backend whose client is
/// gone, which would otherwise wait for ever. Settings that this release of PostgreSQL does not have are left out.
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

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server's session. If a server stops within a transaction, or is cut off, its session loses the clock's lock
    /// after five seconds, since all other servers wait for the lock.
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
                "('idle_in_transaction_session_timeout', '5s'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'), \
                 ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_hashjoin', 'off'), \
                 ('enable_mergejoin', 'off'), ('enable_indexscan', 'on'), ('enable_indexonlyscan', 'on'), \
                 ('enable_nestloop', 'on')"
            }
            // A statement that changes a table waits for all readers of the table, and everybody else waits behind it.
            Purpose::Whole => "('idle_in_transaction_session_timeout', '0'), ('lock_timeout', '30s')",
        }
    }
}

/// Applies the settings that the store relies on.
pub async fn prepare(connection: &mut PgConnection, purpose: Purpose) -> Result<(), sqlx::Error> {
    let settings = format!(
        "SELECT set_config(name, value, false) FROM (VALUES {ALWAYS}, {}) AS settings (name, value) \
         WHERE current_setting(name, true) IS NOT NULL; {DURABLE}",
        purpose.settings(),
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    match connection.execute(sqlx::raw_sql(WATCH_CLIENT)).await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A connection that is ready for work.
pub struct Session {
    pub connection: PgConnection,
    pub timeline: u32,
    pub born: Instant,
    backend: BackendId,
}

/// Opens sessions. Clones share what is known about the database.
#[derive(Clone)]
pub struct Connector {
    options: PgConnectOptions,
    link: Option<Arc<Link>>,
    lineage: Arc<Lineage>,
    /// Only one session at a time is ended from another connection: a database in trouble should not get more
    /// connections.
    ending: Arc<Semaphore>,
}

impl Connector {
    /// Finds out how the database can be reached, without keeping a connection.
    pub async fn new(route: Route, lineage: Lineage) -> Result<Self, sqlx::Error> {
        for warning in &route.warnings {
            tracing::warn!("{warning}");
        }
        let connector = Self {
            options: route.options,
            link: None,
            lineage: Arc::new(lineage),
            ending: Arc::new(Semaphore::new(1)),
        };
        match route.transport {
            Transport::Plain => Ok(connector),
            Transport::Tls(target) => connector.over_tls(target),
            Transport::PlainElseTls(target) => match connector.connect(Purpose::Whole).await {
                // The server is there, but does not accept connections in plain text.
                Err(sqlx::Error::Database(plain)) => {
                    let secured = connector.clone().over_tls(target)?;
                    match secured.connect(Purpose::Whole).await {
                        Ok(_) => Ok(secured),
                        Err(_) => Err(sqlx::Error::Database(plain)),
                    }
                }
                _ => Ok(connector),
            },
        }
    }

    fn over_tls(mut self, target: TlsTarget) -> Result<Self, sqlx::Error> {
        let link = Link::open(target)?;
        self.options = link.route(self.options);
        self.link = Some(Arc::new(link));
        Ok(self)
    }

    /// Options that lead to the database as all sessions do. A link stays open as long as the connector.
    pub fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    pub fn hold_to(&self, mark: &Arc<HighWaterMark>) {
        self.lineage.hold_to(mark);
    }

    /// Opens a connection for work outside a server.
    pub async fn connect(&self, purpose: Purpose) -> Result<PgConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            prepare(&mut connection, purpose).await?;
            Ok(connection)
        };
        timeout(BEGIN, connecting).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(untold)
    }

    /// Opens a session, and checks that it leads to the database that this server knows.
    pub async fn begin(&self) -> Result<Session, lineage::Error> {
        let beginning = async {
            let mut connection = self.options.connect().await?;
            prepare(&mut connection, Purpose::Store).await?;
            let (backend, timeline) = self.lineage.follow(&mut connection).await?;
            Ok(Session { connection, timeline, born: Instant::now(), backend })
        };
        match timeout(BEGIN, beginning).await {
            Ok(Err(lineage::Error::Sql(error))) => Err(untold(error).into()),
            Ok(result) => result,
            Err(_) => Err(sqlx::Error::PoolTimedOut.into()),
        }
    }

    /// Ends a session, whatever state it is in. A busy session is terminated by the database: otherwise it would go on,
    /// and wait, after this server has forgotten it. COMMIT must not be under way: while it waits for a standby its
    /// rows are invisible, and ending the wait would make them visible.
    pub async fn end(&self, mut session: Session) {
        match timeout(PING, session.connection.ping()).await {
            Ok(Ok(())) => drop(timeout(PING, session.connection.close()).await),
            Ok(Err(_)) => {}
            Err(_) => drop(timeout(TERMINATE, self.terminate(&session.backend)).await),
        }
    }

    async fn terminate(&self, backend: &BackendId) -> Result<(), sqlx::Error> {
        let Ok(_turn) = self.ending.acquire().await else { return Ok(()) };
        let mut connection = self.options.connect().await?;
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

/// Turns an error that the link has made up into an error of the connection, since it did not come from the database.
fn untold(error: sqlx::Error) -> sqlx::Error {
    match error {
        sqlx::Error::Database(told) if told.code().as_deref() == Some(link::NO_CONNECTION) => {
            sqlx::Error::Io(std::io::Error::other(told.message().to_owned()))
        }
        other => other,
    }
}
