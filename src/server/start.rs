//! The order of start-up: data directory, certificates, listener, health endpoints, application (store, cache, routes),
//! the application's endpoints, kubeconfig. A server without a port skips the steps that concern the network.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::announcement::Announcement;
use super::config::{Authentication, Config, Https, IdentityConfig};
use super::credentials::{Credentials, Loaded, OwnCertificate, authorities, certificates};
use super::data_dir::{self, Temporary};
use super::error::Error;
use super::process::Commons;
use super::reloads::Reloads;
use super::startup::{Startup, Unfinished, health};
use super::{Listening, Running, Server, open_files, private};
use crate::audit::Audit;
use crate::auth::authn::{Anonymous, Authenticator, Settings};
use crate::auth::authorizer::{Authorization, Mode, PUBLIC_PATHS};
use crate::auth::impersonation::Impersonator;
use crate::auth::pki::{Pki, Serving, ServingNames, Sources, client_url};
use crate::auth::revocation::Revocations;
use crate::auth::token_file::Tokens;
use crate::auth::trust::Trust;
use crate::cache::LoadProgress;
use crate::flow_control::FlowControl;
use crate::http::documents::discovery::version;
use crate::http::door::Door;
use crate::http::health::HealthChecks;
use crate::http::limits::InFlightLimits;
use crate::http::routes::Starting;
use crate::http::server::{self as listener, Ending, Responder, Routes};
use crate::http::tls::{Authorities, Tls};
use crate::identity::ServerIdentity;
use crate::kinds::behavior::format;
use crate::runtime::Runtime;

/// Why the application could not be built. An [`OpenError`](crate::storage::OpenError) is reported unchanged.
pub type BuildError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the application.
pub type Build = Box<dyn FnOnce(Environment) -> BoxFuture<'static, Result<Application, BuildError>> + Send>;

/// The environment that start-up provides to the application.
pub struct Environment {
    pub config: Config,
    /// The bound address; `None` for a server without a port.
    pub address: Option<SocketAddr>,
    /// The certificates in PEM by which clients verify the server; `None` without a port.
    pub server_authority: Option<String>,
    /// The CAs that clients' certificates are checked with at present.
    pub trust: watch::Sender<Trust>,
    pub door: Arc<Door>,
    /// `None` if the configuration has no identity.
    pub identity: Option<ServerIdentity>,
    /// The progress of loading the cache, which `/readyz` reports.
    pub progress: LoadProgress,
    /// Contains the checks `ping`, `shutdown` and `startup`; the application adds its own.
    pub health: HealthChecks,
    /// What all clusters of the process share.
    pub commons: Commons,
    /// The application adds the files that it follows.
    pub reloads: Reloads,
    pub runtime: Runtime,
}

/// The application that is ready to serve.
pub struct Application {
    pub responder: Arc<dyn Responder>,
    /// Ends background tasks and closes the store. Called once no request is running any more.
    pub stop: BoxFuture<'static, ()>,
}

/// Starts a server. Returns once requests are answered and the kubeconfig is written.
pub(super) async fn start(config: Config, runtime: Runtime, build: Build) -> Result<Server, Error> {
    runtime.metrics.allow_labels(config.allowed_labels.clone());
    let (ending, commons) = (Ending::new(config.shutdown_grace), Commons::default());
    let unfinished = Unfinished::new(&runtime.tasks, &ending);
    if let Some(dir) = &config.data_dir {
        data_dir::create(dir)?;
        private::narrow(dir);
    }
    let network =
        config.https.as_ref().map(|https| Network::prepare(https, &config, &runtime)).transpose()?;
    let identity = config.identity.as_ref().map(identity).transpose()?;
    let authenticator = match &network {
        Some(network) => network.authenticator.clone(),
        None => Authenticator::new(settings(&config), Tokens::default()),
    };
    let audit = Audit::start(&config.audit, &runtime)?;
    let door = Arc::new(door(&config, authenticator, audit.clone(), &ending.draining, &runtime));
    let revocations = door.revocations.clone();
    let startup = Startup::default();
    let own = network.as_ref().map(|network| network.own.clone());
    let routes = Routes::new(Starting::new(door.clone(), health(&ending.stopping, &startup, own.clone())));
    let network = match network {
        Some(network) => Some(network.listen(&routes, &ending, &commons, &runtime).await?),
        None => None,
    };
    runtime.metrics.set_build_info(&version::document());
    let reloads = Reloads::default();
    let environment = Environment {
        reloads: reloads.clone(),
        config: config.clone(),
        address: network.as_ref().map(|(address, _)| *address),
        trust: network.as_ref().map_or_else(Default::default, |(_, network)| network.trust.clone()),
        server_authority: match &network {
            Some((_, network)) => Some(network.sources.server_authority(&network.pki.serving)?),
            None => None,
        },
        door,
        identity,
        progress: startup.progress.clone(),
        health: health(&ending.stopping, &startup, own),
        commons,
        runtime: runtime.clone(),
    };
    let application = tokio::select! {
        built = build(environment) => built.map_err(Error::of_build)?,
        failure = runtime.tasks.failed() => return Err(Error::Failed(failure)),
    };
    let announcement = network.as_ref().map(|(address, network)| network.announcement(*address));
    announcement.iter().try_for_each(Announcement::withdraw_outdated)?;
    routes.open(application.responder);
    startup.finish();
    private::warn_of_wide_directories(&config);
    let listening = match network.zip(announcement) {
        Some(((address, network), announcement)) => {
            announcement.publish()?;
            tracing::info!(url = client_url(address), store = %config.datastore, "ready");
            Some(network.refresh(address, announcement, revocations, &runtime))
        }
        None => None,
    };
    unfinished.finish();
    let running = Running {
        tasks: runtime.tasks,
        delay: config.shutdown_delay,
        ending,
        application: Some(application.stop),
        runtime: Handle::current(),
    };
    Ok(Server {
        listening,
        routes,
        under_way: TaskTracker::new(),
        metrics: runtime.metrics,
        audit,
        reloads,
        running,
    })
}

/// The parts of start-up that concern the network.
struct Network {
    https: Https,
    own: OwnCertificate,
    sources: Sources,
    pki: Pki,
    named: Vec<(Serving, Vec<String>)>,
    authorities: Authorities,
    trust: watch::Sender<Trust>,
    tls: Tls,
    authenticator: Authenticator,
    temporary: Option<Temporary>,
}

impl Network {
    fn prepare(https: &Https, config: &Config, runtime: &Runtime) -> Result<Self, Error> {
        let (data_dir, temporary) = match &config.data_dir {
            Some(dir) => (dir.clone(), None),
            None => {
                let temporary = Temporary::create()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let sources = sources(https, config, data_dir.join("pki"));
        let pki = sources.ensure(runtime.clock.now())?;
        let authorities =
            authorities(&sources, &config.authentication.front_proxy.allowed_names, runtime.clock.now())?;
        let named = sources.named()?;
        let certificates = certificates(&pki.serving, &named);
        let tls = Tls::new(certificates, authorities.clone(), https.tls.clone(), runtime.clock.clone())?;
        let authenticator = Authenticator::new(settings(config), tokens(https)?);
        let front_proxy = config.authentication.front_proxy.clone();
        let trust = watch::Sender::new(authorities.trust(front_proxy));
        Ok(Self {
            https: https.clone(),
            own: OwnCertificate::new(&pki.serving, runtime.clock.clone()),
            sources,
            pki,
            named,
            authorities,
            trust,
            tls,
            authenticator,
            temporary,
        })
    }

    /// Starts to serve the routes, which change later.
    async fn listen(
        self,
        routes: &Routes,
        ending: &Ending,
        commons: &Commons,
        runtime: &Runtime,
    ) -> Result<(SocketAddr, Self), Error> {
        let wanted = self.https.address;
        let bound = TcpListener::bind(wanted).await.map_err(|source| Error::of_bind(wanted, source))?;
        let address = bound.local_addr().map_err(|source| Error::of_bind(wanted, source))?;
        let limits = open_files::fit(self.https.connections, open_files::limit());
        let serving = listener::serve(
            bound,
            self.tls.clone(),
            routes.clone(),
            limits,
            ending.clone(),
            runtime.metrics.clone(),
            commons.scheduling.clone(),
        );
        runtime.tasks.run_to_end("connections", serving);
        Ok((address, self))
    }

    fn announcement(&self, address: SocketAddr) -> Announcement {
        Announcement::new(self.https.kubeconfig.clone(), self.pki.admin.as_ref(), address)
    }

    /// Starts the regular check of the credentials.
    fn refresh(
        self,
        address: SocketAddr,
        announcement: Announcement,
        revocations: Revocations,
        runtime: &Runtime,
    ) -> Listening {
        let Self { https, own, sources, pki, named, authorities, trust, tls, authenticator, temporary } =
            self;
        let Pki { serving, admin, .. } = pki;
        let loaded = Loaded {
            own,
            sources,
            token_file: https.token_auth_file,
            serving,
            named,
            authorities,
            trust,
            admin,
            tls,
            authenticator,
            revocations,
            announcement,
        };
        let credentials = Credentials::new(loaded, runtime.clock.clone());
        runtime.tasks.run("credentials", credentials.clone().run());
        Listening { address, credentials, _data_dir: temporary }
    }
}

fn door(
    config: &Config,
    authenticator: Authenticator,
    audit: Option<Arc<Audit>>,
    draining: &CancellationToken,
    runtime: &Runtime,
) -> Door {
    let authorizer = Authorization::default();
    let goaway_chance = config.limits.goaway_chance;
    let InFlightLimits { reading, mutating } = config.limits.in_flight;
    let is_fair = config.limits.priority_and_fairness && reading + mutating > 0;
    let flow_control = is_fair.then(|| Arc::new(FlowControl::new(reading + mutating, runtime)));
    Door {
        authenticator,
        authorizer,
        impersonator: Arc::new(Impersonator::new(runtime.metrics.clone())),
        revocations: Revocations::default(),
        audit,
        flow_control,
        request_time: config.limits.request_timeout,
        goaway_chance,
        strict_transport_security: config
            .https
            .as_ref()
            .and_then(|https| https.strict_transport_security.clone()),
        cors: config.https.as_ref().and_then(|https| https.cors.clone()),
        metrics: runtime.metrics.clone(),
        clock: runtime.clock.clone(),
        random: runtime.random.clone(),
        shutdown: draining.clone(),
    }
}

/// The settings of the chain of authenticators. Where everything is allowed, nobody is anonymous but on the public paths:
/// upstream lets nobody be anonymous then.
fn settings(config: &Config) -> Settings {
    let Authentication { anonymous, front_proxy, .. } = &config.authentication;
    let anonymous = match (anonymous, config.authorization.has(Mode::AlwaysAllow)) {
        (Anonymous::Everywhere, true) => Anonymous::At(PUBLIC_PATHS.map(str::to_owned).to_vec()),
        (anonymous, _) => anonymous.clone(),
    };
    let has_proxies =
        config.https.as_ref().is_some_and(|https| https.certificates.front_proxy_ca_file.is_some());
    let front_proxy = has_proxies.then(|| front_proxy.clone());
    Settings { anonymous, front_proxy, audiences: config.authentication.audiences().into() }
}

fn sources(https: &Https, config: &Config, dir: PathBuf) -> Sources {
    let service = config.services.first_address().map(|address| address.to_string());
    let names = ServingNames {
        bind_address: https.address.ip(),
        hostname: hostname(),
        extra: https.extra_names.iter().cloned().chain(service).collect(),
    };
    Sources { dir, names, overrides: https.certificates.clone() }
}

/// Read from a file on Linux, or from a variable that shells often set, to avoid a dependency for one system call.
fn hostname() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    kernel.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned())
}

/// The server's identity. The override was validated when it was parsed.
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

fn tokens(https: &Https) -> Result<Tokens, Error> {
    Ok(https.token_auth_file.as_deref().map(Tokens::load).transpose()?.unwrap_or_default())
}
