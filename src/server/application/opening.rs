//! The first phase: opens the store, loads the cache, and makes the cluster on them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::api::catalog::Served;
use crate::api::cluster::{Cluster, Parts};
use crate::api::concerns;
use crate::api::config::TokenIssuing;
use crate::api::followers::api_services::ProxyIdentity;
use crate::api::followers::definitions::Inheritance;
use crate::api::hidden::HiddenResources;
use crate::api::kubelets::Kubelets;
use crate::api::meta::generate_name;
use crate::api::namespace_contents::NamespaceContents;
use crate::api::service_routes::{self, ServiceRoutes};
use crate::api::verbs::list::token_keys::read_token_keys;
use crate::auth::rbac::Rbac;
use crate::cache::{Cache, LoadProgress};
use crate::codec::object::Draft;
use crate::egress::Network;
use crate::encryption::{Encryption, Opening};
use crate::kinds::built_in;
use crate::long_work::Lanes;
use crate::random::Random;
use crate::runtime::Runtime;
use crate::schema::names::GroupResource;
use crate::schema::registry::Registry;
use crate::server::config::{Config, Controllers};
use crate::server::error::BuildError;
use crate::server::parent::Origin;
use crate::server::{mark, service_accounts};
use crate::storage::{self, Backend, HighWaterMark, Store};

/// A store that is open, and the cache that follows it.
pub struct Opened {
    /// The database, behind encryption if that is on.
    pub backend: Arc<dyn Backend>,
    pub mark: Arc<HighWaterMark>,
    pub hidden: HiddenResources,
    /// The group of the writer's and the cache's tasks.
    pub storing: Runtime,
    store: Store,
    cache: Cache,
    built_in: Arc<Served>,
    encryption: Encryption,
    inheritance: Inheritance,
}

impl Opened {
    pub async fn open(
        backend: Arc<dyn Backend>,
        config: &Config,
        runtime: &Runtime,
        progress: &LoadProgress,
        origin: Option<&Origin>,
    ) -> Result<Self, BuildError> {
        if let Some(origin) = origin {
            return Self::fork(backend, config, runtime, origin).await;
        }
        let mark = mark::load(&config.datastore, config.schema.as_deref(), config.data_dir.as_deref());
        backend.hold_to(&mark).await?;
        mark::repair_clock(&*backend, &mark).await?;
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
        let storing = runtime.group();
        mark::end_when_broken(&storing.tasks, &backend);
        let (cache, sink) =
            Cache::start(backend.clone(), Draft::parse, &loaded, mark.clone(), &storing, progress).await?;
        let limit = config.limits.max_object_bytes;
        let store = Store::start_limited(backend.clone(), Some(sink), mark.clone(), &storing, limit);
        let served = Served::new(registry, &ids, config.storage_media_type, concerns::of_definition);
        let (built_in, inheritance) = (Arc::new(served), Inheritance::default());
        Ok(Self { backend, mark, hidden, storing, store, cache, built_in, encryption, inheritance })
    }

    /// The store of a fork, whose cache holds the state that the store begins with.
    async fn fork(
        backend: Arc<dyn Backend>,
        config: &Config,
        runtime: &Runtime,
        origin: &Origin,
    ) -> Result<Self, BuildError> {
        let (mark, storing) = (Arc::new(HighWaterMark::default()), runtime.group());
        let hidden = HiddenResources::register(&*backend).await?;
        let (cache, sink) =
            Cache::fork(backend.clone(), Draft::parse, origin.state.clone(), mark.clone(), &storing);
        let limit = config.limits.max_object_bytes;
        let store = Store::start_limited(backend.clone(), Some(sink), mark.clone(), &storing, limit);
        let (built_in, encryption) = (origin.built_in.clone(), Encryption::default());
        let inheritance = origin.inheritance.clone();
        Ok(Self { backend, mark, hidden, storing, store, cache, built_in, encryption, inheritance })
    }

    /// The cluster on the store.
    pub async fn cluster(
        self,
        config: &Config,
        address: Option<SocketAddr>,
        (server_authority, audiences): (Option<String>, Arc<[String]>),
        (proxy_identity, remote_services): (ProxyIdentity, Arc<AtomicUsize>),
        lanes: Lanes,
        runtime: &Runtime,
    ) -> Result<Cluster, BuildError> {
        let Self { backend, hidden, store, cache, built_in, encryption, inheritance, .. } = self;
        let service_routes = ServiceRoutes::new(
            config.service_routes.clone(),
            cache.clone(),
            built_in.ids(&service_routes::RESOURCES),
            runtime,
            address,
        );
        let contents = NamespaceContents { root_ca: server_authority };
        Ok(Cluster::new(Parts {
            rbac: Rbac::new(cache.clone(), |resource| Some(built_in.get(resource)?.id)),
            store,
            cache,
            resources: built_in,
            hidden,
            service_routes,
            kubelets: Kubelets::new(config.kubelets.clone(), runtime.egresses.to(Network::Cluster))?,
            proxy_identity,
            remote_services,
            token_keys: read_token_keys(&*backend, &runtime.clock).await?,
            tokens: TokenIssuing { issuer: service_accounts::issuer(config, runtime).await?, audiences },
            encryption,
            inheritance,
            lanes,
            config: crate::api::config::Config {
                min_request_timeout: config.limits.min_request_timeout,
                services: config.services.clone(),
                namespace_contents: config.namespace_contents.then_some(contents),
                cluster_controllers: config.controllers != Controllers::OfServer,
                garbage_collection: config.garbage_collection,
                record_writers: config.record_writers,
                generate_name: names_from(runtime.random.fork()),
            },
            runtime: runtime.clone(),
        }))
    }
}

fn names_from(random: Random) -> Arc<dyn Fn(&str) -> String + Send + Sync> {
    Arc::new(move |prefix| random.with(|rng| generate_name(prefix, rng)))
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
