//! Connections to PostgreSQL, none of which anybody waits for without an end: a peer that is gone without a word (a
//! machine that died, a firewall that forgot) must cost a moment, not the server.
//!
//! Not sqlx's pool: that asks every connection that comes back whether it answers, a round trip for each batch; it does not
//! say why a new connection was refused; and it forgets a connection that is given up, while its backend waits on.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::lineage;
use super::session::{Connector, PING, Session};
use crate::storage::Error;

/// A connection that has rested longer is asked whether it is still there before it is used.
const TRUSTED: Duration = Duration::from_millis(250);
const ACQUIRE: Duration = Duration::from_secs(5);
/// What is short work, the wait for other servers' batches included, is done by then.
const SHORT: Duration = Duration::from_secs(10);
/// For work whose length grows with the data.
pub const LONG: Duration = Duration::from_secs(60);
/// A connection that nobody has needed for so long is closed.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// And one of this age: its backend keeps memory for every statement and table it has met.
const OLD: Duration = Duration::from_secs(30 * 60);
/// Between attempts to connect: twice as long after each that failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Clones share their connections.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    connector: Connector,
    /// A permit is held for every connection on loan, and for one that is given up until its backend has ended: there are
    /// never more backends than places.
    places: Arc<Semaphore>,
    idle: Mutex<Idle>,
    trouble: Mutex<Trouble>,
}

#[derive(Default)]
struct Idle {
    /// The one used last comes last, and is taken first.
    sessions: Vec<(Session, Instant)>,
    closed: bool,
}

/// How connecting goes.
#[derive(Default)]
struct Trouble {
    failures: u32,
    /// Nobody tries before.
    until: Option<Instant>,
    reason: Option<String>,
}

impl Pool {
    /// Connects when a connection is needed. The schema has to be up to date.
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

    /// As `acquire`, for who tells what is wrong with the database.
    pub async fn try_acquire(&self) -> Result<Lent, lineage::Error> {
        let deadline = Instant::now() + ACQUIRE;
        let place = tokio::time::timeout_at(deadline, self.0.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some((mut session, since)) = self.take_idle() {
            if self.may_serve(&session, since) && is_there(&mut session, since).await {
                return Ok(self.lend(session, place));
            }
            tokio::spawn(close(session));
        }
        let session = self.connect(deadline).await?;
        Ok(self.lend(session, place))
    }

    /// Takes back a connection that is known to be in order and outside any transaction.
    pub fn keep(&self, mut lent: Lent) {
        if let Some(session) = lent.session.take() {
            self.rest(session);
        }
    }

    /// Sees the database anew: connections that rest may lead to another one.
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
        Lent { pool: self.clone(), session: Some(session), place: Some(place) }
    }

    fn may_serve(&self, session: &Session, since: Instant) -> bool {
        session.born.elapsed() < OLD
            && since.elapsed() < IDLE
            && self.0.connector.lineage().is_current(session.timeline)
    }

    fn take_idle(&self) -> Option<(Session, Instant)> {
        self.idle().sessions.pop()
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

    /// Tries until the deadline while the database only needs time, at a pace that all who need a connection share.
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
    /// When the next attempt may be made. Tells the operator once what is wrong, and again if that changes.
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

/// A database that starts, or has too many connections, or is not there for a moment.
fn needs_time(error: &lineage::Error) -> bool {
    match error {
        lineage::Error::Sql(sqlx::Error::Io(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        lineage::Error::Sql(sqlx::Error::Database(error)) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

async fn is_there(session: &mut Session, since: Instant) -> bool {
    since.elapsed() < TRUSTED
        || timeout(PING, session.connection.ping()).await.is_ok_and(|answer| answer.is_ok())
}

async fn close(session: Session) {
    let _ = timeout(PING, session.connection.close()).await;
}

/// A connection on loan. When it is dropped it goes back, if it still answers then.
pub struct Lent {
    pool: Pool,
    session: Option<Session>,
    place: Option<OwnedSemaphorePermit>,
}

impl Lent {
    /// The connection is not used again, in whatever state it is. Not for one in the middle of COMMIT.
    pub fn discard(mut self) {
        let (Some(session), place) = (self.session.take(), self.place.take()) else { return };
        let connector = self.pool.0.connector.clone();
        tokio::spawn(async move {
            connector.end(session).await;
            drop(place);
        });
    }

    /// The connection is left to the database, which is in the middle of COMMIT. There is one such backend at most, since it
    /// holds the clock's lock.
    pub fn leave(mut self) {
        drop(self.session.take());
    }

    /// Where the session's cluster stood; see [`Lineage::observe`](lineage::Lineage::observe).
    pub fn observe(&self, revision: crate::revision::Revision, flushed: u64) {
        if let Some(session) = &self.session {
            self.pool.0.connector.lineage().observe(session.timeline, revision, flushed);
        }
    }

    /// Whether no younger timeline has been seen since this connection was lent.
    pub fn is_current(&self) -> bool {
        let lineage = self.pool.0.connector.lineage();
        self.session.as_ref().is_some_and(|session| lineage.is_current(session.timeline))
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.session.as_ref().expect("lent until it is dropped").connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session.as_mut().expect("lent until it is dropped").connection
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(mut session), place) = (self.session.take(), self.place.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = self.pool.clone();
        runtime.spawn(async move {
            // It may be in a transaction that ends with this answer, or in the middle of a list that nobody reads.
            match timeout(SHORT, session.connection.ping()).await {
                Ok(Ok(())) => pool.rest(session),
                Ok(Err(_)) => {}
                Err(_) => pool.0.connector.end(session).await,
            }
            drop(place);
        });
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
