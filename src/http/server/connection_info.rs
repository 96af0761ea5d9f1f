//! The state that all requests of a connection share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::connection_state::{Connection, Stage};
use super::connections::ConnectionEntry;
use crate::auth::authn::Certified;
use crate::http::tls::{ClientCertificates, ClientTrust};
use crate::tree::Text;
use crate::user::{MASTERS, User};

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
    pub(super) place: ConnectionEntry,
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
