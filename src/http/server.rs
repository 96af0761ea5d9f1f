//! The listener: accepts, shakes hands, serves HTTP/1.1 and HTTP/2, and drains at the end.
//!
//! Every connection is one task that owns its socket; [`serve`] ends when all of them have.

mod connection;
mod gather;
mod sliced;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::tls::{ClientCertificates, Tls};
use crate::user::User;
use connection::Protocols;

/// How long accepting rests after an error of the machine's, such as no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is the same for all requests of a connection; an `Arc` of it is among each request's extensions.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub remote: SocketAddr,
    /// `None` if the client showed no certificate.
    pub certificates: Option<ClientCertificates>,
    /// Cancelled when the server begins to drain: watches end then.
    pub draining: CancellationToken,
}

impl ConnectionInfo {
    /// Who the client certificate names at this time.
    pub fn user(&self) -> Option<Arc<User>> {
        self.certificates.as_ref().and_then(ClientCertificates::user)
    }
}

/// Serves `router` until `shutdown` is cancelled, then lets requests finish for up to `grace`.
///
/// Long-running requests must end by themselves when [`ConnectionInfo::draining`] is cancelled; whatever
/// still runs after `grace` is dropped.
pub async fn serve(
    listener: TcpListener,
    tls: Tls,
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
) {
    let connections = TaskTracker::new();
    let server = Arc::new(Server {
        tls,
        router,
        protocols: Protocols::tuned(),
        shutdown: shutdown.clone(),
        abort: CancellationToken::new(),
    });
    server.accept_until_shutdown(&listener, &connections).await;
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "dropping what did not end in time");
        server.abort.cancel();
        connections.wait().await;
    }
}

/// What connections share.
struct Server {
    tls: Tls,
    router: Router,
    protocols: Protocols,
    /// Stop accepting and drain.
    shutdown: CancellationToken,
    /// The grace is over.
    abort: CancellationToken,
}

impl Server {
    async fn accept_until_shutdown(self: &Arc<Self>, listener: &TcpListener, connections: &TaskTracker) {
        loop {
            let accepted = tokio::select! {
                // Shutdown first: a flood of connections must not put it off.
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, remote)) => {
                    let span = tracing::debug_span!("connection", %remote);
                    connections.spawn(self.clone().run(stream, remote).instrument(span));
                }
                Err(error) if is_the_peers(error.kind()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Errors of one connection that ended before it was accepted; the next one can be fine.
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
