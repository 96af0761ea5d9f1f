//! A cluster as a value.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::ArcSwap;

use crate::auth::rbac::Rbac;
use crate::cache::Cache;
use crate::catalog::{Catalog, Served};
use crate::config::{Config, TokenIssuing};
use crate::conversion::Converter;
use crate::encryption::Encryption;
use crate::followers::aggregation::Aggregation;
use crate::followers::api_services::{Extensions, ProxyIdentity};
use crate::followers::configured::Configured;
use crate::followers::definitions::{Definitions, Inheritance};
use crate::followers::grace_ends::GraceEnds;
use crate::gotext;
use crate::hidden::HiddenResources;
use crate::kubelets::Kubelets;
use crate::long_work::Lanes;
use crate::options::continue_token::TokenKeys;
use crate::ownership::action::Actions;
use crate::runtime::Runtime;
use crate::service_routes::ServiceRoutes;
use crate::storage::Store;
use crate::unreadable::Unreadable;

/// One cluster: its store, what follows the store, and its settings. Verbs are functions of [`Api`](crate::Api).
pub struct Cluster {
    pub store: Store,
    pub cache: Cache,
    /// The built-in resources, which every generation contains. For all resources ask the catalog.
    pub resources: Arc<Served>,
    pub catalog: Catalog,
    pub definitions: Definitions,
    pub converter: Arc<Converter>,
    /// The addresses of Services, for webhooks that name a Service.
    pub service_routes: Arc<ServiceRoutes>,
    /// How kubelets are reached.
    pub kubelets: Kubelets,
    /// The APIServices, and the way to extension servers.
    pub extensions: Extensions,
    pub token_keys: ArcSwap<TokenKeys>,
    pub hidden: HiddenResources,
    /// When Pods that are being deleted are past their grace period.
    pub grace_ends: GraceEnds,
    /// The row that stands for what configures admission.
    pub configured: Configured,
    /// The ClusterRoles that consist of others.
    pub aggregation: Aggregation,
    pub unreadable: Unreadable,
    pub runtime: Runtime,
    pub config: Config,
    pub tokens: TokenIssuing,
    /// The limit on concurrent work on large stored objects, which all requests share.
    pub lanes: Lanes,
    pub encryption: Encryption,
    /// Managers of reviews, bindings and the like.
    pub actions: Actions,
    /// Roles and bindings, by which nobody may grant what he does not have. `None` if they are not served.
    pub rbac: Option<Rbac>,
}

/// The parts of which [`Cluster::new`] makes a cluster.
pub struct Parts {
    pub store: Store,
    pub cache: Cache,
    /// The built-in resources.
    pub resources: Arc<Served>,
    pub hidden: HiddenResources,
    pub service_routes: ServiceRoutes,
    pub kubelets: Kubelets,
    /// The certificate that is shown to extension servers.
    pub proxy_identity: ProxyIdentity,
    /// The number of remote APIServices, which is kept up to date here.
    pub remote_services: Arc<AtomicUsize>,
    pub token_keys: TokenKeys,
    pub tokens: TokenIssuing,
    pub encryption: Encryption,
    pub rbac: Option<Rbac>,
    pub inheritance: Inheritance,
    pub runtime: Runtime,
    /// The cluster's part of the process's lanes.
    pub lanes: Lanes,
    pub config: Config,
}

impl Cluster {
    /// A cluster that serves the built-in resources.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, cache, resources, hidden, service_routes, kubelets, .. } = parts;
        let Parts { token_keys, tokens, encryption, rbac, runtime, lanes, config, .. } = parts;
        let Parts { proxy_identity, remote_services, inheritance, .. } = parts;
        let service_routes = Arc::new(service_routes);
        Self {
            store,
            cache,
            definitions: Definitions::new(&resources, hidden.definition_names, inheritance),
            converter: Arc::new(Converter::new(service_routes.clone(), runtime.clone())),
            aggregation: Aggregation::new(&resources, hidden.aggregations),
            grace_ends: GraceEnds::new(&resources),
            catalog: Catalog::new(resources.clone()),
            extensions: Extensions::new(&resources, proxy_identity, remote_services),
            resources,
            service_routes,
            kubelets,
            token_keys: ArcSwap::from_pointee(token_keys),
            hidden,
            configured: Configured::new(hidden.admission),
            unreadable: Unreadable::new(runtime.metrics.clone()),
            runtime,
            config,
            tokens,
            lanes,
            actions: Actions::default(),
            encryption,
            rbac,
        }
    }

    /// The time of day in the form of `creationTimestamp`.
    pub fn now(&self) -> String {
        gotext::time(self.runtime.clock.timestamp())
    }

    /// The time of day in the form of a Lease's `renewTime`.
    pub fn now_micro(&self) -> String {
        gotext::micro_time(self.runtime.clock.timestamp())
    }
}
