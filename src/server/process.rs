//! A process as a value: what its clusters share, and the listener behind which they are found.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rowplane::http::router::Place;
//! use rowplane::{Process, Server};
//!
//! let process = Process::builder().listen(([127, 0, 0, 1], 0).into()).start().await?;
//! let a = process.add("a", Place::Prefix("/clusters/a".to_owned()), Server::builder().memory()).await?;
//! let b = process.add("b", Place::Prefix("/clusters/b".to_owned()), Server::builder().memory()).await?;
//! assert!(a.kubeconfig_yaml().expect("it is served").contains("/clusters/a"));
//! a.stop().await;
//! b.stop().await;
//! process.stop().await;
//! # Ok(())
//! # }
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::commons::Commons;
use super::config::Https;
use super::environment::{Application, Environment};
use super::error::{BuildError, Error};
use super::listener::listen;
use super::membership::{Inner, Membership, lock};
use super::{Builder as ServerBuilder, Server, application};
use crate::auth::pki::client_url;
use crate::http::router::{Place, Router};
use crate::http::server::Ending;
use crate::kinds::behavior::format;
use crate::metrics::{Metrics, sorted};
use crate::runtime::Runtime;
use crate::tasks::Failure;
use crate::wall_clock::WallClock;

/// A process to which clusters are added, and from which they are taken, while it runs. Each is a [`Server`] with settings, users
/// and a store of its own; they share a listener, if there is one, and the [`Commons`]. Clones are the same process, which ends
/// with [`Process::stop`], or when neither a clone nor one of its servers is left.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

/// Builds and starts a [`Process`], with one method per setting.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct Builder {
    https: Option<Https>,
    data_dir: Option<PathBuf>,
    grace: Option<Duration>,
    runtime: Runtime,
}

impl Builder {
    /// Listens on this address, with HTTPS; port 0 means any free port. Without, requests come only in process.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.https.get_or_insert_with(Https::default).address = address;
        self
    }

    /// The settings of the listener. What concerns clients is each cluster's own, and not looked at: the CAs of client
    /// certificates and proxies, the token file, the kubeconfig, CORS and `Strict-Transport-Security`.
    pub fn https(mut self, https: Https) -> Self {
        self.https = Some(https);
        self
    }

    /// The directory in which the listener's certificates are kept, not to be one of a cluster's. Without, they end with the
    /// process.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(directory.into());
        self
    }

    /// How long requests may take to finish when the process is stopped; ten seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Judges the listener's certificates by this clock instead of the system's.
    pub fn clock(mut self, clock: WallClock) -> Self {
        self.runtime.clock = clock;
        self
    }

    /// Starts the process, without a cluster.
    pub async fn start(self) -> Result<Process, Error> {
        let Self { https, data_dir, grace, runtime } = self;
        let (commons, router) = (Commons::default(), Router::default());
        let ending = Ending::new(grace.unwrap_or(Duration::from_secs(10)));
        let listener = match https {
            Some(https) => Some(listen(&https, data_dir, &router, &ending, &commons, &runtime).await?),
            None => None,
        };
        let members = Mutex::default();
        Ok(Process(Arc::new(Inner { commons, router, listener, members, runtime, ending })))
    }
}

impl Process {
    /// A builder with the default settings: a process without a port.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server as a member of the process, which finds it at this place. The name, which no other member has, is that of
    /// the cluster in metrics and in the log. Returns once it answers requests. It is taken away again by being stopped or
    /// dropped, or if it cannot start.
    ///
    /// The server uses of its [`Https`] what concerns clients; address, certificates, TLS and connections are the process's.
    pub async fn add(&self, name: &str, place: Place, server: ServerBuilder) -> Result<Server, Error> {
        self.add_with(name, place, server, application::build).await
    }

    /// Like [`Process::add`], for a server whose application is made by `build` ([`ServerBuilder::start_with`]).
    pub async fn add_with<B, F>(
        &self,
        name: &str,
        place: Place,
        server: ServerBuilder,
        build: B,
    ) -> Result<Server, Error>
    where
        B: FnOnce(Environment) -> F + Send + 'static,
        F: Future<Output = Result<Application, BuildError>> + Send + 'static,
    {
        let empty = name.is_empty().then(|| "it is empty".to_owned());
        if let Some(why) = empty.or_else(|| format::label_value(name).into_iter().next()) {
            return Err(Error::ClusterName(name.to_owned(), why));
        }
        place.check()?;
        let membership = Membership::join(&self.0, name, place.clone())?;
        if let (Place::Host(name), Some(listener)) = (place, &self.0.listener) {
            listener.answer_to(name, &self.0.runtime.clock).await;
        }
        server.start_as(membership, Box::new(move |environment| build(environment).boxed())).await
    }

    /// The bound address; `None` without a port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address()
    }

    /// The URL of the listener for clients on this machine; `None` without a port.
    pub fn url(&self) -> Option<String> {
        self.address().map(client_url)
    }

    /// The metrics of the process and of all its clusters in Prometheus' text format. Those of a cluster have its name in the
    /// label `cluster`.
    pub fn render_metrics(&self) -> String {
        let mut text = self.0.runtime.metrics.render();
        let members: Vec<Arc<Metrics>> = lock(&self.0.members).values().cloned().collect();
        members.iter().for_each(|metrics| text.push_str(&metrics.render()));
        sorted(&text)
    }

    /// Returns once the listener cannot continue, with the reason. What fails in a cluster is that one's failure
    /// ([`Server::failed`]).
    pub async fn failed(&self) -> Failure {
        self.0.runtime.tasks.failed().await
    }

    /// Closes the listener, ends the watches that came through it, and lets other requests finish for at most the grace period.
    /// Servers of the process that are left go on without it.
    pub async fn stop(self) {
        let Inner { runtime, ending, .. } = &*self.0;
        ending.stopping.cancel();
        ending.draining.cancel();
        runtime.tasks.stop();
        runtime.tasks.ended().await;
    }
}
