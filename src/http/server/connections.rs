//! The connections of a server, counted and watched over: who is pushed out, who is told to go, whose responses stand
//! still. One sweep a tick looks at all of them, so that a connection costs no timer of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::Limits;
use super::connection_state::{Connection, Stage};
use crate::metrics::Metrics;

/// How long a connection that was told to go stays when no request is under way on it and none ever was, or none with a
/// credential. Others may have a last answer to take, and have the time that readers have.
const LINGER: Duration = Duration::from_secs(1);
/// How long it stays although requests are under way on it.
const ABANDONED: Duration = Duration::from_secs(30);
/// Upper bound of the time between two sweeps.
const TICK: Duration = Duration::from_secs(1);

/// All connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    metrics: Arc<Metrics>,
    tick: Duration,
    /// Counts sweeps: the time in which connections and responses measure. A process that is stopped does not age.
    now: AtomicU64,
    /// Never locked while a connection's own locks are held.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next_id: u64,
    /// In the order of their arrival.
    all: BTreeMap<u64, Watched>,
    without_credential: BTreeSet<u64>,
}

#[derive(Debug)]
struct Watched {
    connection: Arc<Connection>,
    /// When a request was last seen under way.
    busy_at: u64,
    /// When it was told to go.
    going_since: Option<u64>,
}

impl Connections {
    pub fn new(limits: Limits, metrics: Arc<Metrics>) -> Arc<Self> {
        let tick = TICK.min(limits.idle.min(limits.response_progress) / 4).max(Duration::from_millis(1));
        // From 1: a delivery at tick 0 waits for its source.
        Arc::new(Self { limits, metrics, tick, now: AtomicU64::new(1), open: Mutex::default() })
    }

    /// Takes in a connection that has shown no credential yet. If there are too many of these, the one that has been
    /// without for longest is dropped: clients show theirs at once, so a flood pushes out itself.
    pub fn admit(self: &Arc<Self>) -> Place {
        let now = self.now();
        let mut open = self.open();
        let id = open.next_id;
        open.next_id += 1;
        let connection = Arc::new(Connection::default());
        open.all.insert(id, Watched { connection: connection.clone(), busy_at: now, going_since: None });
        open.without_credential.insert(id);
        if self.limits.unauthenticated_connections < open.without_credential.len()
            && let Some(oldest) = open.without_credential.pop_first()
            && let Some(watched) = open.all.get(&oldest)
        {
            watched.connection.advance(Stage::Dropped);
            self.count("unauthenticated-connections");
        }
        Place { connections: self.clone(), id, connection }
    }

    /// Looks at all connections once a tick, for ever.
    pub async fn watch_over(&self) {
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sweep();
        }
    }

    /// Tells all connections to go, or drops them.
    pub fn advance_all(&self, stage: Stage) {
        for watched in self.open().all.values() {
            watched.connection.advance(stage);
        }
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// At least so long, in ticks.
    pub fn ticks(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos().div_ceil(self.tick.as_nanos())).unwrap_or(u64::MAX / 2)
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts what a limit has refused or ended.
    fn count(&self, limit: &'static str) {
        self.metrics.limit_reached(limit).increment(1);
    }

    fn sweep(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let (stalled, idle) = (self.ticks(self.limits.response_progress), self.ticks(self.limits.idle));
        for watched in self.open().all.values_mut() {
            let connection = &watched.connection;
            connection.reset_stalled(now, stalled, |limit| self.count(limit));
            let busy = connection.active() > 0;
            if busy {
                watched.busy_at = now;
            }
            let rested = now.saturating_sub(watched.busy_at.max(connection.last_request()));
            match connection.stage() {
                Stage::Serving if rested >= idle => connection.advance(Stage::Going),
                Stage::Going => {
                    let since = *watched.going_since.get_or_insert(now);
                    let patience = match (connection.is_authenticated(), busy) {
                        (true, true) => u64::MAX,
                        (true, false) if connection.last_request() > 0 => stalled,
                        (false, true) => self.ticks(ABANDONED),
                        (_, false) => self.ticks(LINGER),
                    };
                    if now - since >= patience {
                        connection.advance(Stage::Dropped);
                    }
                }
                Stage::Serving | Stage::Dropped => {}
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place among the others, given up when it is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    id: u64,
    connection: Arc<Connection>,
}

impl Place {
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// A credential has been shown. Returns false if there are too many connections of which that is true.
    pub fn authenticate(&self) -> bool {
        self.connection.is_authenticated() || self.move_to_authenticated()
    }

    /// Counts what a limit has refused of this connection.
    pub fn count(&self, limit: &'static str) {
        self.connections.count(limit);
    }

    #[cold]
    fn move_to_authenticated(&self) -> bool {
        let mut open = self.connections.open();
        let authenticated = open.all.len() - open.without_credential.len();
        if authenticated >= self.connections.limits.connections {
            self.connections.count("connections");
            return false;
        }
        // Who has been pushed out meanwhile is no member any more, and is dropped soon.
        if open.without_credential.remove(&self.id) {
            self.connection.set_authenticated();
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.all.remove(&self.id);
        open.without_credential.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize, unauthenticated_connections: usize) -> Arc<Connections> {
        let limits = Limits { connections, unauthenticated_connections, ..Limits::default() };
        Connections::new(limits, Arc::default())
    }

    #[test]
    fn who_shows_no_credential_for_longest_is_pushed_out() {
        let connections = connections(10, 2);
        let (first, second) = (connections.admit(), connections.admit());
        assert!(first.authenticate());
        let third = connections.admit();
        let stages = || [&first, &second, &third].map(|place| place.connection.stage());
        assert_eq!(stages(), [Stage::Serving; 3]);
        let _fourth = connections.admit();
        assert_eq!(stages(), [Stage::Serving, Stage::Dropped, Stage::Serving]);
    }

    #[test]
    fn too_many_with_a_credential_are_refused_until_one_goes() {
        let connections = connections(1, 10);
        let (first, second) = (connections.admit(), connections.admit());
        assert!(first.authenticate() && first.authenticate());
        assert!(!second.authenticate());
        drop(first);
        assert!(second.authenticate());
        drop(second);
        let open = connections.open();
        assert!(open.all.is_empty() && open.without_credential.is_empty());
    }

    #[test]
    fn idle_connections_are_told_to_go_and_then_dropped() {
        let connections = connections(10, 10);
        let place = connections.admit();
        let (idle, linger) = (connections.ticks(connections.limits.idle), connections.ticks(LINGER));
        for _ in 1..idle {
            connections.sweep();
        }
        assert_eq!(place.connection.stage(), Stage::Serving);
        connections.sweep();
        assert_eq!(place.connection.stage(), Stage::Going);
        for _ in 0..=linger {
            connections.sweep();
        }
        assert_eq!(place.connection.stage(), Stage::Dropped);
    }
}
