//! All connections of a server: counts them, and finds those that must be dropped or told to close, and responses that
//! make no progress. A single sweep per tick checks all of them, so that a connection needs no timer of its own.

mod unproven;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Counter;
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::PollSemaphore;

use super::Limits;
use super::connection_state::{Connection, Stage};
use super::heads::LARGE_HEADS;
use super::turns::Turns;
use super::{first_reads, unsent};
use crate::metrics::Metrics;
use crate::scheduling::Scheduling;
use unproven::Unproven;

/// How long a connection that was told to close may stay if no request is running and none has ever run on it, or none
/// with a credential. Other connections may have an unread last answer, and get the time that readers have.
const LINGER: Duration = Duration::from_secs(1);
/// How long it may stay while requests are running.
const ABANDONED: Duration = Duration::from_secs(30);
/// How often the time that a reader has for one piece is the time that he has for all that waits on his connection.
const PIECES: u32 = 10;
/// The longest time between two sweeps.
const TICK: Duration = Duration::from_secs(1);

/// All connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    metrics: Arc<Metrics>,
    handshake_errors: Counter,
    turns: Arc<Turns>,
    tick: Duration,
    /// Counts sweeps. Connections and responses measure time in sweeps, so that nothing times out while the process is
    /// suspended.
    now: AtomicU64,
    /// How many bytes of answers wait to be sent on all connections.
    unsent: Arc<AtomicUsize>,
    /// The sweep before which nobody was found whose connection could be dropped for what waits.
    spared_at: AtomicU64,
    /// Places for connections of HTTP/2 that read much without a credential.
    pub first_reads: Arc<Semaphore>,
    /// Places for large heads of connections without a credential.
    heads: Arc<Semaphore>,
    /// The open connections. Never locked while a lock of a connection is held.
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next_id: u64,
    /// All of them in the order of arrival.
    all: BTreeMap<u64, Watched>,
    without_credential: Unproven,
    /// The connections on which a credential of one of several clusters was shown first.
    of_clusters: BTreeMap<Arc<str>, BTreeSet<u64>>,
}

impl Open {
    /// Ends the newest connection of the cluster that has most, for one of a cluster that has fewer. Returns whether there was one:
    /// a flood in one cluster must not take all places from the others.
    fn make_room(&mut self, cluster: Option<&Arc<str>>) -> bool {
        let Some(cluster) = cluster else { return false };
        let own = self.of_clusters.get(cluster).map_or(0, BTreeSet::len);
        let most = self.of_clusters.values_mut().max_by_key(|connections| connections.len());
        let Some(newest) = most.filter(|most| most.len() > own + 1).and_then(BTreeSet::pop_last) else {
            return false;
        };
        if let Some(watched) = self.all.get(&newest) {
            watched.connection.advance(Stage::Dropped);
        }
        true
    }

    fn remove(&mut self, id: u64) {
        let Some(cluster) = self.all.remove(&id).and_then(|watched| watched.cluster) else { return };
        if let Entry::Occupied(mut connections) = self.of_clusters.entry(cluster) {
            connections.get_mut().remove(&id);
            if connections.get().is_empty() {
                connections.remove();
            }
        }
    }
}

#[derive(Debug)]
struct Watched {
    connection: Arc<Connection>,
    /// The last tick at which a request was running.
    busy_at: u64,
    /// The tick at which it was told to close.
    going_since: Option<u64>,
    /// The cluster whose credential was shown first, if there are several.
    cluster: Option<Arc<str>>,
}

impl Connections {
    pub fn new(limits: Limits, metrics: Arc<Metrics>, scheduling: Scheduling) -> Arc<Self> {
        let tick = TICK.min(limits.idle.min(limits.response_progress) / 4).max(Duration::from_millis(1));
        // Starts at 1, since tick 0 means that a delivery is waiting for its source.
        let turns = Arc::new(Turns::new(scheduling));
        Arc::new(Self {
            limits,
            handshake_errors: metrics.handshake_errors(),
            metrics,
            turns,
            tick,
            now: AtomicU64::new(1),
            unsent: Arc::default(),
            spared_at: AtomicU64::new(0),
            first_reads: Arc::new(Semaphore::new(first_reads::PLACES)),
            heads: Arc::new(Semaphore::new(LARGE_HEADS)),
            open: Mutex::default(),
        })
    }

    /// Adds a connection without a credential. If there are too many of these, the oldest one of the address that has most is
    /// dropped: clients authenticate at once, so a flood drops its own connections.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> ConnectionEntry {
        let now = self.now();
        let mut open = self.open();
        let id = open.next_id;
        open.next_id += 1;
        let connection = Arc::new(Connection::accepted_at(now, self.turns.clone(), self.unsent.clone()));
        open.all.insert(
            id,
            Watched { connection: connection.clone(), busy_at: now, going_since: None, cluster: None },
        );
        open.without_credential.add(peer, id);
        if self.limits.unauthenticated_connections < open.without_credential.len()
            && let Some(oldest) = open.without_credential.pop()
            && let Some(watched) = open.all.get(&oldest)
        {
            watched.connection.advance(Stage::Dropped);
            self.count("unauthenticated-connections");
        }
        ConnectionEntry { connections: self.clone(), id, peer, connection }
    }

    /// Drops connections if more bytes of answers wait than may.
    pub fn bound_unsent(&self) {
        if self.unsent.load(Ordering::Relaxed) > self.limits.unsent_bytes
            && self.spared_at.load(Ordering::Relaxed) != self.now()
        {
            self.relieve();
        }
    }

    #[cold]
    fn relieve(&self) {
        let open = self.open();
        let connections = open.all.values().map(|watched| &watched.connection);
        let dropped = unsent::relieve(connections, &self.unsent, self.limits.unsent_bytes);
        if dropped == 0 {
            self.spared_at.store(self.now(), Ordering::Relaxed);
        }
        (0..dropped).for_each(|_| self.count("unsent-responses"));
    }

    /// Checks all connections once a tick, for ever.
    pub async fn watch_over(&self) {
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sweep();
        }
    }

    /// Advances all connections to this stage.
    pub fn advance_all(&self, stage: Stage) {
        for watched in self.open().all.values() {
            watched.connection.advance(stage);
        }
    }

    /// The server drains: tells all connections.
    pub fn leave(&self) {
        for watched in self.open().all.values() {
            watched.connection.leave();
        }
    }

    /// How many connections there are, and how many requests run on them.
    pub fn running(&self) -> (usize, usize) {
        let open = self.open();
        (open.all.len(), open.all.values().map(|watched| watched.connection.active()).sum())
    }

    /// Whether a request has come on this connection, or was answered, or it was accepted, within this time.
    pub fn is_in_use(&self, connection: &Connection, within: Duration) -> bool {
        self.now().saturating_sub(connection.last_used()) <= self.ticks(within)
    }

    pub fn places_for_heads(&self) -> PollSemaphore {
        PollSemaphore::new(self.heads.clone())
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The number of ticks that take at least this time.
    pub fn ticks(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos().div_ceil(self.tick.as_nanos())).unwrap_or(u64::MAX / 2)
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts a connection that ends in its TLS handshake.
    pub fn count_handshake_error(&self) {
        self.handshake_errors.increment(1);
    }

    /// Counts an event in which a limit has refused or ended something.
    fn count(&self, limit: &'static str) {
        self.metrics.limit_reached(limit).increment(1);
    }

    pub(super) fn sweep(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let (stalled, idle) = (self.ticks(self.limits.response_progress), self.ticks(self.limits.idle));
        let all_sent = stalled.saturating_mul(PIECES.into());
        for watched in self.open().all.values_mut() {
            let connection = &watched.connection;
            connection.reset_stalled(now, stalled, |limit| self.count(limit));
            let stopped = connection.bound_unsent(now, self.limits.unsent_bytes_of_connection);
            (0..stopped).for_each(|_| self.count("unsent-responses-of-connection"));
            if connection.unsent.is_overdue(now, all_sent) && connection.stage() < Stage::Dropped {
                connection.advance(Stage::Dropped);
                self.count("unsent-responses-time");
            }
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
                Stage::Serving | Stage::Leaving | Stage::Dropped => {}
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's entry among all connections, removed when this value is dropped.
#[derive(Debug)]
pub struct ConnectionEntry {
    connections: Arc<Connections>,
    id: u64,
    peer: IpAddr,
    connection: Arc<Connection>,
}

impl ConnectionEntry {
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Notes that a credential was shown, of this cluster if there are several. Returns false if there are too many connections
    /// with one.
    pub fn authenticate(&self, cluster: Option<&Arc<str>>) -> bool {
        self.connection.is_authenticated() || self.move_to_authenticated(cluster)
    }

    /// Counts an event in which a limit has refused something on this connection.
    pub fn count(&self, limit: &'static str) {
        self.connections.count(limit);
    }

    #[cold]
    fn move_to_authenticated(&self, cluster: Option<&Arc<str>>) -> bool {
        let mut open = self.connections.open();
        let authenticated = open.all.len() - open.without_credential.len();
        if authenticated >= self.connections.limits.connections && !open.make_room(cluster) {
            self.connections.count("connections");
            return false;
        }
        // A connection that was dropped meanwhile is not in the set any more.
        if open.without_credential.remove(self.peer, self.id) {
            self.connection.set_authenticated();
            if let (Some(cluster), Some(watched)) = (cluster, open.all.get_mut(&self.id)) {
                watched.cluster = Some(cluster.clone());
                open.of_clusters.entry(cluster.clone()).or_default().insert(self.id);
            }
        }
        true
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.remove(self.id);
        open.without_credential.remove(self.peer, self.id);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;

    use super::super::unsent::counted;
    use super::*;

    fn connections(connections: usize, unauthenticated_connections: usize) -> Arc<Connections> {
        let limits = Limits { connections, unauthenticated_connections, ..Limits::default() };
        Connections::new(limits, Arc::default(), Scheduling::default())
    }

    fn peer(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn who_shows_no_credential_for_longest_is_pushed_out() {
        let connections = connections(10, 2);
        let (first, second) = (connections.admit(peer(1)), connections.admit(peer(1)));
        assert!(first.authenticate(None));
        let third = connections.admit(peer(1));
        let stages = || [&first, &second, &third].map(|place| place.connection.stage());
        assert_eq!(stages(), [Stage::Serving; 3]);
        let _fourth = connections.admit(peer(1));
        assert_eq!(stages(), [Stage::Serving, Stage::Dropped, Stage::Serving]);
    }

    #[test]
    fn a_flood_from_one_address_pushes_out_none_of_another() {
        let connections = connections(10, 3);
        let distant = connections.admit(peer(1));
        let flood: Vec<ConnectionEntry> = (0..100).map(|_| connections.admit(peer(2))).collect();
        assert_eq!(distant.connection.stage(), Stage::Serving);
        let left = flood.iter().filter(|place| place.connection.stage() == Stage::Serving);
        assert_eq!(left.count(), 2);
    }

    #[test]
    fn too_many_with_a_credential_are_refused_until_one_goes() {
        let connections = connections(1, 10);
        let (first, second) = (connections.admit(peer(1)), connections.admit(peer(1)));
        assert!(first.authenticate(None) && first.authenticate(None));
        assert!(!second.authenticate(None));
        drop(first);
        assert!(second.authenticate(None));
        drop(second);
        let open = connections.open();
        assert!(open.all.is_empty() && open.without_credential.len() == 0);
    }

    #[test]
    fn a_cluster_with_few_connections_takes_the_place_of_one_that_has_many() {
        let connections = connections(4, 10);
        let [many, few]: [Arc<str>; 2] = ["many".into(), "few".into()];
        let admit = |cluster| {
            let place = connections.admit(peer(1));
            let is_let_in = place.authenticate(Some(cluster));
            (place, is_let_in)
        };
        let flood: Vec<ConnectionEntry> =
            (0..4).map(|_| admit(&many)).filter(|all| all.1).map(|all| all.0).collect();
        assert_eq!(flood.len(), 4);
        assert!(!admit(&many).1, "its own are too many");
        let (first, second, third) = (admit(&few), admit(&few), admit(&few));
        assert!(first.1 && second.1 && !third.1, "each has as many now");
        let stages = |places: &[ConnectionEntry]| {
            places.iter().map(|place| place.connection.stage()).collect::<Vec<_>>()
        };
        assert_eq!(stages(&flood), [Stage::Serving, Stage::Serving, Stage::Dropped, Stage::Dropped]);
        assert_eq!(stages(&[first.0, second.0]), [Stage::Serving; 2]);
        drop((flood, third));
        assert!(connections.open().of_clusters.is_empty());
    }

    /// One byte a tick is progress, and not enough.
    #[test]
    fn what_waits_to_be_sent_has_a_time() {
        let connections = connections(10, 10);
        let (slow, quick) = (connections.admit(peer(1)), connections.admit(peer(2)));
        let answer = |place: &ConnectionEntry| counted(vec![0; 64 << 10].into(), place.connection());
        let all_sent = PIECES * connections.ticks(connections.limits.response_progress) as u32;
        let held = [answer(&slow), answer(&slow)];
        let mut small: Vec<Bytes> =
            (0..=all_sent).map(|_| counted(vec![0; 1 << 10].into(), slow.connection())).collect();
        let mut waiting = answer(&quick);
        for tick in 0..=all_sent {
            // Requests keep both in use.
            slow.connection.note_request(connections.now());
            quick.connection.note_request(connections.now());
            assert_eq!(slow.connection.stage(), Stage::Serving, "{tick}");
            if tick % 4 == 0 {
                small.pop();
            }
            if tick % 300 == 0 {
                waiting = answer(&quick);
            }
            connections.sweep();
        }
        connections.sweep();
        assert_eq!([&slow, &quick].map(|place| place.connection.stage()), [Stage::Dropped, Stage::Serving]);
        drop((held, waiting));
    }

    #[test]
    fn idle_connections_are_told_to_go_and_then_dropped() {
        let connections = connections(10, 10);
        let place = connections.admit(peer(1));
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
