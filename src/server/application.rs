//! Puts the server together, in phases: the store and its cluster ([`opening`]), access, controllers ([`work`]), routes.

mod access;
mod opening;
mod work;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use self::access::Access;
use self::opening::Opened;
use self::work::Work;
use super::commons::Commons;
use super::config::Config;
use super::datastore::Datastore;
use super::environment::{Application, Environment};
use super::error::BuildError;
use super::parent::{Origin, Parent};
use super::replica::Replica;
use super::{mark, service_accounts};
use crate::api::admission::Chain;
use crate::api::storage_version::gate::Gate;
use crate::api::{Api, definitions};
use crate::audit::Audit;
use crate::auth::service_accounts::Resources;
use crate::auth::service_accounts::issuer::IssuerDocuments;
use crate::controllers;
use crate::controllers::bootstrap::cluster_authentication;
use crate::controllers::servers::kubernetes_service::Advertised;
use crate::http::app::{App, Limits};
use crate::http::branches::Branches;
use crate::http::documents::publications::{Publication, Publications};
use crate::http::door::Door;
use crate::http::health::{Endpoint, HealthChecks};
use crate::http::limits::{BodyBudget, PastReads, Statements};
use crate::http::routes::responder;
use crate::http::test_endpoints::Controls;
use crate::http::zpages::Zpages;
use crate::runtime::Runtime;
use crate::storage::{Backend, HighWaterMark};

/// The address in the documents of a server without a port.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);
/// How old a result of the readiness check may be. It is shared, since anybody may ask for it.
const READINESS_PERIOD: Duration = Duration::from_secs(1);

/// Opens the store and builds the application on it.
pub async fn build(environment: Environment) -> Result<Application, BuildError> {
    let backend =
        environment.commons.open(&environment.config, environment.runtime.clock.unsteered()).await?;
    build_on(backend, environment).await
}

/// Builds the application on an open store; [`Application::stop`] closes it.
pub async fn build_on(
    backend: Arc<dyn Backend>,
    environment: Environment,
) -> Result<Application, BuildError> {
    Ok(build_with_api(backend, environment).await?.0)
}

/// The boxed form of [`build_on`].
pub fn boxed_on(
    backend: Arc<dyn Backend>,
    environment: Environment,
) -> BoxFuture<'static, Result<Application, BuildError>> {
    build_on(backend, environment).boxed()
}

/// The line for operators about a store in memory.
const IN_MEMORY: &str =
    "the state is in memory and is lost when the server ends; --datastore or --data-dir keeps it";

/// An application and its verbs.
type WithApi = (Application, Arc<Api>);

/// Like [`build_on`], for callers that also use the verbs or change what is served.
pub fn build_with_api(
    backend: Arc<dyn Backend>,
    environment: Environment,
) -> BoxFuture<'static, Result<WithApi, BuildError>> {
    put_together(backend, environment).boxed()
}

async fn put_together(backend: Arc<dyn Backend>, environment: Environment) -> Result<WithApi, BuildError> {
    let Environment { config, address, server_authority, trust, door, identity, progress, .. } = environment;
    let Environment { mut health, reloads, runtime, commons, path, proxy_identity, origin, .. } = environment;
    let is_local = address.is_none_or(|address| address.ip().is_loopback());
    let controls = environment.controls.filter(|_| is_local);
    if let Some(identity) = &identity {
        runtime.metrics.know_server(super::reloads::hash(identity.id().as_bytes()));
    }
    let room = match &origin {
        Some(origin) => origin.room.clone(),
        None => Arc::new(Semaphore::new(config.branches.most)),
    };
    let opened = Opened::open(backend, &config, &runtime, &progress, origin.as_ref()).await?;
    let (backend, mark, hidden) = (opened.backend.clone(), opened.mark.clone(), opened.hidden);
    // Two groups of tasks: the controllers end first, and what a leaving server writes is written before the writer
    // ends.
    let (storing, controlling) = (opened.storing.clone(), runtime.group());
    let audiences = door.authenticator.audiences().clone();
    let (given, lanes) = ((server_authority, audiences), commons.lanes.part());
    let extending = (proxy_identity, door.remote_services.clone());
    let cluster = opened.cluster(&config, address, given, extending, lanes, &controlling).await?;
    let api = Arc::new(Api {
        cluster: Arc::new(cluster),
        admission: Chain::new(&config.admission, &runtime.metrics)?,
    });
    let token_objects = service_accounts::resources(&api, hidden.token_keys)?;
    service_accounts::publish_key(&config, &api, hidden.token_keys).await?;
    service_accounts::follow_keys(&config, &api, hidden.token_keys, &reloads, &controlling.tasks);
    let advertised = advertised(&config, address);
    let publication = begin(&api, &advertised, origin).await?;
    health.add_post_start_hook("rbac/bootstrap-roles").finish();
    let server = identity.as_ref().map(|identity| identity.id().to_owned());
    let access = Access { config: &config, door: &door, reloads: &reloads, server: server.as_deref() };
    access.authorize(&api, &controlling)?;
    let own = trust.borrow().clone();
    if config.cluster_authentication
        && let Err(error) = cluster_authentication::reconcile(&api, &own).await
    {
        tracing::warn!(%error, "cannot say how this server authenticates, will try again");
    }
    api.follow_definitions().await?;
    controlling.tasks.run("definitions", definitions::follow(api.cluster.clone()));
    access.share_fairly(&api, &controlling).await?;
    let audit = door.audit.clone();
    if let Some(audit) = &audit {
        audit.open_database(&backend);
    }
    let work = Work { config: &config, api: &api, advertised, controlling: &controlling };
    let (replica, gate) = work.start(&*backend, (trust, identity), &door, &mut health)?;
    controlling.tasks.run("high-water-mark", mark::keep_saved(mark.clone()));
    if let Some(compaction) = config.compaction.clone() {
        work.compact(&backend, compaction, replica.as_ref());
    }
    add_checks(&mut health, &api);
    if config.datastore == Datastore::Memory {
        health.warn(IN_MEMORY);
    }
    access.authenticate(&api, token_objects, &controlling)?;
    // When clients are let in, the gate is usually open already, unless registration takes more than one attempt.
    gate.tried().await;
    let reachable = advertised.address.map(|ip| SocketAddr::new(ip, advertised.port)).or(address);
    let reachable = format!("{}{path}", reachable.unwrap_or(NOWHERE));
    let publications = Publications::new(
        publication.unwrap_or_else(|| first_publication(&api, address)),
        address.unwrap_or(NOWHERE).to_string(),
        runtime.clock.clone(),
    );
    let parent =
        Parent::new(&api, &door, (&config, &commons), (room, controls.clone()), publications.first().clone());
    let has_console = config.console.is_offered(address.is_some_and(|address| address.ip().is_loopback()));
    let shared = (&parent, publications, has_console, controls);
    let app = app(&api, gate, (&config, door, &commons), (token_objects, reachable), shared);
    let (responder, shared) = (responder(Arc::new(app), health), api.clone());
    let running = Running { controlling, storing, replica, audit, api, mark, backend };
    Ok((Application { responder, parent: Some(parent), stop: Box::pin(running.stop()) }, shared))
}

/// Makes what a new server has: the system's objects, or for a fork the documents of its parent, of which it returns that of
/// the built-in resources.
async fn begin(
    api: &Arc<Api>,
    advertised: &Advertised,
    origin: Option<Origin>,
) -> Result<Option<Arc<Publication>>, BuildError> {
    let Some(Origin { discovered, openapi, publication, .. }) = origin else {
        controllers::create_system_objects(api, advertised).await?;
        return Ok(None);
    };
    api.extensions.discovered.store(discovered);
    api.extensions.openapi.store(openapi);
    Ok(Some(publication))
}

/// The parts of an application that have to be ended in order.
struct Running {
    controlling: Runtime,
    storing: Runtime,
    replica: Option<Replica>,
    audit: Option<Arc<Audit>>,
    api: Arc<Api>,
    mark: Arc<HighWaterMark>,
    backend: Arc<dyn Backend>,
}

impl Running {
    async fn stop(self) {
        let Self { controlling, storing, replica, audit, api, mark, backend } = self;
        controlling.tasks.stop();
        controlling.tasks.ended().await;
        if let Some(replica) = replica {
            replica.leave(&api).await;
        }
        if let Some(audit) = audit {
            audit.close().await;
        }
        storing.tasks.stop();
        // Dropping the last handle ends the writer and the cache.
        drop(api);
        storing.tasks.ended().await;
        mark::save(&mark).await;
        backend.close().await;
    }
}

/// The application that answers requests. `reachable` is the address, and the path, at which Pods find the server.
fn app(
    api: &Arc<Api>,
    gate: Gate,
    (config, door, commons): (&Config, Arc<Door>, &Commons),
    (objects, reachable): (Resources, String),
    (parent, publications, has_console, controls): (&Parent, Publications, bool, Option<Arc<Controls>>),
) -> App {
    let (limits, runtime) = (&config.limits, &api.runtime);
    App {
        api: api.clone(),
        gate,
        door,
        issuer_documents: IssuerDocuments::new(
            api.tokens.issuer.clone(),
            api.cache.clone(),
            objects,
            reachable,
        ),
        publications,
        zpages: Zpages::new(config.flags.clone(), runtime),
        has_console,
        recording: config.recording.clone(),
        branches: Branches::new(Arc::new(parent.clone()), parent.room().clone(), runtime.metrics.branches()),
        controls,
        metrics: runtime.metrics.clone(),
        statements: Statements::new(limits.sql, runtime.metrics.sql()),
        limits: Limits {
            request_body: limits.max_request_body_bytes,
            request_time: limits.request_timeout,
            in_flight: limits.in_flight,
        },
        rejects_redirects: config.aggregation.rejects_redirects,
        bodies: BodyBudget::new(
            limits.max_request_body_bytes_inflight,
            limits.request_timeout,
            runtime.metrics.limit_reached("request-bodies"),
        ),
        printing: commons.printing.part(),
        past_reads: PastReads::new(limits.asof_max_concurrent),
        lanes: commons.body_lanes.part(),
    }
}

/// The documents about the built-in resources.
fn first_publication(api: &Api, address: Option<SocketAddr>) -> Arc<Publication> {
    let address = address.unwrap_or(NOWHERE).to_string();
    Arc::new(Publication::first(&api.resources, &address, &api.runtime.clock))
}

fn add_checks(health: &mut HealthChecks, api: &Arc<Api>) {
    let clock = api.cache.clone();
    health.add_shared("datastore", &[Endpoint::Readyz, Endpoint::Healthz], READINESS_PERIOD, move || {
        let cache = clock.clone();
        async move { cache.clock().await.map(drop).map_err(|error| error.to_string()) }
    });
    add_registration_check(health, api);
    let cache = api.cache.clone();
    health.add("watch-cache", &[Endpoint::Readyz], move || {
        let result = cache.check(Instant::now());
        async { result }
    });
    if api.encryption.has_health() {
        let encryption = api.encryption.clone();
        // Not of `/livez`: no restart makes a service well.
        health.add("kms-providers", &[Endpoint::Healthz, Endpoint::Readyz], move || {
            let encryption = encryption.clone();
            async move { encryption.check().await }
        });
    }
}

/// Adds upstream's check that each built-in group version has an APIService, which was seen available once.
fn add_registration_check(health: &mut HealthChecks, api: &Arc<Api>) {
    let missing =
        Arc::new(Mutex::new(controllers::api_services::names_of_built_in(api.resources.registry())));
    let cluster = api.cluster.clone();
    health.add("autoregister-completion", &Endpoint::ALL, move || {
        let mut missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.is_empty() {
            let services = cluster.extensions.newest(&cluster.cache);
            let is_available = |name: &str| services.all.get(name).is_some_and(|one| one.condition.is_true());
            missing.retain(|name| !is_available(name));
        }
        let result = match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("missing APIService: [{}]", missing.join(" "))),
        };
        async { result }
    });
}

/// The address at which Pods find the server. A server without a port has none, unless the configuration names one.
fn advertised(config: &Config, address: Option<SocketAddr>) -> Advertised {
    match address {
        Some(address) => Advertised::new(config.advertise_address, address, config.endpoints),
        None => Advertised {
            address: config.advertise_address,
            port: NOWHERE.port(),
            endpoints: config.endpoints,
        },
    }
}
