//! Sessions of PostgreSQL: how one begins, and how one that is stuck is ended.

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

/// Until a session is ready for work.
const BEGIN: Duration = Duration::from_secs(5);
/// A session that does not answer in this time is at work, or its peer is gone.
pub const PING: Duration = Duration::from_secs(1);
/// To end a stuck session from outside.
const TERMINATE: Duration = Duration::from_secs(5);

/// In every session, whatever are the defaults of the role or the database. Work is given up by this server's own limits of
/// time (`pool.rs`); a wait for a lock ends before them, and so does a backend whose client is gone, that would wait for
/// ever. Settings that this release of PostgreSQL does not have are left out.
const ALWAYS: &str = "('statement_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'), \
     ('lock_timeout', '8s'), ('default_transaction_isolation', 'read committed'), \
     ('default_transaction_read_only', 'off'), ('default_transaction_deferrable', 'off'), \
     ('standard_conforming_strings', 'on'), ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '10'), \
     ('tcp_keepalives_count', '3')";

/// An answered write is durable where the operator wants it to be: stronger settings stay.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";

/// A backend at work looks this often whether its client is still there. Refused where the system cannot tell.
const WATCH_CLIENT: &str = "SET client_connection_check_interval = '2s'";

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server that stops within a transaction, or is cut off, holds the clock's lock no longer than five seconds:
    /// everybody else waits for it.
    ///
    /// Every statement of the store is written for its indexes, and plans are kept for as long as the session lives. A
    /// planner that knows the tables only as they were when small would read them from end to end ever after.
    Store,
    /// The schema may be changed, or all of it read in one transaction.
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
            // Whoever changes a table waits for all who read it, and everybody else waits in turn.
            Purpose::Whole => "('idle_in_transaction_session_timeout', '0'), ('lock_timeout', '30s')",
        }
    }
}

/// Makes the session's settings what the store relies on.
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

/// A session that is ready for work.
pub struct Session {
    pub connection: PgConnection,
    pub timeline: u32,
    pub born: Instant,
    backend: BackendId,
}

/// Makes sessions. Clones share what they know of the database.
#[derive(Clone)]
pub struct Connector {
    options: PgConnectOptions,
    link: Option<Arc<Link>>,
    lineage: Arc<Lineage>,
    /// One session is ended from outside at a time: a database in trouble needs no more connections.
    ending: Arc<Semaphore>,
}

impl Connector {
    /// Finds out how the database is reached, and leaves it at that.
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
                // Not for want of a server, but since it does not take this kind of link.
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

    /// As everybody else connects; the link stays as long as the connector.
    pub fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    pub fn hold_to(&self, mark: &Arc<HighWaterMark>) {
        self.lineage.hold_to(mark);
    }

    /// A connection for work that is not a server's.
    pub async fn connect(&self, purpose: Purpose) -> Result<PgConnection, sqlx::Error> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            prepare(&mut connection, purpose).await?;
            Ok(connection)
        };
        timeout(BEGIN, connecting).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(untold)
    }

    /// A session on the database that this server knows.
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

    /// Ends a session, in whatever state it is. One that is at work is ended by the database: it would go on, and wait,
    /// after this server has forgotten it. COMMIT must not be under way: while it waits for a standby, nobody sees
    /// what it has written, and to end the wait would show it.
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

/// What the link has to say is not the database's word.
fn untold(error: sqlx::Error) -> sqlx::Error {
    match error {
        sqlx::Error::Database(told) if told.code().as_deref() == Some(link::NO_CONNECTION) => {
            sqlx::Error::Io(std::io::Error::other(told.message().to_owned()))
        }
        other => other,
    }
}
