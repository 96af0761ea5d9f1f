//! `rowplane serve`: the order of start-up and shutdown.
//!
//! Up: data directory, certificates, listener, serving of health, application (store, cache, routes), serving of it,
//! kubeconfig, banner.
//! Down: readiness fails and watches end, requests drain for the grace period, the application stops.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::announcement::Announcement;
use super::config::{IdentityConfig, ServeConfig};
use super::credentials::{Credentials, Loaded, certificate};
use super::error::Error;
use super::open_files;
use super::private;
use super::signals::Signals;
use super::startup::{Startup, Unfinished, health};
use crate::auth::authn::Authenticator;
use crate::auth::authorizer::MastersOnly;
use crate::auth::pki::{Pki, ServingNames, Sources};
use crate::auth::token_file::Tokens;
use crate::cache::LoadProgress;
use crate::http::app::Door;
use crate::http::discovery::version;
use crate::http::health::HealthChecks;
use crate::http::metrics::Metrics;
use crate::http::routes::starting_router;
use crate::http::server::{self, Routes};
use crate::http::tls::Tls;
use crate::identity::ServerIdentity;
use crate::kinds::behavior::format;
use crate::tasks::{Failure, Tasks};
use crate::wall_clock::WallClock;

/// How long a server that cannot go on may take to end.
const ABANDONED: Duration = Duration::from_secs(5);

/// Why the application could not be built. An [`OpenError`](crate::storage::OpenError) is told as it is.
pub type BuildError = Box<dyn std::error::Error + Send + Sync>;

/// What start-up gives to the application.
pub struct Environment {
    pub config: ServeConfig,
    /// The address really bound.
    pub address: SocketAddr,
    pub door: Arc<Door>,
    /// `None` if the configuration has none.
    pub identity: Option<ServerIdentity>,
    pub metrics: Arc<Metrics>,
    /// What `/readyz` tells of the cache.
    pub progress: LoadProgress,
    /// With `ping`, `shutdown` and `startup` in it; the application adds its own and mounts the routes.
    pub health: HealthChecks,
    /// What runs in the background, and how it ends the server when it cannot go on.
    pub tasks: Tasks,
}

/// What start-up gets back, ready to serve.
pub struct Application {
    pub router: Router,
    /// Ends background tasks and closes the store; called once no request runs any more.
    pub stop: BoxFuture<'static, ()>,
}

/// Runs a server until a signal ends it.
pub async fn serve<B>(config: ServeConfig, build: B) -> Result<(), Error>
where
    B: AsyncFnOnce(Environment) -> Result<Application, BuildError>,
{
    let mut signals = Signals::catch().map_err(Error::Signals)?;
    let server = tokio::select! {
        started = Server::start(config, build) => started?,
        // Nothing has been promised to anybody yet.
        _ = signals.next() => return Ok(()),
    };
    server.announcement.print();
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "shutting down"),
        failure = server.tasks.failed() => return server.abandon(failure).await,
    }
    let tasks = server.tasks.clone();
    tokio::select! {
        stopped = server.stop() => stopped,
        failure = tasks.failed() => Err(Error::Failed(failure)),
        signal = signals.next() => {
            tracing::warn!(signal, "shutting down without waiting any longer");
            Ok(())
        }
    }
}

/// A server that serves.
pub struct Server {
    address: SocketAddr,
    tasks: Tasks,
    application_stop: BoxFuture<'static, ()>,
    shutdown: CancellationToken,
    announcement: Announcement,
    credentials: Credentials,
}

impl Server {
    /// Returns once requests are answered and the kubeconfig is written.
    pub async fn start<B>(config: ServeConfig, build: B) -> Result<Self, Error>
    where
        B: AsyncFnOnce(Environment) -> Result<Application, BuildError>,
    {
        Self::start_at(config, WallClock::default(), build).await
    }

    /// The same, with another clock for the life of certificates.
    pub async fn start_at<B>(config: ServeConfig, clock: WallClock, build: B) -> Result<Self, Error>
    where
        B: AsyncFnOnce(Environment) -> Result<Application, BuildError>,
    {
        create_data_dir(&config.data_dir)?;
        private::narrow(&config);
        let sources = sources(&config);
        let Pki { serving, client_roots, admin } = sources.ensure(clock.now())?;
        let tls = Tls::new(certificate(&serving), client_roots.clone(), clock.clone())?;
        let identity = config.identity.as_ref().map(identity).transpose()?;
        let (shutdown, tasks) = (CancellationToken::new(), Tasks::new());
        let authenticator = Authenticator::new(tokens(&config)?);
        let door = Arc::new(Door {
            authenticator: authenticator.clone(),
            authorizer: Arc::new(MastersOnly),
            goaway_chance: config.limits.goaway_chance,
            shutdown: shutdown.clone(),
        });
        let listener = bind(config.listen_address()).await?;
        let address =
            listener.local_addr().map_err(|source| Error::of_bind(config.listen_address(), source))?;

        let metrics = Arc::new(Metrics::new(&version::document())?);
        metrics.install();
        let unfinished = Unfinished::new(&tasks, &shutdown);
        let startup = Startup::default();
        let routes = Routes::new(starting_router(door.clone(), health(&shutdown, &startup)));
        let limits = open_files::fit(config.connections, open_files::raise_limit());
        let grace = config.shutdown_grace;
        let connections =
            server::serve(listener, tls.clone(), routes.clone(), limits, shutdown.clone(), grace);
        tasks.run_to_end("connections", connections);
        let environment = Environment {
            config: config.clone(),
            address,
            door,
            identity,
            metrics: metrics.clone(),
            progress: startup.progress.clone(),
            health: health(&shutdown, &startup),
            tasks: tasks.clone(),
        };
        let application = tokio::select! {
            built = build(environment) => built.map_err(Error::of_build)?,
            failure = tasks.failed() => return Err(Error::Failed(failure)),
        };

        let announcement = Announcement::new(&config, admin.as_ref(), address);
        announcement.withdraw_outdated()?;
        routes.open(application.router);
        startup.finish();
        tasks.run("metrics", async move { metrics.run_upkeep().await });
        private::warn_of_wide_directories(&config);
        announcement.publish()?;
        unfinished.finish();
        let token_file = config.token_auth_file.clone();
        let loaded = Loaded {
            sources,
            token_file,
            serving,
            client_roots,
            admin,
            tls,
            authenticator,
            announcement: announcement.clone(),
        };
        let credentials = Credentials::new(loaded, clock);
        tasks.run("credentials", credentials.clone().run());
        Ok(Self { address, tasks, application_stop: application.stop, shutdown, announcement, credentials })
    }

    /// The address really bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns once the server cannot go on, and why; it has to be stopped then.
    pub async fn failed(&self) -> Failure {
        self.tasks.failed().await
    }

    /// Reads the files of certificates and tokens again, which happens every minute anyway.
    pub async fn reload_credentials(&self) {
        self.credentials.reload().await;
    }

    /// Drains for at most the grace period, then stops the application.
    pub async fn stop(self) -> Result<(), Error> {
        self.tasks.stop();
        self.shutdown.cancel();
        self.tasks.ended().await;
        self.application_stop.await;
        Ok(())
    }

    /// Ends a server that cannot go on: what can still be answered is, for a short while.
    async fn abandon(self, failure: Failure) -> Result<(), Error> {
        if tokio::time::timeout(ABANDONED, self.stop()).await.is_err() {
            tracing::warn!("not everything has ended in time");
        }
        Err(Error::Failed(failure))
    }
}

pub(super) fn create_data_dir(dir: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Error::DataDir { path: dir.to_owned(), source })
}

fn sources(config: &ServeConfig) -> Sources {
    let service = config.services.first_address().map(|address| address.to_string());
    let names = ServingNames {
        bind_address: config.bind_address,
        hostname: hostname(),
        extra: config.extra_names.iter().cloned().chain(service).collect(),
    };
    Sources { dir: config.pki_dir(), names, overrides: config.certificates.clone() }
}

/// Without a dependency for one system call: Linux says it in a file, elsewhere shells often do.
fn hostname() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    kernel.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned())
}

/// The override has been checked where it was parsed.
fn identity(config: &IdentityConfig) -> Result<ServerIdentity, Error> {
    if let Some(hostname) = &config.hostname_override {
        return Ok(ServerIdentity::of_host(hostname));
    }
    let hostname = hostname().unwrap_or_default();
    let refused = if hostname.is_empty() {
        Some("it is empty".to_owned())
    } else {
        format::label_value(&hostname).into_iter().next()
    };
    match refused {
        Some(why) => Err(Error::Hostname(hostname, why)),
        None => Ok(ServerIdentity::of_host(&hostname)),
    }
}

fn tokens(config: &ServeConfig) -> Result<Tokens, Error> {
    Ok(config.token_auth_file.as_deref().map(Tokens::load).transpose()?.unwrap_or_default())
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::of_bind(address, source))
}
