//! A pool of connections to PostgreSQL in which every wait has a limit: a peer that vanished silently (a machine that
//! died, a firewall that forgot the connection) must cost a moment, not the server.
//!
//! sqlx's pool would not do: it probes every connection that is returned, a round trip for each batch; it does not tell
//! why a new connection was refused; and it forgets a connection that is given up while that connection's backend still
//! waits.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Postgres, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::lineage::{self, Refusal};
use super::session::{Connector, PING, Session};
use super::whole;
use crate::storage::Error;

/// A connection that was idle for longer is probed before it is used.
const TRUSTED: Duration = Duration::from_millis(250);
const ACQUIRE: Duration = Duration::from_secs(5);
/// Enough for every short statement, including the wait for other servers' batches.
pub const SHORT: Duration = Duration::from_secs(10);
/// The limit for work that grows with the data.
pub const LONG: Duration = Duration::from_secs(60);
/// A connection that was not needed for this long is closed.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// A connection is closed at this age, since its backend keeps memory for every statement and table that it has used.
const OLD: Duration = Duration::from_secs(30 * 60);
/// The pause between attempts to connect: doubles after each failure, from the first value up to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Clones share their connections.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    connector: Connector,
    /// A permit is held for every connection that is lent, and for one that was given up until its backend has ended:
    /// there are never more backends than permits.
    places: Arc<Semaphore>,
    idle: Mutex<Idle>,
    trouble: Mutex<Trouble>,
}

#[derive(Default)]
struct Idle {
    /// Idle sessions in the order of their last use. The one used last is taken first.
    sessions: Vec<(Session, Instant)>,
    /// When a connection was last found broken. Those that were idle then are asked whether they are there before a batch
    /// goes out on one of them, of which nobody could say what became of it.
    broken: Option<Instant>,
    closed: bool,
}

/// Failures to connect since the last success.
#[derive(Default)]
struct Trouble {
    failures: u32,
    /// Nobody tries to connect before this time.
    until: Option<Instant>,
    reason: Option<String>,
}

impl Pool {
    /// Creates a pool that connects when a connection is needed. The schema must be up to date.
    pub fn new(connector: Connector, connections: usize) -> Self {
        Self(Arc::new(Shared {
            connector,
            places: Arc::new(Semaphore::new(connections)),
            idle: Mutex::default(),
            trouble: Mutex::default(),
        }))
    }

    pub async fn acquire(&self) -> Result<Lent, Error> {
        self.try_acquire().await.map_err(|error| Error::Unavailable(error.to_string().into()))
    }

    /// Like `acquire`, but returns the cause, for callers that report what is wrong with the database.
    pub async fn try_acquire(&self) -> Result<Lent, lineage::Error> {
        let deadline = Instant::now() + ACQUIRE;
        let place = tokio::time::timeout_at(deadline, self.0.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some((mut session, since, is_trusted)) = self.take_idle() {
            if self.may_serve(&session, since) && (is_trusted || answers(&mut session).await) {
                return Ok(self.lend(session, place));
            }
            tokio::spawn(close(session));
        }
        let session = self.connect(deadline).await?;
        Ok(self.lend(session, place))
    }

    /// Takes back a connection that is known to work and to be outside any transaction.
    pub fn keep(&self, mut lent: Lent) {
        if let Some(session) = lent.session.take() {
            self.rest(session);
        }
    }

    /// Closes all idle connections, since they may lead to another database than a new connection would.
    pub fn forget_idle(&self) {
        for (session, _) in std::mem::take(&mut self.idle().sessions) {
            tokio::spawn(close(session));
        }
    }

    pub async fn close(&self) {
        let resting = {
            let mut idle = self.idle();
            idle.closed = true;
            std::mem::take(&mut idle.sessions)
        };
        for (session, _) in resting {
            close(session).await;
        }
        self.0.places.close();
    }

    fn lend(&self, session: Session, place: OwnedSemaphorePermit) -> Lent {
        Lent { pool: self.clone(), session: Some(session), place: Some(place), is_unsettled: false }
    }

    fn may_serve(&self, session: &Session, since: Instant) -> bool {
        session.born.elapsed() < OLD
            && since.elapsed() < IDLE
            && self.0.connector.lineage().is_current(session.timeline)
    }

    /// Notes that a connection was found broken: others may be, too.
    pub fn doubt(&self) {
        self.idle().broken = Some(Instant::now());
    }

    /// A session, since when it is idle, and whether it is taken to be there without being asked.
    fn take_idle(&self) -> Option<(Session, Instant, bool)> {
        let mut idle = self.idle();
        let (session, since) = idle.sessions.pop()?;
        let is_trusted = since.elapsed() < TRUSTED && idle.broken.is_none_or(|broken| since > broken);
        Some((session, since, is_trusted))
    }

    fn rest(&self, session: Session) {
        let mut idle = self.idle();
        if idle.closed {
            tokio::spawn(close(session));
            return;
        }
        let now = Instant::now();
        idle.sessions.push((session, now));
        if now - idle.sessions[0].1 > IDLE {
            let (forgotten, _) = idle.sessions.remove(0);
            tokio::spawn(close(forgotten));
        }
    }

    /// Connects. While the database only needs time, tries again until the deadline. All waiting callers share the
    /// pauses between attempts.
    async fn connect(&self, deadline: Instant) -> Result<Session, lineage::Error> {
        loop {
            let until = self.trouble().until.filter(|until| *until > Instant::now());
            if let Some(until) = until {
                sleep_until(until.min(deadline)).await;
            }
            match self.0.connector.begin().await {
                Ok(session) => {
                    self.trouble().over();
                    return Ok(session);
                }
                Err(error) => {
                    self.doubt();
                    let until = self.trouble().again(&error, Instant::now());
                    if until >= deadline || !needs_time(&error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trouble {
    /// Notes a failure and returns when the next attempt may be made. Logs the reason once, and again when it changes.
    fn again(&mut self, error: &lineage::Error, now: Instant) -> Instant {
        let reason = error.to_string();
        if self.reason.as_ref() != Some(&reason) {
            tracing::warn!("cannot connect to the database: {reason}");
            self.reason = Some(reason);
        }
        let pause = BACKOFF.0.saturating_mul(1 << self.failures.min(16)).min(BACKOFF.1);
        self.failures += 1;
        let until = now + pause;
        self.until = Some(until);
        until
    }

    fn over(&mut self) {
        if std::mem::take(self).failures > 0 {
            tracing::info!("connected to the database again");
        }
    }
}

/// Whether the error may pass: the database is starting, has too many connections, or is unreachable for a moment.
fn needs_time(error: &lineage::Error) -> bool {
    match error {
        lineage::Error::Sql(sqlx::Error::Io(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        lineage::Error::Sql(sqlx::Error::Database(error)) => error.is_transient_in_connect_phase(),
        // One of the standbys is about to be promoted.
        lineage::Error::Nowhere(hosts) => hosts.iter().any(|(_, error)| {
            matches!(error, lineage::Error::Refused(Refusal::Standby)) || needs_time(error)
        }),
        _ => false,
    }
}

async fn answers(session: &mut Session) -> bool {
    timeout(PING, session.connection.ping()).await.is_ok_and(|answer| answer.is_ok())
}

async fn close(session: Session) {
    let _ = timeout(PING, session.connection.close()).await;
}

const LENT: &str = "lent until it is dropped";

/// A connection that is lent. When it is dropped it returns to the pool, provided that it still answers.
pub struct Lent {
    pool: Pool,
    session: Option<Session>,
    place: Option<OwnedSemaphorePermit>,
    /// Whether the session may be in a transaction of which sqlx does not know. It is ended then: whatever the next borrower
    /// reads would come from that transaction's snapshot.
    is_unsettled: bool,
}

impl Lent {
    /// Begins a transaction. sqlx ends it when it is dropped, but not if the caller goes away before it has begun.
    pub async fn begin(&mut self, statement: &'static str) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
        let Self { session, is_unsettled, .. } = self;
        *is_unsettled = true;
        let transaction = session.as_mut().expect(LENT).connection.begin_with(statement).await?;
        *is_unsettled = false;
        Ok(transaction)
    }

    /// Runs statements of which the first is BEGIN and the last COMMIT, and which the database gets as one message. If one
    /// of them fails, the database does not end the transaction.
    pub async fn run_transaction(&mut self, statements: String) -> Result<Vec<PgRow>, sqlx::Error> {
        self.is_unsettled = true;
        let rows = whole::run(self, statements).await?;
        self.is_unsettled = false;
        Ok(rows)
    }

    /// Something has failed on the connection, which may be broken.
    pub fn doubt(&self) {
        self.pool.doubt();
    }

    /// Ends the connection, whatever state it is in. Must not be called while its backend may be committing a batch.
    pub fn discard(mut self) {
        let (Some(session), place) = (self.session.take(), self.place.take()) else { return };
        let connector = self.pool.0.connector.clone();
        tokio::spawn(async move {
            connector.end(session).await;
            drop(place);
        });
    }

    /// Abandons a connection without ending its backend, which may be committing a batch. It ends by itself when it notices
    /// that its client is gone, and waits for the clock's lock no longer than for any lock.
    pub fn leave(mut self) {
        drop(self.session.take());
    }

    /// Notes where the session's cluster stood; see [`Lineage::observe`](lineage::Lineage::observe).
    pub fn observe(&self, revision: crate::revision::Revision, flushed: u64) {
        if let Some(session) = &self.session {
            self.pool.0.connector.lineage().observe(session.timeline, revision, flushed);
        }
    }

    /// PostgreSQL's timeline when the session began.
    pub fn timeline(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.timeline)
    }

    /// Whether this connection's timeline is still the newest that was seen.
    pub fn is_current(&self) -> bool {
        let lineage = self.pool.0.connector.lineage();
        self.session.as_ref().is_some_and(|session| lineage.is_current(session.timeline))
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.session.as_ref().expect(LENT).connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session.as_mut().expect(LENT).connection
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(mut session), place) = (self.session.take(), self.place.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = self.pool.clone();
        let is_unsettled = self.is_unsettled;
        runtime.spawn(async move {
            // The session may be in a transaction that ends with this answer, or in the middle of a list that has lost
            // its reader.
            match timeout(SHORT, session.connection.ping()).await {
                Ok(Ok(())) if is_unsettled => close(session).await,
                Ok(Ok(())) => pool.rest(session),
                Ok(Err(_)) => {}
                Err(_) => pool.0.connector.end(session).await,
            }
            drop(place);
        });
    }
}

/// Runs work that should be short; gives it up after [`SHORT`] without an answer.
pub async fn short<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(SHORT, work).await
}

/// Runs work that grows with the data; gives it up after [`LONG`] without an answer.
pub async fn long<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(LONG, work).await
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(unanswered(limit)))
}

pub fn unanswered(limit: Duration) -> Error {
    Error::Unavailable(format!("no answer within {} s", limit.as_secs()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_to_connect_become_rarer_until_one_succeeds() {
        let refused = lineage::Error::Sql(sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()));
        assert!(needs_time(&refused));
        let mut trouble = Trouble::default();
        let now = Instant::now();
        let mut pause = || trouble.again(&refused, now).duration_since(now).as_millis();
        let pauses: Vec<_> = (0..8).map(|_| pause()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        trouble.over();
        assert!(trouble.until.is_none());
        assert_eq!(trouble.again(&refused, now), now + BACKOFF.0);
    }
}
