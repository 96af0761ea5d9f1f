//! A pool of connections to PostgreSQL in which every wait has a limit: a peer that vanished silently (a machine that
//! died, a firewall that forgot the connection) must cost a moment, not the server.
//!
//! sqlx's pool would not do: it probes every connection that is returned, a round trip for each batch; it does not tell
//! why a new connection was refused; and it forgets a connection that is given up while that connection's backend still
//! waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::lent::Lent;
use super::lineage::{self, Refusal};
use super::places::{Lane, Left, Place, Places, Sizes, StoreKey};
use super::session::{Connector, PING, Session};
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
/// How many stores use one session: its backend keeps memory for the procedure and the tables of each.
const STORES: usize = 64;
/// The pause between attempts to connect: doubles after each failure, from the first value up to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The places of a process's pool. Calls and repairs are few, since the database is shared with other replicas.
pub const PLACES: Sizes = Sizes { calls: 8, scans: 4, repairs: 2 };

/// The sessions with one database that no store uses at present, and the places of those in use. Clones share them.
#[derive(Clone)]
pub struct Sessions {
    idle: Arc<Mutex<Idle>>,
    /// A place is held for every connection that is lent, and for one that was given up until its backend has ended: there
    /// are never more backends than places.
    places: Places,
}

#[derive(Default)]
struct Idle {
    /// Idle sessions in the order of their last use.
    sessions: Vec<(Session, Instant)>,
    /// When a connection was last found broken. Those that were idle then are asked whether they are there before a batch
    /// goes out on one of them, of which nobody could say what became of it.
    broken: Option<Instant>,
    /// Whether there is a store that may use them.
    is_open: bool,
}

/// An idle session that may be used next.
struct Candidate {
    session: Session,
    /// Since when it is idle.
    since: Instant,
    /// Whether it is taken to be there without being asked.
    is_trusted: bool,
}

impl Sessions {
    pub fn new(sizes: Sizes) -> Self {
        Self { idle: Arc::default(), places: Places::new(sizes) }
    }

    /// Notes that a connection was found broken: others may be, too.
    pub fn doubt(&self) {
        self.idle().broken = Some(Instant::now());
    }

    fn join(&self, store: StoreKey) {
        let mut idle = self.idle();
        self.places.join(store);
        idle.is_open = true;
    }

    /// Returns the sessions that nobody will use any more.
    fn leave(&self, store: StoreKey) -> Vec<(Session, Instant)> {
        let mut idle = self.idle();
        if !self.places.leave(store) {
            return Vec::new();
        }
        idle.is_open = false;
        std::mem::take(&mut idle.sessions)
    }

    /// The session that this store used last; or, if there are as many as places, the one that no store has used for the
    /// longest time.
    fn take_idle(&self, store: StoreKey) -> Option<Candidate> {
        let mut idle = self.idle();
        let own = idle.sessions.iter().rposition(|(session, _)| session.store() == store);
        let place = match own {
            Some(own) => own,
            None if idle.sessions.is_empty() => return None,
            None => {
                let (taken, all) = self.places.taken();
                if taken + idle.sessions.len() <= all {
                    return None;
                }
                0
            }
        };
        let (session, since) = idle.sessions.remove(place);
        let is_trusted = since.elapsed() < TRUSTED && idle.broken.is_none_or(|broken| since > broken);
        Some(Candidate { session, since, is_trusted })
    }

    fn rest(&self, session: Session) {
        let mut idle = self.idle();
        if !idle.is_open {
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

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places of one lane, as one store uses them. Clones share their connections.
#[derive(Clone)]
pub struct Pool {
    borrower: Arc<Borrower>,
    lane: Lane,
}

/// A store that borrows sessions, until it is dropped.
struct Borrower {
    connector: Connector,
    sessions: Sessions,
    trouble: Mutex<Trouble>,
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
    /// Joins a store, whose calls use this pool. It connects when a connection is needed.
    pub fn join(sessions: &Sessions, connector: Connector) -> Self {
        sessions.join(connector.store());
        let borrower = Borrower { connector, sessions: sessions.clone(), trouble: Mutex::default() };
        Self { borrower: Arc::new(borrower), lane: Lane::Calls }
    }

    /// The same store's places of another lane.
    pub fn lane(&self, lane: Lane) -> Self {
        Self { borrower: self.borrower.clone(), lane }
    }

    pub async fn acquire(&self) -> Result<Lent, Error> {
        self.try_acquire().await.map_err(|error| Error::Unavailable(error.to_string().into()))
    }

    /// Like `acquire`, but returns the cause, for callers that report what is wrong with the database. The schema must be up
    /// to date.
    pub async fn try_acquire(&self) -> Result<Lent, lineage::Error> {
        let Borrower { connector, sessions, .. } = &*self.borrower;
        let deadline = Instant::now() + ACQUIRE;
        let place = self.place(deadline).await?;
        while let Some(Candidate { mut session, since, is_trusted }) = sessions.take_idle(connector.store()) {
            if !self.may_serve(&session, since) || !(is_trusted || answers(&mut session).await) {
                tokio::spawn(close(session));
                continue;
            }
            if connector.is_at_home(&session) {
                return Ok(self.lend(session, place));
            }
            match connector.enter(&mut session).await {
                Ok(()) => return Ok(self.lend(session, place)),
                // Other stores may use it, and another host may be the one that this store knows.
                Err(lineage::Error::Refused(_)) => {
                    sessions.rest(session);
                    break;
                }
                Err(_) => {
                    sessions.doubt();
                    tokio::spawn(close(session));
                }
            }
        }
        let session = self.connect(deadline).await?;
        Ok(self.lend(session, place))
    }

    /// A place for a connection that is not one of the pool's sessions. Many stores may be opened at once, so it waits longer
    /// than a call does.
    pub async fn reserve(&self) -> Result<Place, lineage::Error> {
        self.place(Instant::now() + LONG).await
    }

    async fn place(&self, deadline: Instant) -> Result<Place, lineage::Error> {
        let Borrower { connector, sessions, .. } = &*self.borrower;
        let place = timeout_at(deadline, sessions.places.take(connector.store(), self.lane)).await;
        let place = place.map_err(|_| sqlx::Error::PoolTimedOut)?;
        Ok(place.map_err(|Left| sqlx::Error::PoolClosed)?)
    }

    /// Takes back a connection that is known to work and to be outside any transaction.
    pub fn keep(&self, lent: Lent) {
        if let Some(session) = lent.into_session() {
            self.rest(session);
        }
    }

    /// Takes back a session that is outside any transaction.
    pub fn rest(&self, session: Session) {
        self.borrower.sessions.rest(session);
    }

    pub fn connector(&self) -> &Connector {
        &self.borrower.connector
    }

    /// Ends the store's part in the pool. Closes all connections if no other store uses them.
    pub async fn close(&self) {
        let Borrower { connector, sessions, .. } = &*self.borrower;
        for (session, _) in sessions.leave(connector.store()) {
            close(session).await;
        }
    }

    fn lend(&self, session: Session, place: Place) -> Lent {
        Lent::new(self.clone(), session, place)
    }

    fn may_serve(&self, session: &Session, since: Instant) -> bool {
        session.born.elapsed() < OLD
            && since.elapsed() < IDLE
            && (session.stores() < STORES || self.borrower.connector.is_at_home(session))
            && self.borrower.connector.lineage().is_current(session.timeline)
    }

    /// Notes that a connection was found broken: others may be, too.
    pub fn doubt(&self) {
        self.borrower.sessions.doubt();
    }

    /// Connects. While the database only needs time, tries again until the deadline. All waiting callers share the
    /// pauses between attempts.
    async fn connect(&self, deadline: Instant) -> Result<Session, lineage::Error> {
        loop {
            let until = self.trouble().until.filter(|until| *until > Instant::now());
            if let Some(until) = until {
                sleep_until(until.min(deadline)).await;
            }
            match self.borrower.connector.begin().await {
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

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.borrower.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Borrower {
    fn drop(&mut self) {
        drop(self.sessions.leave(self.connector.store()));
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

pub async fn close(session: Session) {
    let _ = timeout(PING, session.connection.close()).await;
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
