//! Connections to PostgreSQL, none of which anybody waits for without an end: a peer that is gone without a word (a
//! machine that died, a firewall that forgot) must cost a moment, not the server.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor, Postgres};
use tokio::time::timeout;

use super::error::unavailable;
use super::timeline;
use crate::storage::Error;

/// A connection that has rested longer is asked whether it is still there before it is used.
const TRUSTED: Duration = Duration::from_millis(250);
/// And has so long to say so.
const PING: Duration = Duration::from_secs(1);
/// At most so many rest where only batches find them.
const WARM: usize = 2;
const ACQUIRE: Duration = Duration::from_secs(5);
/// What is short work, the wait for other servers' batches included, is done by then.
const SHORT: Duration = Duration::from_secs(10);
/// For work whose length grows with the data.
pub const LONG: Duration = Duration::from_secs(60);

/// In every session. An answered write is durable, whatever is the default of the role or the database; stronger
/// settings stay. And a server that stops within a transaction, or is cut off, holds the clock's lock no longer than
/// this: everybody else waits for it.
///
/// Every statement here is written for its indexes, and plans are kept for as long as the connection lives. A planner that
/// knows the tables only as they were when small would read them from end to end ever after.
const SETTINGS: &str = "SELECT set_config(name, value, false) FROM (VALUES \
     ('idle_in_transaction_session_timeout', '5s'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'), \
     ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off')) \
     AS settings (name, value); \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Clones share their connections.
#[derive(Clone)]
pub struct Pool {
    pool: PgPool,
    warm: Arc<Mutex<Warm>>,
}

/// Connections that rest outside sqlx's pool, for it asks every connection that comes back whether it answers: a round
/// trip for each batch.
#[derive(Default)]
struct Warm {
    connections: Vec<(PoolConnection<Postgres>, Instant)>,
    closed: bool,
}

impl Pool {
    /// Connects when a connection is needed. The schema has to be up to date.
    pub fn new(options: PgConnectOptions, connections: u32) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE)
            // Testing every time would cost each batch a round trip; not at all, a request per dead connection.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(is_there(connection, meta.idle_for).await) })
            })
            .after_connect(|connection, _| Box::pin(prepare(connection)));
        Self { pool: pool.connect_lazy_with(options), warm: Arc::default() }
    }

    pub async fn acquire(&self) -> Result<Lent, Error> {
        self.try_acquire().await.map_err(unavailable)
    }

    /// As `acquire`, for who tells what is wrong with the database.
    pub async fn try_acquire(&self) -> Result<Lent, sqlx::Error> {
        Ok(Lent(Some(self.pool.acquire().await?)))
    }

    /// As `acquire`, preferably a connection that was [kept](Self::keep).
    pub async fn acquire_warm(&self) -> Result<Lent, Error> {
        while let Some((connection, since)) = self.take_warm() {
            let mut lent = Lent(Some(connection));
            if is_there(&mut lent, since.elapsed()).await {
                return Ok(lent);
            }
            lent.discard();
        }
        self.acquire().await
    }

    /// Takes back a connection that is known to be in order and outside any transaction.
    pub fn keep(&self, mut lent: Lent) {
        let mut warm = self.warm();
        if !warm.closed
            && warm.connections.len() < WARM
            && let Some(connection) = lent.0.take()
        {
            warm.connections.push((connection, Instant::now()));
        }
    }

    pub async fn close(&self) {
        let warm = {
            let mut warm = self.warm();
            warm.closed = true;
            std::mem::take(&mut warm.connections)
        };
        // sqlx waits for those that are on loan.
        for (connection, _) in warm {
            drop(Lent(Some(connection)));
        }
        self.pool.close().await;
    }

    fn take_warm(&self) -> Option<(PoolConnection<Postgres>, Instant)> {
        self.warm().connections.pop()
    }

    fn warm(&self) -> MutexGuard<'_, Warm> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of its own, before there is a schema.
pub async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    timeout(ACQUIRE, options.connect()).await.map_err(|_| sqlx::Error::PoolTimedOut)?
}

async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(SETTINGS)).await?;
    timeline::follow(connection).await
}

async fn is_there(connection: &mut PgConnection, rested: Duration) -> bool {
    rested < TRUSTED || timeout(PING, connection.ping()).await.is_ok_and(|answer| answer.is_ok())
}

/// A connection on loan. When it is dropped it goes back, if it still answers then.
pub struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    /// Ends the connection, in whatever state it is.
    pub fn discard(mut self) {
        drop(self.0.take().map(PoolConnection::detach));
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect("lent until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("lent until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut connection) = self.0.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return drop(connection.detach());
        };
        // sqlx asks every connection that comes back whether it answers, and by itself would wait for that for ever,
        // with a place in the pool taken.
        runtime.spawn(timeout(SHORT, connection.return_to_pool()));
    }
}

/// Work that is given up if the database has not answered it after a while.
pub async fn short<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(SHORT, work).await
}

/// As [`short`], for work whose length grows with the data.
pub async fn long<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(LONG, work).await
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let unanswered = || Error::Unavailable(format!("no answer within {} s", limit.as_secs()).into());
    timeout(limit, work).await.unwrap_or_else(|_| Err(unanswered()))
}
