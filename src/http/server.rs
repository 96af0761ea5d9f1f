//! The listener: accepts connections, does TLS handshakes, serves HTTP/1.1 and HTTP/2, and drains at the end.
//!
//! Every connection is one task that owns its socket; [`serve`] returns when all of them have ended.

mod connection;
mod connection_info;
mod connection_state;
mod connections;
pub mod delivery;
mod first_reads;
mod gather;
mod heads;
mod leaving;
mod requests;
mod responder;
mod sliced;
mod streams;
pub mod takeover;
mod turns;
pub mod unsent;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::router::Router as Clusters;
use super::tls::Tls;
use crate::metrics::Metrics;
use crate::scheduling::Scheduling;
pub(super) use connection::panicked;
pub use connection_info::ConnectionInfo;
use connection_state::Stage;
use connections::Connections;
pub(super) use heads::{LONG, LongQuery};
use leaving::PATIENCE;
pub use responder::{Responder, Routes};

/// The pause after an error of the system, such as a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most connections that wait to be accepted: tokio's backlog.
const BACKLOG: usize = 1024;

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The most connections on which a credential was shown.
    pub connections: usize,
    /// The most connections on which no credential was shown yet.
    pub unauthenticated_connections: usize,
    /// The most concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// How long a connection may have no request.
    pub idle: Duration,
    /// How long the reader of a response may accept no data.
    pub response_progress: Duration,
    /// The most bytes of answers that wait to be sent on all connections but those of `system:masters`.
    pub unsent_bytes: usize,
    /// The most bytes of answers that wait on a connection where nobody reads.
    pub unsent_bytes_of_connection: usize,
    /// How long a connection in use is kept for one more request when the server drains.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            unauthenticated_connections: 1000,
            // Clients such as kube-rs put all their watches on one connection, and wait silently at the limit.
            streams: 1000,
            // Upstream's `IdleTimeout`.
            idle: Duration::from_secs(90),
            response_progress: Duration::from_secs(60),
            unsent_bytes: 256 << 20,
            unsent_bytes_of_connection: 32 << 20,
            patience: PATIENCE,
        }
    }
}

/// How serving ends.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The server is not ready any more, so that load balancers send nobody new. It is cancelled before `draining`.
    pub stopping: CancellationToken,
    /// Starts the end: no connection is accepted any more, those there are get told, and watches end.
    pub draining: CancellationToken,
    /// How long requests may take to finish.
    pub grace: Duration,
    /// Ends the grace period early.
    pub over: CancellationToken,
}

impl Ending {
    pub fn new(grace: Duration) -> Self {
        let token = CancellationToken::new;
        Self { stopping: token(), draining: token(), grace, over: token() }
    }

    /// Ends everything without waiting.
    pub fn abort(&self) {
        self.stopping.cancel();
        self.draining.cancel();
        self.over.cancel();
    }

    /// Returns when the grace period is over.
    async fn patience(&self) {
        let _ = tokio::time::timeout(self.grace, self.over.cancelled()).await;
    }
}

/// How connections are served.
pub struct Serving {
    pub tls: Tls,
    /// Finds the cluster of each request.
    pub clusters: Clusters,
    pub limits: Limits,
    pub ending: Ending,
    pub metrics: Arc<Metrics>,
    pub scheduling: Scheduling,
}

/// Serves clusters until the listener drains, then lets requests finish within the grace period.
///
/// Long-running requests must end by themselves when [`ConnectionInfo::draining`] is cancelled. Requests that still run
/// after the grace period are dropped.
pub async fn serve(listener: TcpListener, serving: Serving) {
    let Serving { tls, clusters, limits, ending, metrics, scheduling } = serving;
    let connections = Connections::new(limits, metrics, scheduling);
    let server = Arc::new(Server { tls, clusters, connections, ending });
    tokio::select! {
        () = server.serve(listener) => {}
        () = server.connections.watch_over() => {}
    }
}

/// The state that all connections share.
struct Server {
    tls: Tls,
    clusters: Clusters,
    connections: Arc<Connections>,
    ending: Ending,
}

impl Server {
    async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let tasks = TaskTracker::new();
        self.accept_until_shutdown(&listener, &tasks).await;
        self.accept_the_rest(listener, &tasks);
        tasks.close();
        self.connections.leave();
        tokio::select! {
            biased;
            () = tasks.wait() => return,
            () = self.ending.patience() => {}
        }
        if !self.ending.over.is_cancelled() {
            let (connections, requests) = self.connections.running();
            tracing::warn!(connections, requests, "the grace period is over, which cuts what has not ended");
        }
        self.connections.advance_all(Stage::Dropped);
        tasks.wait().await;
    }

    fn begin(self: &Arc<Self>, stream: TcpStream, remote: SocketAddr, tasks: &TaskTracker) {
        let span = tracing::debug_span!("connection", %remote);
        let place = self.connections.admit(remote.ip());
        tasks.spawn(self.clone().run(stream, remote, place).instrument(span));
    }

    /// Closes the listener, but not on those who are connected already: the system would reset what waits to be accepted.
    fn accept_the_rest(self: &Arc<Self>, listener: TcpListener, tasks: &TaskTracker) {
        let Ok(listener) = listener.into_std() else { return };
        for _ in 0..BACKLOG {
            let accepted = match listener.accept() {
                Err(error) if is_the_peers(error.kind()) => continue,
                accepted => accepted,
            };
            let Ok((stream, remote)) = accepted else { return };
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                self.begin(stream, remote, tasks);
            }
        }
    }

    async fn accept_until_shutdown(self: &Arc<Self>, listener: &TcpListener, tasks: &TaskTracker) {
        loop {
            let accepted = tokio::select! {
                // The end is checked first, so that a flood of connections cannot delay it.
                biased;
                () = self.ending.draining.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, remote)) => self.begin(stream, remote, tasks),
                Err(error) if is_the_peers(error.kind()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Whether the error concerns only a connection that ended before it was accepted; the next one may succeed.
fn is_the_peers(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
