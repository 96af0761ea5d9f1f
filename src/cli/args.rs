//! The command line. Every flag can also be set by an environment variable `ROWPLANE_<FLAG>`.

mod admission;
mod audit;
mod authentication;
mod authorization;
mod certificates;
mod controllers;
mod encryption;
mod kubelets;
mod metrics;
mod oidc_flags;
mod service_accounts;
mod service_routes;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;

use self::admission::AdmissionArgs;
pub use self::admission::Defaults;
use self::audit::{AuditArgs, switch};
use self::authentication::AuthenticationArgs;
use self::authorization::AuthorizationArgs;
use self::certificates::CertificateArgs;
use self::controllers::{ControllerArgs, ControllerConfig};
use self::encryption::EncryptionArgs;
use self::kubelets::KubeletArgs;
use self::metrics::MetricArgs;
use self::service_routes::ServiceRouteArgs;
use self::tls::{TlsArgs, TlsConfig};
use super::auth::AuthCommand;
use super::config::{LogConfig, LogFormat, ServeConfig};
use super::error::Error;
use super::feature_gates::FeatureGates;
use super::keys::{BackupKeyArgs, KeyArgs};
use super::status::WaitMigrations;
use crate::api::services::{self, Network};
use crate::auth::pki::Overrides;
use crate::codec::at_rest::StorageMediaType;
use crate::controllers::IdentityLeases;
use crate::gotext;
use crate::http::limits::InFlightLimits;
use crate::http::server;
use crate::kinds::behavior::format;
use crate::kinds::built_in;
use crate::kinds::built_in::enablement::Enablement;
use crate::schema::names::{GroupResource, GroupVersion};
use crate::server::config::{ApiLimits, Config, Https, IdentityConfig, Registration};
use crate::server::datastore::Datastore;
use crate::storage::postgres::ClusterId;
use crate::storage::{AuditQuery, Compaction, MAX_OBJECT_BYTES};

/// The Kubernetes API on SQL.
#[derive(Debug, Parser)]
#[command(name = "rowplane", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Cli {
    /// `rowplane` alone means `rowplane serve`.
    pub fn command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(Box::new(self.serve)))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API (the default)
    Serve(Box<ServeArgs>),
    /// Write the state of a store to a file, also while servers run on it
    Backup(EncryptedBackupArgs),
    /// Fill a new store from a backup
    Restore(BackupArgs),
    /// Show in which versions objects are stored, and who writes them, also while servers run
    Status(StatusArgs),
    /// Show who did what: the audit events in the database, also while servers run
    Audit(AuditQueryArgs),
    /// Fill a new store with the state of another, whose servers have been stopped
    Migrate(MigrateArgs),
    /// Show who may do what, and why, by the roles and bindings in a store, also while servers run
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Fill a directory with what test environments start, for KUBEBUILDER_ASSETS
    EnvtestAssets(EnvtestAssetsArgs),
    /// Serve in kube-apiserver's place, with its flags; also when called by its name
    #[command(disable_help_flag = true)]
    KubeApiserver(Others),
    /// Stand in for etcd where one is started beside kube-apiserver; also when called by its name
    #[command(disable_help_flag = true)]
    Etcd(Others),
}

/// Which directory.
#[derive(Clone, Debug, Args)]
pub struct EnvtestAssetsArgs {
    /// The directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Another program's command line.
#[derive(Clone, Debug, Args)]
pub struct Others {
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// What is backed up, and by which keys.
#[derive(Clone, Debug, Args)]
pub struct EncryptedBackupArgs {
    #[command(flatten)]
    pub backup: BackupArgs,
    #[command(flatten)]
    pub keys: BackupKeyArgs,
}

/// Which store, and which file.
#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

impl BackupArgs {
    pub fn into_config(self) -> Result<(PathBuf, Datastore), Error> {
        Ok((self.file, self.store.datastore()?))
    }
}

/// Which stores.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// The store to read
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to fill; it has to be new
    #[arg(long, value_name = "URL")]
    to: String,
}

impl MigrateArgs {
    /// From where, and to where.
    pub fn into_config(self) -> Result<(Datastore, Datastore), Error> {
        let named = |url: &str| {
            let mut datastore = parse(url)?;
            if let Datastore::Postgres(address) = &mut datastore {
                address.in_arguments = true;
            }
            Ok::<_, Error>(datastore)
        };
        Ok((named(&self.from)?, named(&self.to)?))
    }
}

fn parse(url: &str) -> Result<Datastore, Error> {
    Datastore::parse(url).map_err(|error| Error::Usage(format!("invalid --datastore: {error}")))
}

/// Which store, and whether to wait.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// First wait until no StorageVersionMigration runs, and show how far they are; fails if one has failed. It is the
    /// servers that migrate
    #[arg(long)]
    wait_migrations: bool,
    /// Name the objects that are larger
    #[arg(long, env = "ROWPLANE_MAX_OBJECT_BYTES", value_name = "BYTES", default_value_t = MAX_OBJECT_BYTES)]
    max_object_bytes: usize,
    #[command(flatten)]
    keys: KeyArgs,
}

/// The reports of `rowplane status`.
pub struct StatusConfig {
    pub datastore: Datastore,
    pub wait: WaitMigrations,
    pub keys: KeyArgs,
    /// Longer objects are named.
    pub max_object_bytes: usize,
}

impl StatusArgs {
    pub fn into_config(self) -> Result<StatusConfig, Error> {
        let wait = if self.wait_migrations { WaitMigrations::Yes } else { WaitMigrations::No };
        let (keys, max_object_bytes) = (self.keys, self.max_object_bytes);
        Ok(StatusConfig { datastore: self.store.datastore()?, wait, keys, max_object_bytes })
    }
}

/// Which audit events.
#[derive(Clone, Debug, Args)]
pub struct AuditQueryArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Only what this user did
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only this verb: create, update, patch, delete, deletecollection, get, list, watch, …
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,
    /// Only this object, or what is below it: deployments.apps/prod/web, pods/default, nodes, …
    #[arg(long, value_name = "RESOURCE/NAMESPACE/NAME")]
    object: Option<String>,
    /// Only what happened since so long ago
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    /// The most events to show, the newest ones
    #[arg(long, value_name = "EVENTS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::storage::audit::MOST)))]
    limit: u32,
    /// A table, or whole events as lines of JSON
    #[arg(long, short, value_name = "FORMAT", value_enum, default_value = "table")]
    output: AuditOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditOutput {
    Table,
    Json,
}

impl AuditQueryArgs {
    pub fn into_query(self) -> Result<(Datastore, AuditQuery, AuditOutput), Error> {
        let Self { store, user, verb, object, since, limit, output } = self;
        let since = since.map_or(0, |ago| {
            Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH).as_microsecond()
        });
        Ok((store.datastore()?, AuditQuery { user, verb, object, since, limit }, output))
    }
}

/// Where the state is, as `rowplane serve` is told it.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// Where certificates, the admin's kubeconfig and the SQLite database are kept
    #[arg(long, env = "ROWPLANE_DATA_DIR", value_name = "DIR", default_value = "./rowplane-data")]
    data_dir: PathBuf,

    /// sqlite:PATH, postgres://USER@HOST/DATABASE, or memory: for state that goes with the server [default: sqlite in the data directory]
    #[arg(long, env = "ROWPLANE_DATASTORE", value_name = "URL", hide_env_values = true)]
    datastore: Option<String>,

    /// A file that holds the password for PostgreSQL, and nothing else
    #[arg(long, env = "ROWPLANE_DATASTORE_PASSWORD_FILE", value_name = "FILE")]
    datastore_password_file: Option<PathBuf>,

    /// Takes this cluster for the database, though the data directory knows another one: what a server that refuses it
    /// names, after a restore or a move
    #[arg(long, env = "ROWPLANE_DATASTORE_ACCEPT", value_name = "SYSTEM/TIMELINE")]
    datastore_accept: Option<ClusterId>,
}

impl StoreArgs {
    pub fn datastore(&self) -> Result<Datastore, Error> {
        let Some(url) = &self.datastore else { return Ok(Datastore::in_data_dir(&self.data_dir)) };
        let mut datastore = parse(url)?;
        match &mut datastore {
            Datastore::Postgres(address) => {
                address.password_file = self.datastore_password_file.clone();
                address.accepted = self.datastore_accept;
                // The environment is for this user's eyes, and the list of processes for everybody's.
                address.in_arguments = std::env::var("ROWPLANE_DATASTORE").ok().as_ref() != Some(url);
            }
            Datastore::Sqlite(_) | Datastore::Memory if self.datastore_password_file.is_some() => {
                return Err(Error::Usage("--datastore-password-file is for PostgreSQL".to_owned()));
            }
            Datastore::Sqlite(_) | Datastore::Memory => {}
        }
        Ok(datastore)
    }
}

/// The flags of `rowplane serve`, with kube-apiserver's names where it has one.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The address to listen on
    #[arg(long, env = "ROWPLANE_BIND_ADDRESS", value_name = "IP", default_value = "127.0.0.1")]
    bind_address: IpAddr,

    /// Where other hosts reach this server: an endpoint of the Service `kubernetes` [default: the bound address, or for
    /// a local one that of the host]
    #[arg(long, env = "ROWPLANE_ADVERTISE_ADDRESS", value_name = "IP")]
    advertise_address: Option<IpAddr>,

    /// The port to listen on; 0 takes a free one
    #[arg(long, env = "ROWPLANE_SECURE_PORT", value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,

    /// The form objects are written to the database in: application/vnd.kubernetes.protobuf, application/json or
    /// application/yaml. All of them can be read at any time
    #[arg(long, env = "ROWPLANE_STORAGE_MEDIA_TYPE", value_name = "TYPE",
        default_value = StorageMediaType::default().as_str(), value_parser = StorageMediaType::parse)]
    storage_media_type: StorageMediaType,

    #[command(flatten)]
    encryption: EncryptionArgs,

    #[command(flatten)]
    metrics: MetricArgs,

    /// Lines of token,user,uid,"group1,group2" that authenticate bearer tokens
    #[arg(long, env = "ROWPLANE_TOKEN_AUTH_FILE", value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    #[command(flatten)]
    authorization: AuthorizationArgs,

    /// The CAs whose client certificates are accepted: the data directory's own only if it is among them [default: just
    /// that one]
    #[arg(long, env = "ROWPLANE_CLIENT_CA_FILE", value_name = "FILE")]
    client_ca_file: Option<PathBuf>,

    /// The CAs of front proxies, which say by headers whose request they pass on
    #[arg(long, env = "ROWPLANE_REQUESTHEADER_CLIENT_CA_FILE", value_name = "FILE")]
    requestheader_client_ca_file: Option<PathBuf>,

    #[command(flatten)]
    authentication: AuthenticationArgs,

    #[command(flatten)]
    controllers: ControllerArgs,

    /// Whether the ConfigMaps of kube-system are kept that tell other API servers how this one authenticates, and since when
    /// the use of tokens in Secrets is tracked
    #[arg(long, env = "ROWPLANE_CLUSTER_AUTHENTICATION", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    cluster_authentication: bool,

    #[command(flatten)]
    certificates: CertificateArgs,

    /// The serving certificate, followed by its chain [default: one issued by the data directory's CA]
    #[arg(long, env = "ROWPLANE_TLS_CERT_FILE", value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The key of --tls-cert-file
    #[arg(long, env = "ROWPLANE_TLS_PRIVATE_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    #[command(flatten)]
    tls: TlsArgs,

    /// More names or addresses for the issued serving certificate
    #[arg(long, env = "ROWPLANE_TLS_SAN", value_name = "HOST", value_delimiter = ',')]
    tls_san: Vec<String>,

    /// The network that Services get their addresses from; two with a comma, one of each family, for both
    #[arg(long, env = "ROWPLANE_SERVICE_CLUSTER_IP_RANGE", value_name = "CIDR", default_value = "10.0.0.0/24", value_parser = networks)]
    service_cluster_ip_range: ServiceNetworks,

    /// The ports of nodes that Services get
    #[arg(long, env = "ROWPLANE_SERVICE_NODE_PORT_RANGE", value_name = "FIRST-LAST", default_value = "30000-32767", value_parser = port_range)]
    service_node_port_range: RangeInclusive<u16>,

    /// How long events are kept
    #[arg(long, env = "ROWPLANE_EVENT_TTL", value_name = "DURATION", default_value = "1h", value_parser = duration)]
    event_ttl: Duration,

    /// How often history is compacted; 0 never does
    #[arg(long, env = "ROWPLANE_COMPACTION_INTERVAL", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_interval: Duration,

    /// How much history is kept for watches and continue tokens
    #[arg(long, env = "ROWPLANE_COMPACTION_HISTORY", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_history: Duration,

    /// The largest request body
    #[arg(long, env = "ROWPLANE_MAX_REQUEST_BODY_BYTES", value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    max_request_body_bytes: usize,

    /// The largest object that is stored, as it is encoded. Larger ones are refused with 413
    #[arg(long, env = "ROWPLANE_MAX_OBJECT_BYTES", value_name = "BYTES", default_value_t = MAX_OBJECT_BYTES)]
    max_object_bytes: usize,

    /// Bytes of request bodies held at once; more wait in line, and are answered with 429 if that takes too long
    #[arg(long, env = "ROWPLANE_MAX_REQUEST_BODY_BYTES_INFLIGHT", value_name = "BYTES", default_value_t = 128 * 1024 * 1024)]
    max_request_body_bytes_inflight: usize,

    /// Reading requests worked on at once, watches apart; more are answered with 429. 0 is no limit
    #[arg(long, env = "ROWPLANE_MAX_REQUESTS_INFLIGHT", value_name = "REQUESTS", default_value_t = 400)]
    max_requests_inflight: usize,

    /// Writing requests worked on at once; more are answered with 429. 0 is no limit
    #[arg(
        long,
        env = "ROWPLANE_MAX_MUTATING_REQUESTS_INFLIGHT",
        value_name = "REQUESTS",
        default_value_t = 200
    )]
    max_mutating_requests_inflight: usize,

    /// Whether requests wait for their share of the server, by FlowSchemas and PriorityLevelConfigurations. If not, only the
    /// number of requests is limited
    #[arg(long, env = "ROWPLANE_ENABLE_PRIORITY_AND_FAIRNESS", value_name = "BOOL", default_value = "true", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    enable_priority_and_fairness: bool,

    /// Requests at once on a connection of HTTP/2, watches among them; 0 is the default
    #[arg(long, env = "ROWPLANE_HTTP2_MAX_STREAMS_PER_CONNECTION", value_name = "STREAMS", default_value_t = server::Limits::default().streams)]
    http2_max_streams_per_connection: u32,

    /// The share of requests of HTTP/2, up to 0.02, after which the client is told to connect anew, behind a load balancer
    /// perhaps to another replica; 0 never does
    #[arg(long, env = "ROWPLANE_GOAWAY_CHANCE", value_name = "SHARE", default_value_t = 0.0, value_parser = goaway_chance)]
    goaway_chance: f64,

    /// Connections whose client has shown a credential; on more, requests are answered with 429
    #[arg(long, env = "ROWPLANE_MAX_CONNECTIONS", value_name = "CONNECTIONS", default_value_t = server::Limits::default().connections)]
    max_connections: usize,

    /// Connections whose client has not shown a credential yet; a further one ends the oldest of the address that has most
    #[arg(long, env = "ROWPLANE_MAX_UNAUTHENTICATED_CONNECTIONS", value_name = "CONNECTIONS", default_value_t = server::Limits::default().unauthenticated_connections)]
    max_unauthenticated_connections: usize,

    /// Bytes of answers that wait to be sent, without those to system:masters; at more, the connections of who holds most end
    #[arg(long, env = "ROWPLANE_MAX_UNSENT_RESPONSE_BYTES", value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes)]
    max_unsent_response_bytes: usize,

    /// Bytes of answers that wait on one connection; at more, the largest that nobody reads are broken off
    #[arg(long, env = "ROWPLANE_MAX_UNSENT_RESPONSE_BYTES_PER_CONNECTION", value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes_of_connection)]
    max_unsent_response_bytes_per_connection: usize,

    /// How long the reader of an answer or a watch may take nothing of it before it is broken off
    #[arg(long, env = "ROWPLANE_RESPONSE_PROGRESS_TIMEOUT", value_name = "DURATION", default_value = "60s", value_parser = positive_duration)]
    response_progress_timeout: Duration,

    /// Watches without a timeout of their own end after once to twice so many seconds
    #[arg(long, env = "ROWPLANE_MIN_REQUEST_TIMEOUT", value_name = "SECONDS", default_value_t = 1800)]
    min_request_timeout: u32,

    /// How long a request that is not a watch may take
    #[arg(long, env = "ROWPLANE_REQUEST_TIMEOUT", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    request_timeout: Duration,

    /// How long, after SIGTERM or SIGINT, the server goes on as ever, only not ready, before it closes its listener: time for
    /// load balancers to notice
    #[arg(long, env = "ROWPLANE_SHUTDOWN_DELAY_DURATION", value_name = "DURATION", default_value = "0s", value_parser = duration)]
    shutdown_delay_duration: Duration,

    /// How long requests may finish after that
    #[arg(long, env = "ROWPLANE_SHUTDOWN_GRACE_PERIOD", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    shutdown_grace_period: Duration,

    /// This server's name among the replicas; with its port, if another one has the name [default: the host's]
    #[arg(long, env = "ROWPLANE_HOSTNAME_OVERRIDE", value_name = "NAME", value_parser = label_value)]
    hostname_override: Option<String>,

    /// For how long after its last heartbeat a server counts as alive
    #[arg(long, env = "ROWPLANE_IDENTITY_LEASE_DURATION_SECONDS", value_name = "SECONDS", default_value_t = 3600,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    identity_lease_duration_seconds: u32,

    /// How often the server sends its heartbeat
    #[arg(long, env = "ROWPLANE_IDENTITY_LEASE_RENEW_INTERVAL_SECONDS", value_name = "SECONDS", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    identity_lease_renew_interval_seconds: u32,

    /// How often the leases of servers that are gone are looked for
    #[arg(long, env = "ROWPLANE_IDENTITY_LEASE_GC_PERIOD", value_name = "DURATION", default_value = "1h", value_parser = positive_duration)]
    identity_lease_gc_period: Duration,

    /// How many objects a migration of stored objects writes per second
    #[arg(long, env = "ROWPLANE_STORAGE_MIGRATION_RATE", value_name = "OBJECTS", default_value_t = 8000,
        value_parser = clap::value_parser!(u32).range(1..))]
    storage_migration_rate: u32,

    /// Stores a resource in this version, where there are several: autoscaling/horizontalpodautoscalers=autoscaling/v1
    #[arg(long, env = "ROWPLANE_STORAGE_VERSION", value_name = "GROUP/RESOURCE=VERSION", value_delimiter = ',', value_parser = storage_version)]
    storage_version: Vec<(GroupResource, GroupVersion)>,

    /// Built-in APIs that are served or not: v1, apps/v1, apps/v1/daemonsets, or api/all, api/ga, api/beta, api/alpha, each with
    /// true or false
    #[arg(long, env = "ROWPLANE_RUNTIME_CONFIG", value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = Enablement::parse)]
    runtime_config: Enablement,

    /// Switches features on or off: APIServerIdentity, StorageVersionAPI [default: both are on]
    #[arg(long, env = "ROWPLANE_FEATURE_GATES", value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = FeatureGates::parse)]
    feature_gates: FeatureGates,

    #[command(flatten)]
    admission: AdmissionArgs,

    #[command(flatten)]
    service_routes: ServiceRouteArgs,

    #[command(flatten)]
    kubelets: KubeletArgs,

    #[command(flatten)]
    audit: AuditArgs,

    /// The path in the line `export KUBECONFIG=`, where the reader knows the file by another one: that of a volume's
    /// directory, for a server in a container
    #[arg(long, env = "ROWPLANE_KUBECONFIG_SHOWN_AS", value_name = "PATH")]
    kubeconfig_shown_as: Option<PathBuf>,

    /// How much to log: 0 to 3 informs, 4 and 5 debug, 6 and more trace
    #[arg(long = "v", short = 'v', env = "ROWPLANE_V", value_name = "LEVEL", default_value_t = 0)]
    v: u8,

    /// How log lines look
    #[arg(long, env = "ROWPLANE_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
}

impl ServeArgs {
    /// What the flags mean, each part for the module that it concerns.
    pub fn into_config(self, defaults: Defaults) -> Result<ServeConfig, Error> {
        let datastore = self.store.datastore()?;
        let has_database = datastore != Datastore::Memory;
        let identity = IdentityConfig {
            hostname_override: self.hostname_override,
            leases: IdentityLeases {
                duration_seconds: self.identity_lease_duration_seconds,
                renew_interval: Duration::from_secs(self.identity_lease_renew_interval_seconds.into()),
                gc_period: self.identity_lease_gc_period,
            },
            registration: match self.feature_gates.storage_version_api {
                true => Registration::On,
                false => Registration::Off,
            },
        };
        let usual = server::Limits::default();
        let connections = server::Limits {
            connections: self.max_connections,
            unauthenticated_connections: self.max_unauthenticated_connections.max(1),
            streams: match self.http2_max_streams_per_connection {
                0 => usual.streams,
                streams => streams,
            },
            response_progress: self.response_progress_timeout,
            unsent_bytes: self.max_unsent_response_bytes,
            unsent_bytes_of_connection: self.max_unsent_response_bytes_per_connection,
            ..usual
        };
        let serving = self.tls_cert_file.zip(self.tls_private_key_file);
        let TlsConfig { settings, named, strict_transport_security, cors } = self.tls.into_config();
        let https = Https {
            address: SocketAddr::new(self.bind_address, self.secure_port),
            certificates: Overrides {
                client_ca_file: self.client_ca_file,
                serving,
                front_proxy_ca_file: self.requestheader_client_ca_file,
                named,
                published: None,
            },
            tls: settings,
            strict_transport_security,
            cors,
            extra_names: self.tls_san,
            token_auth_file: self.token_auth_file,
            connections,
            kubeconfig: Some(self.store.data_dir.join("admin.kubeconfig")),
        };
        let ControllerConfig { controllers, garbage_collection, namespace_contents } =
            self.controllers.into_config();
        let server = Config {
            authorization: self.authorization.into_config()?,
            authentication: self.authentication.into_config()?,
            certificate_controllers: self.certificates.into_config(),
            controllers,
            garbage_collection,
            namespace_contents,
            cluster_authentication: self.cluster_authentication,
            datastore,
            data_dir: Some(self.store.data_dir),
            https: Some(https),
            advertise_address: self.advertise_address,
            storage_media_type: self.storage_media_type,
            encryption: self.encryption.into_config()?,
            allowed_labels: self.metrics.into_config()?,
            limits: ApiLimits {
                max_request_body_bytes: self.max_request_body_bytes,
                max_object_bytes: self.max_object_bytes,
                max_request_body_bytes_inflight: self.max_request_body_bytes_inflight,
                in_flight: InFlightLimits {
                    reading: self.max_requests_inflight,
                    mutating: self.max_mutating_requests_inflight,
                },
                priority_and_fairness: self.enable_priority_and_fairness,
                goaway_chance: self.goaway_chance,
                request_timeout: self.request_timeout,
                min_request_timeout: Duration::from_secs(self.min_request_timeout.into()),
                event_ttl: self.event_ttl,
                migration_rate: self.storage_migration_rate,
            },
            services: services::Config {
                networks: self.service_cluster_ip_range.0,
                node_ports: self.service_node_port_range,
            },
            compaction: compaction(self.compaction_interval, self.compaction_history),
            shutdown_delay: self.shutdown_delay_duration,
            shutdown_grace: self.shutdown_grace_period,
            identity: self.feature_gates.api_server_identity.then_some(identity),
            storage_versions: self.storage_version,
            enablement: self.runtime_config,
            admission: self.admission.into_config(defaults)?,
            service_routes: self.service_routes.into_config(),
            kubelets: self.kubelets.into_config(),
            audit: self.audit.into_config(has_database)?,
            ..Config::default()
        };
        let log = LogConfig { verbosity: self.v, format: self.log_format };
        Ok(ServeConfig { server, shown_kubeconfig: self.kubeconfig_shown_as, log })
    }
}

/// The value of `--service-cluster-ip-range`.
#[derive(Clone, Debug)]
struct ServiceNetworks(Vec<Network>);

fn networks(text: &str) -> Result<ServiceNetworks, String> {
    let parse =
        |text: &str| Network::parse(text.trim()).ok_or_else(|| format!("{text:?} is no network with room"));
    let networks: Vec<Network> = text.split(',').map(parse).collect::<Result<_, _>>()?;
    match networks.as_slice() {
        [_] => {}
        [one, other] if one.family() != other.family() => {}
        _ => return Err("one network, or one of IPv4 and one of IPv6".to_owned()),
    }
    Ok(ServiceNetworks(networks))
}

fn port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let range = text.split_once('-').and_then(|(first, last)| Some(port(first)?..=port(last)?));
    range.filter(|range| !range.is_empty()).ok_or_else(|| format!("{text:?} is no range of ports"))
}

fn compaction(interval: Duration, history: Duration) -> Option<Compaction> {
    (!interval.is_zero()).then_some(Compaction { interval, history })
}

/// A Go duration, as everywhere in Kubernetes' flags.
fn duration(text: &str) -> Result<Duration, String> {
    if text.starts_with('-') {
        return Err("a duration here cannot be negative".to_owned());
    }
    gotext::parse_duration(text)
}

/// For what is done again and again.
fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("must be greater than zero".to_owned()) } else { Ok(duration) }
}

/// Upstream's bounds.
fn goaway_chance(text: &str) -> Result<f64, String> {
    let chance = text.parse::<f64>().ok().filter(|chance| (0.0..=0.02).contains(chance));
    chance.ok_or_else(|| "cannot be less than 0 or greater than 0.02".to_owned())
}

/// `<group>/<resource>=<version>`: the core group is `core` or nothing, the version may be written with its group.
fn storage_version(text: &str) -> Result<(GroupResource, GroupVersion), String> {
    let parts = text.split_once('=').and_then(|(name, version)| Some((name.split_once('/')?, version)));
    let ((group, plural), version) =
        parts.ok_or_else(|| "must be <group>/<resource>=<version>".to_owned())?;
    let group = if group == "core" { "" } else { group };
    let version = match version.contains('/') {
        true => GroupVersion::parse(version).unwrap_or_default(),
        false => GroupVersion::new(group, version),
    };
    let resource = GroupResource::new(group, plural);
    let known = built_in::storage_versions(&resource);
    match known.contains(&version) {
        true => Ok((resource, version)),
        false if known.is_empty() => Err(format!("no resource {resource} is stored")),
        false => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            Err(format!("{resource} can only be decoded in {}", known.join(", ")))
        }
    }
}

/// The lease carries it as a label.
fn label_value(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    format::label_value(text).into_iter().next().map_or_else(|| Ok(text.to_owned()), Err)
}
