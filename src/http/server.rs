//! The listener: accepts connections, does TLS handshakes, serves HTTP/1.1 and HTTP/2, and drains at the end.
//!
//! Every connection is one task that owns its socket; [`serve`] returns when all of them have ended.

mod connection;
mod connection_state;
mod connections;
pub mod delivery;
mod first_reads;
mod gather;
mod heads;
mod leaving;
mod sliced;
mod streams;
pub mod takeover;
mod turns;
pub mod unsent;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use tracing::Instrument as _;

use super::router::Router as Clusters;
use super::tls::{ClientCertificates, ClientTrust, Tls};
use crate::auth::authn::Certified;
use crate::metrics::Metrics;
use crate::scheduling::Scheduling;
use crate::tree::Text;
use crate::user::{MASTERS, User};
pub(super) use connection::panicked;
use connection_state::{Connection, Stage};
use connections::{ConnectionEntry, Connections};
pub(super) use heads::{LONG, LongQuery};
use leaving::PATIENCE;

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

/// The most concurrent requests on a connection without a credential.
const UNAUTHENTICATED_REQUESTS: usize = 100;

/// The state that all requests of a connection share. Each request has an `Arc` of it in its extensions.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// The address of the peer, without its port.
    pub client: Text,
    /// `None` if the client showed no certificate.
    pub certificates: Option<ClientCertificates>,
    /// The CAs of the listener, if it has one cluster.
    pub trust: ClientTrust,
    /// Cancelled when the server starts to drain; watches end then.
    pub draining: CancellationToken,
    place: ConnectionEntry,
}

impl ConnectionInfo {
    /// Notes that a request has shown a credential, of this cluster if there are several. Returns false if there are too many
    /// connections with one.
    pub fn authenticate(&self, cluster: Option<&Arc<str>>) -> bool {
        self.place.authenticate(cluster)
    }

    /// The time of this connection counts to this user from now on. Among several clusters, of which `cluster` is one,
    /// nobody is exempt from the limits of the process.
    pub fn count_to(&self, cluster: Option<&str>, user: &User) {
        self.connection().count_to(cluster, &user.name, cluster.is_none() && user.is_in(MASTERS));
    }

    /// Whether a credential was ever shown on this connection.
    pub fn is_authenticated(&self) -> bool {
        self.connection().is_authenticated()
    }

    /// Whether more requests are running than are allowed without a credential.
    pub fn is_crowded(&self) -> bool {
        let crowded =
            !self.connection().is_authenticated() && self.connection().active() > UNAUTHENTICATED_REQUESTS;
        if crowded {
            self.place.count("unauthenticated-requests");
        }
        crowded
    }

    /// Tells the client to send no more requests on this connection.
    pub fn go_away(&self) {
        self.connection().advance(Stage::Going);
    }

    fn connection(&self) -> &Arc<Connection> {
        self.place.connection()
    }

    /// The identity that the client certificate proves at present to the only cluster of the listener.
    pub fn certified(&self) -> Option<Certified> {
        self.certified_by(&self.trust)
    }

    /// The identity that the client certificate proves at present to whoever trusts these CAs.
    pub fn certified_by(&self, trust: &ClientTrust) -> Option<Certified> {
        self.certificates.as_ref().map(|certificates| certificates.certified(trust))
    }

    /// The seconds until the client's certificate expires, if it has shown one.
    pub fn certificate_left(&self) -> Option<i64> {
        self.certificates.as_ref()?.left(&self.trust)
    }
}

/// Answers requests.
pub trait Responder: Send + Sync + 'static {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response>;
}

impl Responder for Router {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        let answered = Router::clone(&self).oneshot(request);
        answered.map(|Ok(response)| response).boxed()
    }
}

/// The current responder. It changes over time, also for connections that are open already: first the routes of a
/// starting server, then those of the application, and at last those of a stopped server. Clones share it.
#[derive(Clone)]
pub struct Routes(Arc<ArcSwap<Arc<dyn Responder>>>);

impl Routes {
    pub fn new(starting: impl Responder) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Arc::new(starting))))
    }

    /// Lets the application answer requests from now on.
    pub fn open(&self, started: Arc<dyn Responder>) {
        self.0.store(Arc::new(started));
    }

    /// Lets `stopped` answer requests from now on, and holds nothing of the application any more.
    pub fn close(&self, stopped: impl Responder) {
        self.0.store(Arc::new(Arc::new(stopped)));
    }

    /// The present responder.
    pub fn now(&self) -> Arc<dyn Responder> {
        Arc::clone(&self.0.load())
    }
}

impl Responder for Routes {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        self.now().respond(request)
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
