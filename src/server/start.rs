//! The order of start-up: data directory, certificates, listener, health endpoints, application (store, cache, routes),
//! the application's endpoints, kubeconfig. A server without a port skips the steps that concern the network.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::announcement::Announcement;
use super::authentication::settings;
use super::commons::Commons;
use super::config::{Config, Registration};
use super::definitions::Definition;
use super::environment::{Application, Build, Environment};
use super::error::Error;
use super::hostname::identity;
use super::membership::Membership;
use super::network::Network;
use super::parent::Origin;
use super::reloads::Reloads;
use super::startup::{Startup, Unfinished, health};
use super::{Running, Server, data_dir, definitions, private};
use crate::audit::Audit;
use crate::auth::authn::Authenticator;
use crate::auth::authorizer::Authorization;
use crate::auth::impersonation::Impersonator;
use crate::auth::pki::client_url;
use crate::auth::revocation::Revocations;
use crate::auth::token_file::Tokens;
use crate::egress::Egresses;
use crate::flow_control::FlowControl;
use crate::http::documents::discovery::version;
use crate::http::door::Door;
use crate::http::limits::InFlightLimits;
use crate::http::router::Place;
use crate::http::routes::Starting;
use crate::http::server::{Ending, Routes};
use crate::http::test_endpoints::Controls;
use crate::identity::ServerIdentity;
use crate::runtime::Runtime;
use crate::tasks::Tasks;
use crate::traces::Tracer;

/// The way by which clients find a server.
pub(super) enum At {
    /// A listener of its own, or none.
    Own,
    /// The listener of its process.
    Process(Membership),
    /// The server that it is a fork of.
    Fork(Box<Origin>),
}

impl At {
    fn split(self) -> (Option<Membership>, Option<Origin>) {
        match self {
            Self::Own => (None, None),
            Self::Process(membership) => (Some(membership), None),
            Self::Fork(origin) => (None, Some(*origin)),
        }
    }
}

/// Starts a server, behind a listener of its own or as a member of a process. Returns once requests are answered and the
/// kubeconfig is written.
pub(super) async fn start(config: Config, runtime: Runtime, at: At, build: Build) -> Result<Server, Error> {
    let (mut membership, origin) = at.split();
    let definitions = definitions::read(&config.crds)?;
    let network_runtime = configured(runtime, &config)?;
    let (controls, runtime) = controlled(origin.as_ref(), &config, &network_runtime);
    let mut ending = Ending::new(config.shutdown_grace);
    if let Some(origin) = &origin {
        ending.draining = origin.draining.child_token();
    }
    let unfinished = Unfinished::new(&runtime.tasks, &ending);
    prepare_data_dir(&config)?;
    let commons = commons(membership.as_ref(), origin.as_ref());
    let network = network(membership.as_ref(), &config, &network_runtime)?;
    let identity = config.identity.as_ref().map(identity).transpose()?;
    let audit = Audit::start(&config.audit, &runtime)?;
    let place = (network.as_ref(), membership.as_ref());
    let mut door = door(&config, place, (identity.as_ref(), audit.clone()), &ending.draining, &runtime);
    if let Some(origin) = &origin {
        origin.let_in(&mut door, &ending.draining);
    }
    let (revocations, door) = (door.revocations.clone(), Arc::new(door));
    let startup = Startup::default();
    let own = network.as_ref().and_then(Network::own_certificate);
    let routes = Routes::new(Starting::new(door.clone(), health(&ending.stopping, &startup, own.clone())));
    let under_way = TaskTracker::new();
    let address = match (&network, &mut membership) {
        (_, Some(member)) => member.serve(&routes, &under_way)?,
        (Some(network), None) => Some(network.listen(&routes, &ending, &commons, &network_runtime).await?),
        (None, None) => None,
    };
    runtime.metrics.set_build_info(&version::document());
    runtime.metrics.know_features(switched(&config));
    let reloads = Reloads::default();
    let environment = Environment {
        server_authority: match &origin {
            Some(origin) => origin.server_authority.clone(),
            None => network.as_ref().map(|network| network.server_authority.clone()),
        },
        reloads: reloads.clone(),
        config: config.clone(),
        origin,
        address,
        path: membership.as_ref().map(|member| member.place().path().to_owned()).unwrap_or_default(),
        trust: network.as_ref().map(|network| network.trust.clone()).unwrap_or_default(),
        proxy_identity: network.as_ref().map(Network::proxy_identity).unwrap_or_default(),
        door,
        identity,
        progress: startup.progress.clone(),
        health: health(&ending.stopping, &startup, own),
        controls,
        commons,
        runtime: runtime.clone(),
    };
    let application = application(build, environment, definitions, &runtime.tasks).await?;
    let url = address.map(|address| url(address, membership.as_ref()));
    let announcement = network.as_ref().zip(url.as_ref()).map(|(network, url)| network.announcement(url));
    announcement.iter().try_for_each(Announcement::withdraw_outdated)?;
    routes.open(application.responder);
    startup.finish();
    private::warn_of_wide_directories(&config);
    let listening = match (network.zip(announcement), address, url) {
        (Some((network, announcement)), Some(address), Some(url)) => {
            announcement.publish()?;
            tracing::info!(url, store = %config.datastore, "ready");
            Some(network.refresh((address, url), announcement, revocations, &network_runtime))
        }
        _ => None,
    };
    unfinished.finish();
    let running = Running {
        tasks: runtime.tasks,
        delay: config.shutdown_delay,
        ending,
        application: Some(application.stop),
        runtime: Handle::current(),
    };
    let (parent, metrics) = (application.parent, runtime.metrics);
    Ok(Server { parent, listening, routes, under_way, metrics, audit, reloads, running, membership })
}

/// The controls for tests, those of a fork or new ones, and the runtime with the time that they set. The network keeps the
/// other one: certificates are judged by the time that clients have.
fn controlled(
    origin: Option<&Origin>,
    config: &Config,
    network: &Runtime,
) -> (Option<Arc<Controls>>, Runtime) {
    let new = || Arc::new(Controls::new(Arc::default(), None, network.random.fork()));
    let controls = match origin {
        Some(origin) => origin.controls.clone(),
        None => config.test_endpoints.then(new),
    };
    let Some(steering) = controls.as_ref().map(|controls| controls.clock.clone()) else {
        return (None, network.clone());
    };
    let clock = network.clock.clone().steered(steering);
    (controls, Runtime { clock, ..network.clone() })
}

/// The means that the server shares with others.
fn commons(membership: Option<&Membership>, origin: Option<&Origin>) -> Commons {
    match (membership, origin) {
        (Some(member), _) => member.commons().clone(),
        (None, Some(origin)) => origin.commons.clone(),
        (None, None) => Commons::default(),
    }
}

/// The server's side of the network, if it has one: its own, or that of its process.
fn network(
    membership: Option<&Membership>,
    config: &Config,
    runtime: &Runtime,
) -> Result<Option<Network>, Error> {
    let network = match membership {
        Some(member) => {
            let vouching =
                member.listener().map(|listener| (listener.authority.clone(), listener.ca.clone()));
            vouching.map(|vouching| Network::shared(vouching, config, runtime)).transpose()?
        }
        None => config.https.as_ref().map(|https| Network::prepare(https, config, runtime)).transpose()?,
    };
    Ok(network)
}

/// The runtime with its ways to networks, and what its metrics may show.
fn configured(runtime: Runtime, config: &Config) -> Result<Runtime, Error> {
    runtime.metrics.allow_labels(config.allowed_labels.clone());
    let open = |egress| Egresses::open(egress, &runtime.metrics).map_err(Error::Egress);
    let egresses = match &config.egress {
        Some(egress) => open(egress)?,
        // A fork has none, and keeps that.
        None => runtime.egresses.clone(),
    };
    Ok(Runtime { egresses, ..runtime })
}

/// Makes the application, with the definitions that it is to serve, unless one of the tasks fails meanwhile.
async fn application(
    build: Build,
    environment: Environment,
    definitions: Vec<Definition>,
    tasks: &Tasks,
) -> Result<Application, Error> {
    let application = tokio::select! {
        built = build(environment) => built.map_err(Error::of_build)?,
        failure = tasks.failed() => return Err(Error::Failed(failure)),
    };
    match definitions::apply_all(&application.responder, definitions).await {
        Ok(()) => Ok(application),
        Err(invalid) => {
            application.stop.await;
            Err(invalid.into())
        }
    }
}

fn prepare_data_dir(config: &Config) -> Result<(), Error> {
    if let Some(dir) = &config.data_dir {
        data_dir::create(dir)?;
        private::narrow(dir);
    }
    Ok(())
}

/// The URL for clients on this machine.
fn url(address: SocketAddr, membership: Option<&Membership>) -> String {
    match membership.map(Membership::place) {
        Some(Place::Host(name)) => format!("https://{name}:{}", address.port()),
        place => format!("{}{}", client_url(address), place.map_or("", Place::path)),
    }
}

fn door(
    config: &Config,
    (network, member): (Option<&Network>, Option<&Membership>),
    (identity, audit): (Option<&ServerIdentity>, Option<Arc<Audit>>),
    draining: &CancellationToken,
    runtime: &Runtime,
) -> Door {
    let authorizer = Authorization::default();
    let authenticator = network.map(|network| network.authenticator.clone());
    let goaway_chance = config.limits.goaway_chance;
    let InFlightLimits { reading, mutating } = config.limits.in_flight;
    let is_fair = config.limits.priority_and_fairness && reading + mutating > 0;
    let flow_control = is_fair.then(|| Arc::new(FlowControl::new(reading + mutating, runtime)));
    Door {
        authenticator: authenticator
            .unwrap_or_else(|| Authenticator::new(settings(config), Tokens::default())),
        authorizer,
        client_trust: network.map(|network| network.client_trust.clone()),
        cluster: member.map(Membership::name).cloned(),
        impersonator: Arc::new(Impersonator::new(runtime.metrics.clone())),
        revocations: Revocations::default(),
        audit,
        tracer: config.traces.as_ref().map(|traces| {
            let instance = identity.map(ServerIdentity::id);
            Tracer::start(traces, instance, runtime)
        }),
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
        remote_services: Arc::default(),
        shutdown: draining.clone(),
        listener_shutdown: member.map(Membership::draining).cloned(),
    }
}

/// The features that can be switched, as they are.
fn switched(config: &Config) -> Vec<(&'static str, bool)> {
    let registers = config.identity.as_ref().map(|identity| identity.registration == Registration::On);
    vec![("APIServerIdentity", registers.is_some()), ("StorageVersionAPI", registers == Some(true))]
}
