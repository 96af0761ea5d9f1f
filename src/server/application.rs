//! Puts the server together: store, cache, API, controllers, routes.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::authentication;
use super::authorization::Authorizers;
use super::config::{Config, Controllers, IdentityConfig};
use super::datastore::Datastore;
use super::error::Error;
use super::manifests;
use super::replica::Replica;
use super::service_accounts;
use super::start::{Application, BuildError, Environment};
use crate::api::admission::Chain;
use crate::api::admission::dynamic::configured::Configured;
use crate::api::catalog::{Catalog, Served};
use crate::api::definitions::conversion::Converter;
use crate::api::definitions::{self, Definitions};
use crate::api::hidden::HiddenResources;
use crate::api::list::token_keys::read_token_keys;
use crate::api::meta::generate_name;
use crate::api::namespace_contents::NamespaceContents;
use crate::api::protobuf_messages::drop_unused_messages;
use crate::api::quota::past_grace::GraceEnds;
use crate::api::rights::aggregation::Aggregation;
use crate::api::service_routes::ServiceRoutes;
use crate::api::storage_version::gate::Gate;
use crate::api::subresource::connect::kubelets::Kubelets;
use crate::api::subresource::token_request::TokenIssuing;
use crate::api::unreadable::Unreadable;
use crate::api::{self, Api};
use crate::auth::authorizer::{Authorization, Mode};
use crate::auth::bootstrap_tokens::BootstrapTokens;
use crate::auth::node::NodeAuthorizer;
use crate::auth::rbac::Rbac;
use crate::auth::service_accounts::Verifier;
use crate::auth::service_accounts::issuer::IssuerDocuments;
use crate::auth::signing::{FollowedAuthority, SIGNERS};
use crate::auth::token_webhook::{self, TokenWebhook};
use crate::cache::{Cache, Range};
use crate::codec::object::Draft;
use crate::controllers::bootstrap::cluster_authentication;
use crate::controllers::certificates::{self, Signing};
use crate::controllers::migration::{self, Agreement};
use crate::controllers::servers::identity_lease::Claimant;
use crate::controllers::servers::kubernetes_service::Advertised;
use crate::controllers::servers::leader::Election;
use crate::controllers::{self, IdentityLeases, Runner, flow_control};
use crate::encryption::{Encryption, Opening};
use crate::flow_control::Sizes;
use crate::http::app::{App, Limits};
use crate::http::documents::publications::Publications;
use crate::http::health::{Endpoint, HealthChecks};
use crate::http::limits::{BodyBudget, Printing};
use crate::http::routes::responder;
use crate::http::zpages::Zpages;
use crate::identity::{Instance, ServerIdentity};
use crate::kinds::built_in;
use crate::long_work::Lanes;
use crate::random::Random;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::registry::Registry;
use crate::storage::memory;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::storage::{self, Backend, HighWaterMark, OpenError, SAFETY_GAP, Store, compact_regularly};
use crate::tasks::{Failure, Tasks};
use crate::webhook::Webhook;

/// The address in the documents of a server without a port.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);
/// How often the keys of continue tokens are read, and a new one is made if that is due.
const TOKEN_KEY_REFRESH: Duration = Duration::from_secs(5);
/// How old a result of the readiness check may be. It is shared, since anybody may ask for it.
const READINESS_PERIOD: Duration = Duration::from_secs(1);
/// The pause before objects are read again that could not be.
const REREAD_PAUSE: Duration = Duration::from_secs(1);
/// How often the high-water mark is saved: a power failure loses at most this much of it.
const MARK_PERIOD: Duration = Duration::from_secs(1);

/// Opens the store and builds the application on it.
pub async fn build(environment: Environment) -> Result<Application, BuildError> {
    let backend = open(&environment.config.datastore).await?;
    build_on(backend, environment).await
}

/// Builds the application on an open store; [`Application::stop`] closes it.
pub async fn build_on(
    backend: Arc<dyn Backend>,
    environment: Environment,
) -> Result<Application, BuildError> {
    Ok(build_with_api(backend, environment).await?.0)
}

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
    let Environment {
        config,
        address,
        server_authority,
        trust,
        door,
        identity,
        progress,
        mut health,
        reloads,
        runtime,
    } = environment;
    if let Some(identity) = &identity {
        runtime.metrics.know_server(super::reloads::hash(identity.id().as_bytes()));
    }
    let mark = Arc::new(mark_path(&config).map_or_else(HighWaterMark::default, HighWaterMark::load));
    backend.hold_to(&mark).await?;
    repair_clock(&*backend, &mark).await?;

    let registry = Arc::new(Registry::new(built_in::definitions_stored_in(
        &config.storage_versions,
        &config.enablement,
    )));
    for name in config.enablement.absent() {
        tracing::warn!(name, "--runtime-config enables what is not here");
    }
    let encryption = match &config.encryption {
        Some(config) => {
            let groups = registry.stored().map(|(name, _)| name.group.clone()).collect();
            Encryption::start(config, backend.clone(), groups, runtime.clone()).await?
        }
        None => Encryption::default(),
    };
    let backend = match encryption.is_on() {
        true => Arc::new(Opening { inner: backend, encryption: encryption.clone() }),
        false => backend,
    };
    let ids = resource_ids(&*backend, &registry).await?;
    let hidden = HiddenResources::register(&*backend).await?;
    let mut loaded: Vec<_> = ids.values().copied().chain(hidden.ids()).collect();
    loaded.sort_unstable();
    // Two groups of tasks: the controllers end first, and what a leaving server writes is written before the writer
    // ends.
    let (storing, controlling) = (runtime.group(), runtime.group());
    end_when_broken(&storing.tasks, &backend);
    let (cache, sink) =
        Cache::start(backend.clone(), Draft::parse, &loaded, mark.clone(), &storing, &progress).await?;
    let max_object_bytes = config.limits.max_object_bytes;
    let store = Store::start_limited(backend.clone(), Some(sink), mark.clone(), &storing, max_object_bytes);
    let built_in = Arc::new(Served::new(registry, &ids, config.storage_media_type));
    let routes = config.service_routes.clone();
    let routes = ServiceRoutes::new(routes, cache.clone(), &built_in, runtime.random.clone(), address);
    let service_routes = Arc::new(routes);
    let converter = Arc::new(Converter::new(service_routes.clone(), runtime.clone()));
    let rbac = Rbac::new(cache.clone(), |resource| Some(built_in.get(resource)?.id));
    let api = Arc::new(Api {
        store,
        cache,
        resources: built_in.clone(),
        definitions: Definitions::new(&built_in, hidden.definition_names),
        converter,
        aggregation: Aggregation::new(&built_in, hidden.aggregations),
        service_routes,
        kubelets: Kubelets::new(config.kubelets.clone())?,
        grace_ends: GraceEnds::new(&built_in),
        catalog: Catalog::new(built_in),
        token_keys: ArcSwap::from_pointee(read_token_keys(&*backend, &runtime.clock).await?),
        hidden,
        configured: Configured::new(hidden.admission),
        unreadable: Unreadable::new(runtime.metrics.clone()),
        runtime: runtime.clone(),
        config: api::Config {
            min_request_timeout: config.limits.min_request_timeout,
            services: config.services.clone(),
            namespace_contents: config
                .namespace_contents
                .then_some(NamespaceContents { root_ca: server_authority }),
            cluster_controllers: config.controllers != Controllers::OfServer,
            garbage_collection: config.garbage_collection,
            generate_name: names_from(runtime.random.fork()),
        },
        admission: Chain::new(&config.admission, &runtime.metrics)?,
        tokens: TokenIssuing {
            issuer: service_accounts::issuer(&config, &controlling).await?,
            audiences: door.authenticator.audiences().clone(),
        },
        lanes: Lanes::default(),
        actions: Default::default(),
        encryption,
        rbac: rbac.clone(),
    });
    let token_objects = service_accounts::resources(&api, hidden.token_keys)?;
    service_accounts::publish_key(&config, &api, hidden.token_keys).await?;
    service_accounts::follow_keys(&config, &api, hidden.token_keys, &reloads, &controlling.tasks);
    let advertised = advertised(&config, address);
    controllers::create_system_objects(&api, &advertised).await?;
    health.add_post_start_hook("rbac/bootstrap-roles").finish();
    let node = NodeAuthorizer::new(api.cache.clone(), |resource| Some(api.resources.get(resource)?.id));
    let authorizers = Authorizers {
        rbac: rbac.clone(),
        node: node.clone(),
        config: config.authorization.clone(),
        runtime: controlling.clone(),
    };
    let server = identity.as_ref().map(|identity| identity.id().to_owned());
    let server = server.as_deref();
    door.authorizer.install(authorizers.start(&reloads, server)?, &api.cache);
    manifests::follow(&api, &reloads, server, &controlling);
    if config.authorization.has(Mode::Node) {
        controlling.tasks.run("node-authorizer", node.follow());
    }
    if let Some(rbac) = rbac {
        controlling.tasks.run("rbac", rbac.follow());
    }
    if config.cluster_authentication
        && let Err(error) = cluster_authentication::reconcile(&api, &trust.load_full()).await
    {
        tracing::warn!(%error, "cannot say how this server authenticates, will try again");
    }
    api.follow_definitions().await?;
    controlling.tasks.run("definitions", definitions::follow(api.clone()));
    if let Some(control) = &door.flow_control {
        flow_control::ensure(&api).await?;
        flow_control::adopt(&api, control);
        control.estimate_by(sizes(&api));
        controlling.tasks.run("flow-control-levels", flow_control::follow(api.clone(), control.clone()));
    }
    let audit = door.audit.clone();
    if let Some(audit) = &audit {
        audit.open_database(&backend);
    }

    let replica = config.identity.as_ref().map(|config| Replica::new(&api, config.registration));
    let gate = replica.as_ref().map_or_else(Gate::open, |replica| replica.gate.clone());
    let election = replica.as_ref().map_or_else(|| Arc::new(Election::alone()), |r| r.election.clone());
    let runner = Runner { api: api.clone(), runtime: controlling.clone() };
    let agreement = replica.as_ref().map_or(Agreement::Unknown, Replica::agreement);
    let migration = migration::Config { rate: config.limits.migration_rate, agreement };
    let settings = controllers::Config {
        event_ttl: config.limits.event_ttl,
        flow_control: door.flow_control.is_some(),
        advertised,
    };
    if config.controllers == Controllers::Run {
        runner.spawn_cluster(migration, &gate, &election);
    }
    if config.controllers != Controllers::Off {
        runner.spawn(settings, &gate, &election);
        if config.cluster_authentication {
            runner.spawn_cluster_authentication(trust.clone(), &gate, &election);
        }
        if let Some(certificates) = certificates(&config, &door.authorizer)? {
            runner.spawn_certificates(certificates, &gate, &election);
        }
    }
    if let (Some(replica), Some(identity), Some(IdentityConfig { leases, .. })) =
        (&replica, identity, &config.identity)
    {
        let claimant = claimant(&config, *leases, identity, &*backend, &advertised)?;
        replica.spawn(&runner, claimant, &mut health);
    }
    if api.encryption.is_on() {
        let (cache, encryption) = (api.cache.clone(), api.encryption.clone());
        controlling
            .tasks
            .run("encryption", encryption.follow(async move |refused| reread(&cache, refused).await));
    }
    controlling.tasks.run("protobuf-messages", drop_unused_messages(api.clone()));
    controlling.tasks.run("token-keys", refresh_token_keys(api.clone()));
    controlling.tasks.run("high-water-mark", save_mark(mark.clone()));
    if let Some(compaction) = config.compaction {
        let (backend, metrics) = (backend.clone(), runtime.metrics.clone());
        runner.while_leading(&election, "compactor", move || {
            Box::pin(compact_regularly(backend.clone(), compaction, metrics.clone()))
        });
    }

    add_checks(&mut health, &api.cache);
    if api.encryption.has_health() {
        let encryption = api.encryption.clone();
        health.add("kms-providers", &Endpoint::ALL, move || {
            let encryption = encryption.clone();
            async move { encryption.check().await }
        });
    }
    let issuer = &api.tokens.issuer;
    let (verifier, uses) = Verifier::new(issuer.clone(), api.cache.clone(), token_objects, &runtime);
    door.authenticator.know_service_accounts(verifier);
    door.revocations.know(&api.cache, api.rbac.as_ref(), token_objects);
    controlling.tasks.run("revocations", door.revocations.clone().follow());
    controlling.tasks.run("token-uses", controllers::token_secrets::note_uses(api.clone(), uses));
    if config.authentication.bootstrap_tokens {
        let tokens = BootstrapTokens::new(api.cache.clone(), token_objects.secrets, runtime.clock.clone());
        door.authenticator.know_bootstrap_tokens(tokens);
    }
    if let Some(webhook) = &config.authentication.webhook {
        let hook = Webhook::of_kubeconfig(&webhook.config_file, token_webhook::TIMEOUT)?;
        let webhook = TokenWebhook::new(hook, webhook.version.clone(), webhook.cache_ttl);
        door.authenticator.know_webhook(webhook);
    }
    authentication::know_issuers(&config.authentication, &door.authenticator, &reloads, server, &controlling);
    let reachable = advertised.address.map(|ip| SocketAddr::new(ip, advertised.port)).or(address);
    let issuer_documents = IssuerDocuments::new(
        issuer.clone(),
        api.cache.clone(),
        token_objects,
        reachable.unwrap_or(NOWHERE).to_string(),
    );
    // When clients are let in, the gate is usually open already, unless registration takes more than one attempt.
    gate.tried().await;
    let app = App {
        api: api.clone(),
        gate,
        door,
        issuer_documents,
        publications: Publications::new(
            &api.catalog.served(),
            address.unwrap_or(NOWHERE).to_string(),
            runtime.clock.clone(),
        ),
        zpages: Zpages::new(config.flags.clone(), &runtime),
        metrics: runtime.metrics.clone(),
        limits: Limits {
            request_body: config.limits.max_request_body_bytes,
            request_time: config.limits.request_timeout,
            in_flight: config.limits.in_flight,
        },
        bodies: BodyBudget::new(
            config.limits.max_request_body_bytes_inflight,
            config.limits.request_timeout,
            runtime.metrics.limit_reached("request-bodies"),
        ),
        printing: Printing::default(),
        lanes: Lanes::default(),
    };
    let responder = responder(Arc::new(app), health);
    let shared = api.clone();
    let stopping = async move {
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
        save_once(&mark).await;
        backend.close().await;
    };
    Ok((Application { responder, stop: Box::pin(stopping) }, shared))
}

/// The settings of the controller of CertificateSigningRequests; `None` if all of it is off.
fn certificates(
    config: &Config,
    authorizer: &Authorization,
) -> Result<Option<certificates::Config>, BuildError> {
    let wanted = &config.certificate_controllers;
    if !wanted.approving && !wanted.signing && !wanted.cleaning {
        return Ok(None);
    }
    let signing = match wanted.signing {
        true => Some(Signing { authorities: signing_authorities(config)?, longest: wanted.longest }),
        false => None,
    };
    Ok(Some(certificates::Config {
        approving: wanted.approving.then(|| authorizer.clone()),
        signing,
        cleaning: wanted.cleaning,
    }))
}

/// The CAs by the names of the signers that they sign for.
fn signing_authorities(
    config: &Config,
) -> Result<BTreeMap<&'static str, Arc<FollowedAuthority>>, BuildError> {
    let wanted = &config.certificate_controllers;
    if !wanted.authorities.is_empty() {
        let load = |(signer, (certificate, key)): (&&'static str, &(PathBuf, PathBuf))| {
            Ok::<_, BuildError>((*signer, Arc::new(FollowedAuthority::load(certificate, key)?)))
        };
        return wanted.authorities.iter().map(load).collect();
    }
    let authority = match (&wanted.authority, &config.data_dir) {
        (Some((certificate, key)), _) => FollowedAuthority::load(certificate, key)?,
        (None, Some(dir)) => {
            let pki = dir.join("pki");
            FollowedAuthority::load(&pki.join("ca.crt"), &pki.join("ca.key"))?
        }
        (None, None) => return Err("there is no CA that could sign certificates".into()),
    };
    let authority = Arc::new(authority);
    Ok(SIGNERS.into_iter().map(|signer| (signer, authority.clone())).collect())
}

/// How many objects a resource has, and the mean size of some of them.
fn sizes(api: &Arc<Api>) -> Box<Sizes> {
    const SAMPLE: usize = 8;
    let api = Arc::downgrade(api);
    Box::new(move |name| {
        let api = api.upgrade()?;
        let served = api.catalog.served();
        let objects = api.cache.any().objects(served.get(name)?.id);
        let sampled: Vec<usize> =
            objects.range(&Range::of(None)).take(SAMPLE).map(|object| object.size()).collect();
        let mean = sampled.iter().sum::<usize>().checked_div(sampled.len()).unwrap_or_default();
        Some((objects.len(), mean))
    })
}

fn names_from(random: Random) -> Arc<dyn Fn(&str) -> String + Send + Sync> {
    Arc::new(move |prefix| random.with(|rng| generate_name(prefix, rng)))
}

/// Opens the database of the configuration.
pub async fn open(datastore: &Datastore) -> Result<Arc<dyn Backend>, OpenError> {
    Ok(match datastore {
        Datastore::Memory => memory::open(),
        Datastore::Sqlite(path) => Arc::new(Sqlite::open(path).await?),
        Datastore::Postgres(address) => Arc::new(Postgres::open(address).await?),
    })
}

/// The path of the high-water mark: one file per database, since each has a clock of its own. A store in memory has
/// none, since it cannot come back in an older state.
fn mark_path(config: &Config) -> Option<PathBuf> {
    if config.datastore == Datastore::Memory {
        return None;
    }
    let digest = Sha256::digest(config.datastore.to_string());
    let name: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Some(config.data_dir.as_ref()?.join(format!("mark-{name}")))
}

/// Advances the clock of a database that has lost revisions which it had acknowledged.
async fn repair_clock(backend: &dyn Backend, mark: &HighWaterMark) -> Result<(), storage::Error> {
    let (clock, floor) = (backend.clock().await?, mark.get());
    if clock.revision < floor {
        tracing::error!(
            found = %clock.revision,
            %floor,
            "the database has lost acknowledged commits; its clock is moved ahead and older history is given up"
        );
        backend.advance_clock(Revision(floor.0 + SAFETY_GAP)).await?;
    }
    Ok(())
}

async fn resource_ids(
    backend: &dyn Backend,
    registry: &Registry,
) -> Result<HashMap<GroupResource, storage::ResourceId>, storage::Error> {
    let mut names: Vec<GroupResource> = registry.stored().map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    let ids = backend.resource_ids(&names).await?;
    Ok(names.into_iter().zip(ids).collect())
}

async fn refresh_token_keys(api: Arc<Api>) {
    loop {
        tokio::time::sleep(TOKEN_KEY_REFRESH).await;
        if let Err(error) = api.refresh_token_keys().await {
            tracing::warn!(%error, "cannot read the keys of continue tokens, keeping the old ones");
        }
    }
}

/// Reads resources again of which values could not be opened before.
async fn reread(cache: &Cache, refused: Vec<storage::ResourceId>) {
    while let Err(error) = cache.reread(&refused).await {
        tracing::error!(%error, "cannot read again what could not be decrypted, will try again");
        tokio::time::sleep(REREAD_PAUSE).await;
    }
}

async fn save_mark(mark: Arc<HighWaterMark>) {
    loop {
        tokio::time::sleep(MARK_PERIOD).await;
        save_once(&mark).await;
    }
}

/// Saves the mark on a thread of its own, since the disk may be slow.
async fn save_once(mark: &Arc<HighWaterMark>) {
    let mark = mark.clone();
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || mark.save()).await {
        tracing::warn!(%error, "cannot save the high-water mark");
    }
}

fn add_checks(health: &mut HealthChecks, cache: &Cache) {
    let clock = cache.clone();
    health.add_shared("datastore", &[Endpoint::Readyz, Endpoint::Healthz], READINESS_PERIOD, move || {
        let cache = clock.clone();
        async move { cache.clock().await.map(drop).map_err(|error| error.to_string()) }
    });
    let cache = cache.clone();
    health.add("watch-cache", &[Endpoint::Readyz], move || {
        let result = cache.check(Instant::now());
        async { result }
    });
}

/// The server's claim to a name among the replicas. If there cannot be others, the name is not contested.
fn claimant(
    config: &Config,
    leases: IdentityLeases,
    identity: ServerIdentity,
    backend: &dyn Backend,
    advertised: &Advertised,
) -> Result<Claimant, BuildError> {
    let port = config.https.as_ref().map_or(0, |https| https.address.port());
    let take = || -> Result<_, BuildError> {
        let directory = config.data_dir.as_ref().ok_or(Error::NoDataDir)?.join("servers");
        let taken = Instance::take(&directory, identity.hostname(), port);
        let place = directory.display();
        Ok(Arc::new(taken.map_err(|error| format!("cannot keep this server's id in {place}: {error}"))?))
    };
    let instance = backend.shared().then(take).transpose()?;
    Ok(Claimant { identity, port: advertised.port, instance, address: advertised.address, config: leases })
}

/// The address at which Pods find the server. A server without a port has none, unless the configuration names one.
fn advertised(config: &Config, address: Option<SocketAddr>) -> Advertised {
    match address {
        Some(address) => Advertised::new(config.advertise_address, address),
        None => Advertised { address: config.advertise_address, port: NOWHERE.port() },
    }
}

/// Ends the server when the contents of its database cannot be relied on any more.
fn end_when_broken(tasks: &Tasks, backend: &Arc<dyn Backend>) {
    let (backend, server) = (backend.clone(), tasks.clone());
    tasks.run("store-failure", async move {
        server.fail(Failure::Store(backend.broken().await));
        std::future::pending::<()>().await;
    });
}
