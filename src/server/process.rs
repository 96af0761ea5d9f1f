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
//! assert!(a.kubeconfig().expect("it is served").contains("/clusters/a"));
//! a.stop().await;
//! b.stop().await;
//! process.stop().await;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::task::TaskTracker;
use tracing::Span;

use super::commons::Commons;
use super::config::Https;
use super::credentials::{Served, Shared};
use super::data_dir::{self, Temporary};
use super::error::Error;
use super::start::{Application, BuildError, Environment};
use super::{Builder as ServerBuilder, Server, application, network};
use crate::auth::pki::client_url;
use crate::http::router::{Place, Resident, Router};
use crate::http::server::{Ending, Responder, Routes};
use crate::http::tls::Authorities;
use crate::kinds::behavior::format;
use crate::metrics::{Metrics, sorted};
use crate::runtime::Runtime;
use crate::tasks::{Failure, Tasks};
use crate::wall_clock::WallClock;
use crate::watched_file::WatchedPaths;

/// A process to which clusters are added, and from which they are taken, while it runs. Each is a [`Server`] with settings, users
/// and a store of its own; they share a listener, if there is one, and the [`Commons`]. Clones are the same process, which ends
/// with [`Process::stop`], or when neither a clone nor one of its servers is left.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    commons: Commons,
    router: Router,
    listener: Option<Listener>,
    members: Mutex<BTreeMap<Arc<str>, Arc<Metrics>>>,
    runtime: Runtime,
    ending: Ending,
}

/// The listener of a process.
pub(super) struct Listener {
    address: SocketAddr,
    /// The certificates in PEM by which clients verify it.
    pub authority: String,
    certificates: Arc<Mutex<Shared>>,
    _data_dir: Option<Temporary>,
}

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

async fn listen(
    https: &Https,
    data_dir: Option<PathBuf>,
    router: &Router,
    ending: &Ending,
    commons: &Commons,
    runtime: &Runtime,
) -> Result<Listener, Error> {
    let temporary = data_dir.is_none().then(Temporary::create).transpose()?;
    let dir = data_dir.or_else(|| Some(temporary.as_ref()?.path().to_owned())).unwrap_or_default();
    data_dir::create(&dir)?;
    let sources = network::listener_sources(https, dir.join("pki"));
    // Each cluster has CAs of its own, of which the others learn nothing: the handshake announces none.
    let served = Served::ensure(&sources, &Authorities::default(), https.tls.clone(), &runtime.clock)?;
    let authority = sources.server_authority(&served.serving)?;
    let address = network::serve(https, &served.tls, router.clone(), ending, commons, runtime).await?;
    let files = sources.overrides.files().cloned().collect();
    let certificates = Arc::new(Mutex::new(Shared { sources, served }));
    runtime.tasks.run("certificates", renew(certificates.clone(), files, runtime.clock.clone()));
    Ok(Listener { address, authority, certificates, _data_dir: temporary })
}

/// Renews the listener's certificates for ever.
async fn renew(certificates: Arc<Mutex<Shared>>, files: Vec<PathBuf>, clock: WallClock) {
    let mut watched = WatchedPaths::of(files).await;
    loop {
        reload(&certificates, &clock).await;
        watched.changed().await;
    }
}

async fn reload(certificates: &Arc<Mutex<Shared>>, clock: &WallClock) {
    let (certificates, now) = (certificates.clone(), clock.now());
    let reading = tokio::task::spawn_blocking(move || lock(&certificates).reload(now));
    if let Err(error) = reading.await {
        tracing::error!(%error, "reading the listener's certificates has failed");
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
        let membership = Membership::join(self, name, place.clone())?;
        if let (Place::Host(name), Some(listener)) = (place, &self.0.listener) {
            listener.answer_to(name, &self.0.runtime.clock).await;
        }
        server.start_as(membership, Box::new(move |environment| build(environment).boxed())).await
    }

    /// The bound address; `None` without a port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.listener.as_ref().map(|listener| listener.address)
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

    /// Closes the listener, and lets requests finish for at most the grace period. Servers of the process that are left go on
    /// without it; whoever wants their watches to end by themselves stops them first.
    pub async fn stop(self) {
        let Inner { runtime, ending, .. } = &*self.0;
        ending.stopping.cancel();
        ending.draining.cancel();
        runtime.tasks.stop();
        runtime.tasks.ended().await;
    }
}

impl Listener {
    /// Has this name in the listener's own certificate from now on.
    async fn answer_to(&self, name: String, clock: &WallClock) {
        {
            let names = &mut lock(&self.certificates).sources.names.extra;
            if names.contains(&name) {
                return;
            }
            names.push(name);
        }
        reload(&self.certificates, clock).await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.runtime.tasks.stop();
        self.ending.abort();
    }
}

/// The place of a server in its process, which is given up when this value is dropped.
pub(super) struct Membership {
    process: Process,
    name: Arc<str>,
    place: Place,
    /// Whether the place is the server's.
    is_served: bool,
    metrics: Arc<Metrics>,
    span: Span,
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.is_served {
            self.process.0.router.remove(&self.place);
        }
        lock(&self.process.0.members).remove(&self.name);
    }
}

impl Membership {
    fn join(process: &Process, name: &str, place: Place) -> Result<Self, Error> {
        let (name, metrics): (Arc<str>, _) = (name.into(), Arc::new(Metrics::default()));
        metrics.know_cluster(&name);
        match lock(&process.0.members).entry(name.clone()) {
            Entry::Occupied(_) => return Err(Error::NameTaken(name.to_string())),
            Entry::Vacant(free) => free.insert(metrics.clone()),
        };
        // Of the highest level, so that each line that is printed has it.
        let span = tracing::error_span!("cluster", name = &*name);
        Ok(Self { process: process.clone(), name, place, is_served: false, metrics, span })
    }

    pub fn commons(&self) -> &Commons {
        &self.process.0.commons
    }

    pub fn listener(&self) -> Option<&Listener> {
        self.process.0.listener.as_ref()
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Gives the server metrics and tasks of its own, which name the cluster.
    pub fn name_runtime(&self, runtime: &mut Runtime) {
        runtime.metrics = self.metrics.clone();
        runtime.tasks = Tasks::new().within(self.span.clone());
    }

    /// Serves the routes from now on. Returns the address of the listener, if there is one.
    pub fn serve(&mut self, routes: &Routes, under_way: &TaskTracker) -> Result<Option<SocketAddr>, Error> {
        let resident =
            Resident { routes: routes.clone(), under_way: under_way.clone(), span: self.span.clone() };
        let resident: Arc<dyn Responder> = Arc::new(resident);
        self.process.0.router.add(&self.place, &resident)?;
        self.is_served = true;
        Ok(self.process.address())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
