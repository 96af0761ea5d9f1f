//! The settings of a server, with a type for each module that they concern.

mod aggregation;
mod https;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use self::aggregation::{Aggregation, ProxyClient};
pub use self::https::Https;
use super::datastore::Datastore;
use super::definitions;
pub use super::reloads::SettingsFile;
use crate::api::kubelets;
use crate::api::{admission, service_routes, services};
use crate::audit;
use crate::auth::abac::Abac;
use crate::auth::authn::{Anonymous, DEFAULT_ISSUER, FrontProxy};
use crate::auth::authorization_config::Configured;
use crate::auth::authorizer::mode::{self, Mode};
use crate::auth::oidc;
use crate::codec::at_rest::StorageMediaType;
use crate::controllers::IdentityLeases;
use crate::controllers::servers::kubernetes_service::Endpoints;
use crate::egress;
use crate::encryption;
use crate::http::console::Console;
use crate::http::limits::{InFlightLimits, SqlConfig};
use crate::http::past::Recording;
use crate::kinds::built_in::enablement::Enablement;
use crate::metrics::AllowedLabels;
use crate::schema::names::{GroupResource, GroupVersion};
use crate::storage::{Compaction, MAX_OBJECT_BYTES, RecordWriters};
use crate::traces;

/// The settings of a server. The defaults are those of an embedded server: requests come only in process, and nothing
/// is left behind but the objects in its datastore.
#[derive(Clone, Debug)]
pub struct Config {
    pub datastore: Datastore,
    /// The schema of a PostgreSQL database that the state is kept in, which is made if it is not there; `None` is the connection's
    /// current one. Clusters of a process share the connections to a database.
    pub schema: Option<String>,
    /// The directory of certificates, the high-water mark and a replica's id. Without one, none of these outlives the server.
    pub data_dir: Option<PathBuf>,
    /// `None` means that requests come only in process.
    pub https: Option<Https>,
    /// The address at which other hosts reach this server, if it differs from the bound one.
    pub advertise_address: Option<IpAddr>,
    /// The keeper of the endpoints of the Service `kubernetes`.
    pub endpoints: Endpoints,
    pub authentication: Authentication,
    pub authorization: Authorization,
    pub controllers: Controllers,
    /// Whether foreground and orphan deletion set the finalizers that a garbage collector takes off. Without, none runs here.
    pub garbage_collection: bool,
    pub certificate_controllers: CertificateControllers,
    /// The admission plugins that are on, and their configuration.
    pub admission: admission::Settings,
    /// Whether every namespace gets its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt` from this server, and
    /// not from kube-controller-manager.
    pub namespace_contents: bool,
    /// Whether the ConfigMaps of `kube-system` are kept that tell other API servers how this one authenticates, and since
    /// when the use of tokens in Secrets is tracked.
    pub cluster_authentication: bool,
    /// The encoding of objects that are written from now on.
    pub storage_media_type: StorageMediaType,
    /// `None` stores all values as they are.
    pub encryption: Option<encryption::Config>,
    /// Values of labels in `/metrics` that are shown; all of those that are not named.
    pub allowed_labels: AllowedLabels,
    pub limits: ApiLimits,
    pub services: services::Config,
    /// The addresses at which webhooks of Services are called.
    pub service_routes: service_routes::Config,
    /// How kubelets are reached.
    pub kubelets: kubelets::Config,
    pub aggregation: Aggregation,
    pub console: Console,
    pub branches: BranchLimits,
    /// Whether members of `system:masters` may set the server's time, make it answer with faults, and the like. It has no
    /// effect at another address than a loopback one.
    pub test_endpoints: bool,
    /// `None` means that history is kept for ever.
    pub compaction: Option<Compaction>,
    /// The recording that the datastore holds, which is shown as it ended; `None` for a cluster that lives.
    pub recording: Option<Recording>,
    /// The part of a writer that is recorded with his changes.
    pub record_writers: RecordWriters,
    /// For how long a server that is stopped goes on as ever, only not ready, before it closes its listener.
    pub shutdown_delay: Duration,
    /// How long requests may take to finish afterwards.
    pub shutdown_grace: Duration,
    /// `None` means that the server is alone and holds no lease (the feature gate `APIServerIdentity` is off).
    pub identity: Option<IdentityConfig>,
    /// Resources that are stored in another version than the default, with that version.
    pub storage_versions: Vec<(GroupResource, GroupVersion)>,
    /// The built-in resources that clients are served.
    pub enablement: Enablement,
    pub audit: audit::config::Config,
    /// The ways to networks; `None` connects directly.
    pub egress: Option<egress::config::Configuration>,
    /// CustomResourceDefinitions that are served before the server is ready.
    pub crds: Vec<definitions::Source>,
    /// `None` traces nothing.
    pub traces: Option<traces::config::Configuration>,
    /// The flags that the server was started with, as `/flagz` shows them.
    pub flags: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        let five_minutes = Duration::from_secs(300);
        Self {
            datastore: Datastore::Memory,
            schema: None,
            data_dir: None,
            https: None,
            advertise_address: None,
            endpoints: Endpoints::default(),
            authentication: Authentication::default(),
            authorization: Authorization::default(),
            controllers: Controllers::Run,
            garbage_collection: true,
            certificate_controllers: CertificateControllers::default(),
            admission: admission::Settings::default(),
            namespace_contents: true,
            cluster_authentication: true,
            storage_media_type: StorageMediaType::default(),
            encryption: None,
            allowed_labels: AllowedLabels::default(),
            limits: ApiLimits::default(),
            services: services::Config::default(),
            service_routes: service_routes::Config::default(),
            kubelets: kubelets::Config::default(),
            aggregation: Aggregation::default(),
            console: Console::default(),
            branches: BranchLimits::default(),
            test_endpoints: false,
            recording: None,
            compaction: Some(Compaction { interval: five_minutes, history: five_minutes, retention: None }),
            record_writers: RecordWriters::default(),
            shutdown_delay: Duration::ZERO,
            shutdown_grace: Duration::from_secs(10),
            identity: None,
            storage_versions: Vec::new(),
            enablement: Enablement::default(),
            audit: audit::config::Config::default(),
            egress: None,
            crds: Vec::new(),
            traces: None,
            flags: BTreeMap::new(),
        }
    }
}

/// How the server finds out who makes a request, beside certificates and the token file of [`Https`].
#[derive(Clone, Debug)]
pub struct Authentication {
    /// The requests without a credential that are let in, as `system:anonymous`.
    pub anonymous: Anonymous,
    /// The headers of front proxies. Their CA is [`Https::certificates`]' `front_proxy_ca_file`; without one nobody is believed.
    pub front_proxy: FrontProxy,
    /// The audiences of tokens for this server; if there are none, the issuers of tokens of service accounts.
    pub api_audiences: Vec<String>,
    pub service_accounts: ServiceAccounts,
    /// Whether the bootstrap tokens in Secrets of `kube-system` are accepted.
    pub bootstrap_tokens: bool,
    /// Issuers of OpenID Connect.
    pub oidc: Vec<oidc::Issuer>,
    /// The file that the issuers come from, if it is to be followed.
    pub file: Option<SettingsFile>,
    pub webhook: Option<TokenWebhook>,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            anonymous: Anonymous::Everywhere,
            front_proxy: FrontProxy::default(),
            api_audiences: Vec::new(),
            service_accounts: ServiceAccounts::default(),
            bootstrap_tokens: false,
            oidc: Vec::new(),
            file: None,
            webhook: None,
        }
    }
}

impl Authentication {
    /// See [`Authentication::api_audiences`].
    pub fn audiences(&self) -> Vec<String> {
        if self.api_audiences.is_empty() {
            self.service_accounts.issuers.clone()
        } else {
            self.api_audiences.clone()
        }
    }
}

/// The authorizers, which decide who may do what.
#[derive(Clone, Debug, PartialEq)]
pub struct Authorization {
    /// In their order. Members of `system:masters` may do everything.
    pub authorizers: Vec<Configured>,
    /// The policies of the mode `ABAC`.
    pub policies: Abac,
    /// The file that the authorizers come from, if it is to be followed.
    pub file: Option<SettingsFile>,
}

impl Authorization {
    pub fn has(&self, mode: Mode) -> bool {
        self.authorizers.iter().any(|one| one.mode == mode)
    }
}

impl From<Vec<Mode>> for Authorization {
    fn from(modes: Vec<Mode>) -> Self {
        let authorizers = modes.into_iter().map(Configured::from).collect();
        Self { authorizers, policies: Abac::default(), file: None }
    }
}

impl Default for Authorization {
    fn default() -> Self {
        mode::DEFAULT.to_vec().into()
    }
}

/// A webhook that knows tokens.
#[derive(Clone, Debug)]
pub struct TokenWebhook {
    /// A kubeconfig.
    pub config_file: PathBuf,
    /// The version of TokenReviews: `v1` or `v1beta1`.
    pub version: String,
    /// How long answers are kept.
    pub cache_ttl: Duration,
}

/// Tokens of service accounts.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// The first one issues; tokens of the others are accepted.
    pub issuers: Vec<String>,
    /// Files of more keys that verify tokens.
    pub key_files: Vec<PathBuf>,
    /// The key that signs. `None` means that of the data directory, which is made at first need.
    pub signing_key_file: Option<PathBuf>,
    /// The socket of a service that signs instead: a path, or `@name` for an abstract socket.
    pub signing_endpoint: Option<String>,
    /// The longest life of a token that a client may ask for.
    pub max_token_expiration: Option<Duration>,
    /// Whether tokens in Pods, which are renewed every hour, are valid for a year.
    pub extend_token_expiration: bool,
    /// The URL of the keys in the discovery document; `None` names this server's.
    pub jwks_uri: Option<String>,
}

impl Default for ServiceAccounts {
    fn default() -> Self {
        Self {
            issuers: vec![DEFAULT_ISSUER.to_owned()],
            key_files: Vec::new(),
            signing_key_file: None,
            signing_endpoint: None,
            max_token_expiration: None,
            extend_token_expiration: true,
            jwks_uri: None,
        }
    }
}

/// The controllers that run. The objects that exist from the start are created in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// All of them, so that no kube-controller-manager is needed.
    #[default]
    Run,
    /// The controllers of kube-apiserver, as definitions, Services and its own leases need them. What
    /// kube-controller-manager does is not done here: no garbage is collected, no namespace emptied, no ClusterRole
    /// aggregated, no quota counted for the first time, no StorageVersion cleared that only dead servers know of.
    OfServer,
    /// None. What is done with a write, such as aggregating ClusterRoles and counting quotas, is done.
    Off,
}

/// The controllers of CertificateSigningRequests, otherwise kube-controller-manager's, for clusters without it. None of
/// them runs unless it is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateControllers {
    pub approving: bool,
    pub signing: bool,
    pub cleaning: bool,
    /// The certificate and the key of the CA that signs. `None` means that of the data directory.
    pub authority: Option<(PathBuf, PathBuf)>,
    /// The same by the names of signers. If there are any, nothing else is signed.
    pub authorities: BTreeMap<&'static str, (PathBuf, PathBuf)>,
    /// The longest life of a certificate.
    pub longest: Duration,
}

impl Default for CertificateControllers {
    fn default() -> Self {
        let longest = Duration::from_secs(8760 * 3600);
        let authorities = BTreeMap::new();
        Self { approving: false, signing: false, cleaning: false, authority: None, authorities, longest }
    }
}

/// Limits of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchLimits {
    /// The number of branches, those of branches included.
    pub most: usize,
    /// The bytes of values that one branch holds beyond what it was made from.
    pub most_bytes: u64,
}

impl Default for BranchLimits {
    fn default() -> Self {
        Self { most: 100, most_bytes: 64 << 20 }
    }
}

/// Limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct ApiLimits {
    pub max_request_body_bytes: usize,
    /// The limit of an object as it is encoded, before it is packed or encrypted.
    pub max_object_bytes: usize,
    /// The limit of all requests together.
    pub max_request_body_bytes_inflight: usize,
    pub in_flight: InFlightLimits,
    /// Whether requests wait for their share of the server (Priority and Fairness), and not just their number is limited.
    pub priority_and_fairness: bool,
    /// The share of HTTP/2 requests after which the connection is closed.
    pub goaway_chance: f64,
    /// The limit for requests that are not long-running; `timeout` in the query can only shorten it.
    pub request_timeout: Duration,
    /// A watch without `timeoutSeconds` ends after a random time between this and twice this.
    pub min_request_timeout: Duration,
    pub event_ttl: Duration,
    /// How many reads of the past run at the same time.
    pub asof_max_concurrent: usize,
    /// How many objects a migration of stored objects writes per second.
    pub migration_rate: u32,
    pub sql: SqlConfig,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            max_request_body_bytes: 3 << 20,
            max_object_bytes: MAX_OBJECT_BYTES,
            max_request_body_bytes_inflight: 128 << 20,
            in_flight: InFlightLimits { reading: 400, mutating: 200 },
            priority_and_fairness: true,
            goaway_chance: 0.0,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            event_ttl: Duration::from_secs(3600),
            asof_max_concurrent: 4,
            migration_rate: 8000,
            sql: SqlConfig::default(),
        }
    }
}

/// How this server shows the others that it is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityConfig {
    /// Replaces the host's name.
    pub hostname_override: Option<String>,
    pub leases: IdentityLeases,
    /// Whether the server registers its storage versions, and writes nothing before.
    pub registration: Registration,
}

/// The feature gate `StorageVersionAPI`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    On,
    Off,
}
