//! The environment that start-up provides to an application, and the application that is made in it.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::commons::Commons;
use super::config::Config;
use super::error::BuildError;
use super::parent::{Origin, Parent};
use super::reloads::Reloads;
use crate::api::followers::api_services::ProxyIdentity;
use crate::auth::trust::Trust;
use crate::cache::LoadProgress;
use crate::http::door::Door;
use crate::http::health::HealthChecks;
use crate::http::server::Responder;
use crate::http::test_endpoints::Controls;
use crate::identity::ServerIdentity;
use crate::runtime::Runtime;

/// Makes the application.
pub type Build = Box<dyn FnOnce(Environment) -> BoxFuture<'static, Result<Application, BuildError>> + Send>;

/// The environment that start-up provides to the application.
pub struct Environment {
    pub config: Config,
    /// `None` for a server that is no fork.
    pub origin: Option<Origin>,
    /// The bound address; `None` for a server without a port.
    pub address: Option<SocketAddr>,
    /// The path below which clients find the server; empty if that is the root.
    pub path: String,
    /// The certificates in PEM by which clients verify the server; `None` without a port.
    pub server_authority: Option<String>,
    /// The certificate that is shown to extension servers.
    pub proxy_identity: ProxyIdentity,
    /// The CAs that clients' certificates are checked with at present.
    pub trust: watch::Sender<Trust>,
    pub door: Arc<Door>,
    /// `None` if the configuration has no identity.
    pub identity: Option<ServerIdentity>,
    /// The progress of loading the cache, which `/readyz` reports.
    pub progress: LoadProgress,
    /// Contains the checks `ping`, `shutdown` and `startup`; the application adds its own.
    pub health: HealthChecks,
    /// The controls for tests; `None` unless the configuration wants them.
    pub controls: Option<Arc<Controls>>,
    /// The means that all clusters of the process share.
    pub commons: Commons,
    /// The application adds the files that it follows.
    pub reloads: Reloads,
    pub runtime: Runtime,
}

/// The application that is ready to serve.
pub struct Application {
    pub responder: Arc<dyn Responder>,
    /// The running server as a parent of forks; `None` if it cannot be forked.
    pub parent: Option<Parent>,
    /// Ends background tasks and closes the store. Called once no request is running any more.
    pub stop: BoxFuture<'static, ()>,
}
