//! A server as a value. A [`Builder`] makes it; it is spoken to in process or over the network, and stopped when it is dropped.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = rowplane::Server::builder().memory().start().await?;
//! let client = kube::Client::new(server.service(), "default");
//! assert_eq!(client.apiserver_version().await?.major, "1");
//! server.stop().await;
//! # Ok(())
//! # }
//! ```

mod announcement;
pub mod application;
mod authentication;
mod authorization;
pub mod branches;
mod builder;
pub mod commons;
pub mod config;
mod credentials;
pub mod data_dir;
pub mod datastore;
pub mod definitions;
pub mod environment;
pub mod error;
pub mod hostname;
mod listener;
mod manifests;
pub mod mark;
mod membership;
mod network;
pub mod open_files;
pub mod parent;
mod private;
pub mod process;
mod proxy_client;
pub mod reloads;
pub mod replacements;
mod replica;
mod service_accounts;
mod start;
mod startup;
pub mod testing;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use self::branches::SecretValues;
use self::credentials::Credentials;
use self::data_dir::Temporary;
use self::membership::Membership;
use self::parent::Parent;
use self::reloads::Reloads;
use crate::audit::Audit;
use crate::http::in_process::InProcess;
use crate::http::routes::stopped_router;
use crate::http::server::{Ending, Routes};
use crate::metrics::Metrics;
use crate::tasks::{Failure, Tasks};
use crate::user::User;

pub use self::builder::Builder;
pub use self::error::Error;
pub use self::process::Process;

/// A running server of one cluster. It has a listener of its own, none, or that of a [`Process`]; a program may have any number
/// of servers. Dropping one stops everything that it has started, without waiting for requests; [`Server::stop`] lets them finish.
#[must_use = "a server that is dropped is stopped"]
pub struct Server {
    parent: Option<Parent>,
    listening: Option<Listening>,
    routes: Routes,
    /// Counts requests that have not been answered completely, but those on connections of the server's own.
    under_way: TaskTracker,
    metrics: Arc<Metrics>,
    audit: Option<Arc<Audit>>,
    reloads: Reloads,
    running: Running,
    /// `None` for a server with a listener of its own, or without one.
    membership: Option<Membership>,
}

/// The parts of a server that can be reached over the network.
struct Listening {
    address: SocketAddr,
    url: String,
    /// See [`Server::ca`].
    ca: PathBuf,
    credentials: Credentials,
    /// The directory of the certificates, if the settings name none.
    _data_dir: Option<Temporary>,
}

impl Server {
    /// A builder with the default settings: an embedded server without a port and without TLS.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, ListParams};
    ///
    /// let server = rowplane::Server::builder().memory().start().await?;
    /// let client = kube::Client::new(server.service(), "default");
    /// let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    /// assert!(config_maps.list(&ListParams::default()).await?.items.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client in the same process to which everything is allowed. With the `kube` crate:
    /// `kube::Client::new(server.service(), "default")`.
    pub fn service(&self) -> InProcess {
        self.service_as(User::admin())
    }

    /// A client in the same process that acts as this user, who may do what roles and bindings say.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rowplane::user::User;
    ///
    /// let server = rowplane::Server::builder().memory().start().await?;
    /// let alice = User { name: "alice".to_owned(), ..User::default() };
    /// let client = kube::Client::new(server.service_as(alice), "default");
    /// let metrics = http::Request::get("/metrics").body(Vec::new())?;
    /// let refused = client.request_text(metrics).await;
    /// assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    /// # Ok(())
    /// # }
    /// ```
    pub fn service_as(&self, user: User) -> InProcess {
        InProcess::new(self.routes.clone(), user, self.under_way.clone())
    }

    /// The bound address; `None` for a server without a port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listening.as_ref().map(|listening| listening.address)
    }

    /// The URL for clients on this machine; `None` for a server without a port.
    pub fn url(&self) -> Option<String> {
        self.listening.as_ref().map(|listening| listening.url.clone())
    }

    /// The path of the certificate, in PEM, that vouches for the server's; `None` for a server without a port.
    pub fn ca(&self) -> Option<PathBuf> {
        self.listening.as_ref().map(|listening| listening.ca.clone())
    }

    /// The path of the admin's kubeconfig, which ends with the server if the settings name no directory. `None` without a port, or
    /// if the server's own CA is not trusted.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = rowplane::Server::builder().memory().listen(([127, 0, 0, 1], 0).into()).start().await?;
    /// let kubeconfig = std::fs::read_to_string(server.kubeconfig().expect("it listens"))?;
    /// assert!(kubeconfig.contains(&server.url().expect("it listens")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn kubeconfig(&self) -> Option<PathBuf> {
        self.listening.as_ref()?.credentials.kubeconfig()?.1
    }

    /// The text of the admin's kubeconfig.
    pub fn kubeconfig_yaml(&self) -> Option<String> {
        self.listening.as_ref()?.credentials.kubeconfig().map(|(text, _)| text)
    }

    /// The metrics of this server; other servers of the process have their own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns once the server cannot continue, with the reason. It must be stopped then.
    pub async fn failed(&self) -> Failure {
        self.running.tasks.failed().await
    }

    /// Like [`Server::failed`], for a task that does not own the server.
    pub fn failure(&self) -> impl Future<Output = Failure> + Send + 'static {
        let tasks = self.running.tasks.clone();
        async move { tasks.failed().await }
    }

    /// Reads the files of certificates, tokens and settings, and the audit policy, again. This also happens regularly.
    pub async fn reload_credentials(&self) {
        if let Some(listening) = &self.listening {
            listening.credentials.reload().await;
        }
        if let Some(audit) = &self.audit {
            audit.reload_policy().await;
        }
        self.reloads.run().await;
    }

    /// Starts a fork: a server that begins with the newest state of this one and writes beside it, with users and rights of its
    /// own from then on, and with Secrets as they are. It makes no connections to anybody.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    ///
    /// let server = rowplane::Server::builder().memory().start().await?;
    /// let fork = server.fork().await?;
    /// let maps = |server: &rowplane::Server| -> Api<ConfigMap> {
    ///     Api::namespaced(kube::Client::new(server.service(), "default"), "default")
    /// };
    /// let map: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "a"}}"#)?;
    /// maps(&fork).create(&PostParams::default(), &map).await?;
    /// assert!(maps(&fork).get_opt("a").await?.is_some());
    /// assert!(maps(&server).get_opt("a").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork(&self) -> Result<Self, Error> {
        self.parent()?.fork(None, SecretValues::Kept).await
    }

    /// Starts a fork of the state at a time. Fails if that is in the future, or longer ago than history is kept.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = rowplane::Server::builder().memory().start().await?;
    /// let (before, started) = (std::time::SystemTime::UNIX_EPOCH, std::time::SystemTime::now());
    /// let fork = server.fork_at(started).await?;
    /// assert!(server.fork_at(before).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork_at(&self, time: SystemTime) -> Result<Self, Error> {
        self.parent()?.fork(Some(time), SecretValues::Kept).await
    }

    fn parent(&self) -> Result<&Parent, Error> {
        self.parent.as_ref().ok_or_else(|| Error::Build("it cannot be forked".into()))
    }

    /// Goes on as ever for the delay of the settings, only not ready; then lets requests finish for at most the grace
    /// period, and stops everything.
    pub async fn stop(self) {
        let Running { ending, delay, .. } = &self.running;
        ending.stopping.cancel();
        if !delay.is_zero() {
            tokio::time::sleep(*delay).await;
        }
        self.stop_now().await;
    }

    /// Like [`Server::stop`], without the delay.
    pub async fn stop_now(mut self) {
        let Running { tasks, ending, application, .. } = &mut self.running;
        ending.stopping.cancel();
        tasks.stop();
        ending.draining.cancel();
        self.membership.iter().for_each(|member| member.draining().cancel());
        self.under_way.close();
        let (_, answered) =
            tokio::join!(tasks.ended(), tokio::time::timeout(ending.grace, self.under_way.wait()));
        if answered.is_err() {
            let requests = self.under_way.len();
            tracing::warn!(requests, "the grace period is over, which cuts requests of this process");
        }
        self.routes.close(stopped_router());
        self.membership.take();
        // Nobody writes any more but the server itself, which takes its registration away last.
        if let Some(stop) = application.take() {
            stop.await;
        }
    }
}

/// Everything that must be stopped with the server.
struct Running {
    tasks: Tasks,
    /// Between the end of readiness and that of the listener.
    delay: Duration,
    ending: Ending,
    /// Ends the application's tasks and closes the store; `None` once that has started.
    application: Option<BoxFuture<'static, ()>>,
    runtime: Handle,
}

impl Drop for Server {
    fn drop(&mut self) {
        let Running { tasks, ending, application, runtime, .. } = &mut self.running;
        tasks.stop();
        ending.abort();
        self.routes.close(stopped_router());
        if let Some(stop) = application.take() {
            runtime.spawn(stop);
        }
    }
}
