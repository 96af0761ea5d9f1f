//! The settings of a server's listener.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::HeaderValue;

use crate::auth::pki::Overrides;
use crate::http::door::cors::Cors;
use crate::http::{server, tls};

/// How clients reach the server over the network.
#[derive(Clone, Debug)]
pub struct Https {
    /// Port 0 means any free port.
    pub address: SocketAddr,
    pub certificates: Overrides,
    pub tls: tls::Settings,
    /// The value of `Strict-Transport-Security` on all answers.
    pub strict_transport_security: Option<HeaderValue>,
    /// The pages that may ask.
    pub cors: Option<Arc<Cors>>,
    /// Additional names in the serving certificate.
    pub extra_names: Vec<String>,
    pub token_auth_file: Option<PathBuf>,
    pub connections: server::Limits,
    /// The path of the admin's kubeconfig.
    pub kubeconfig: Option<PathBuf>,
}

impl Default for Https {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            certificates: Overrides::default(),
            tls: tls::Settings::default(),
            strict_transport_security: None,
            cors: None,
            extra_names: Vec::new(),
            token_auth_file: None,
            connections: server::Limits::default(),
            kubeconfig: None,
        }
    }
}
