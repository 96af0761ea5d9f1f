//! The flags of `rowplane serve`, under kube-apiserver's headings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, value_parser};

use super::admission::{AdmissionArgs, Defaults};
use super::aggregation::AggregationArgs;
use super::audit::AuditArgs;
use super::authentication::AuthenticationArgs;
use super::authorization::AuthorizationArgs;
use super::branches::BranchLimitArgs;
use super::controllers::ControllerArgs;
use super::generic::GenericArgs;
use super::kubelets::KubeletArgs;
use super::metrics::MetricArgs;
use super::services::ServiceArgs;
use super::sql::SqlArgs;
use super::storage::StorageArgs;
use super::testing::TestingArgs;
use super::tls::TlsArgs;
use super::{StoreArgs, positive_duration};
use crate::auth::authn::Anonymous;
use crate::auth::authorizer::mode::Mode;
use crate::cli::config::{LogConfig, LogFormat, ServeConfig};
use crate::cli::error::Error;
use crate::controllers::IdentityLeases;
use crate::egress;
use crate::kinds::behavior::format;
use crate::server::config::{Config, IdentityConfig, Registration};
use crate::server::datastore::Datastore;
use crate::server::definitions::Source;
use crate::traces;

/// The flags of `rowplane serve`, with kube-apiserver's names and headings where it has them.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    generic: GenericArgs,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    authentication: AuthenticationArgs,
    #[command(flatten)]
    authorization: AuthorizationArgs,
    #[command(flatten)]
    admission: AdmissionArgs,
    #[command(flatten)]
    metrics: MetricArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    services: ServiceArgs,
    #[command(flatten)]
    kubelets: KubeletArgs,
    #[command(flatten)]
    egress: EgressArgs,
    #[command(flatten)]
    aggregation: AggregationArgs,
    #[command(flatten)]
    sql: SqlArgs,
    #[command(flatten)]
    branches: BranchLimitArgs,
    #[command(flatten)]
    controllers: ControllerArgs,
    #[command(flatten)]
    replica: ReplicaArgs,
    #[command(flatten)]
    testing: TestingArgs,
}

/// The ways to networks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Egress selector flags")]
pub struct EgressArgs {
    /// A file of kind EgressSelectorConfiguration, which names proxies for connections to the cluster and to the control
    /// plane
    #[arg(long, value_name = "FILE")]
    egress_selector_config_file: Option<PathBuf>,
}

/// Traces of requests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traces flags")]
pub struct TraceArgs {
    /// A file of kind TracingConfiguration: the collector that spans are sent to, by OTLP over gRPC, and the share of
    /// requests that are sampled
    #[arg(long, value_name = "FILE")]
    tracing_config_file: Option<PathBuf>,
}

/// The amount and the form of log lines.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs flags")]
pub struct LogArgs {
    /// The log verbosity: 0 to 3 for information, 4 and 5 for debugging, 6 and more for tracing
    #[arg(long = "v", short = 'v', value_name = "LEVEL", default_value_t = 0)]
    v: u8,

    /// The log format
    #[arg(long, visible_alias = "logging-format", value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// Leases by which the servers of one store know each other.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Replica flags")]
pub struct ReplicaArgs {
    /// The name of this server among the replicas; its port is appended if another one has the name [default: the
    /// host's name]
    #[arg(long, value_name = "NAME", value_parser = label_value)]
    hostname_override: Option<String>,

    /// The number of seconds after its last heartbeat for which a server counts as alive
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    identity_lease_duration_seconds: u32,

    /// The number of seconds between two heartbeats of this server
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    identity_lease_renew_interval_seconds: u32,

    /// The interval of the search for leases of servers that are gone
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = positive_duration)]
    identity_lease_gc_period: Duration,
}

impl ServeArgs {
    /// The configuration of a server, its log and its banner. Files that flags name are read.
    pub fn into_config(self, defaults: Defaults) -> Result<ServeConfig, Error> {
        let features = self.generic.feature_gates;
        let registration = match features.storage_version_api {
            true => Registration::On,
            false => Registration::Off,
        };
        let datastore = self.store.datastore()?;
        let has_database = datastore != Datastore::Memory;
        let shown_kubeconfig = self.generic.kubeconfig_shown_as.clone();
        let mut https = self.tls.into_config();
        https.kubeconfig = self.store.data_dir().map(|dir| dir.join("admin.kubeconfig"));
        let authentication = self.authentication.into_config(&mut https)?;
        let mut server = Config {
            aggregation: self.aggregation.into_config(defaults),
            authorization: self.authorization.into_config()?,
            authentication,
            branches: self.branches.into_config(),
            datastore,
            data_dir: self.store.data_dir().map(Path::to_owned),
            https: Some(https),
            allowed_labels: self.metrics.into_config()?,
            identity: features.api_server_identity.then(|| self.replica.into_config(registration)),
            admission: self.admission.into_config(defaults)?,
            kubelets: self.kubelets.into_config(),
            audit: self.audit.into_config(has_database)?,
            egress: self.egress.into_config()?,
            traces: self.traces.into_config()?,
            ..Config::default()
        };
        self.generic.apply(&mut server);
        server.limits.sql = self.sql.into_config();
        self.storage.apply(&mut server)?;
        self.services.apply(&mut server)?;
        self.controllers.apply(&mut server);
        server.test_endpoints = self.testing.test_endpoints;
        server.crds = self.testing.crds.iter().cloned().map(Source::Path).collect();
        let log = LogConfig { verbosity: self.log.v, is_quiet: false, format: self.log.log_format };
        let lifetime = self.testing.lifetime();
        let warnings = forbid_anonymous(&mut server).into_iter().collect();
        Ok(ServeConfig { server, shown_kubeconfig, log, warnings, lifetime })
    }
}

/// Whoever may do everything has to show a credential, as upstream's `ApplyAuthorization` has it. Returns what the log is
/// to say.
fn forbid_anonymous(server: &mut Config) -> Option<&'static str> {
    let anonymous = &mut server.authentication.anonymous;
    if *anonymous != Anonymous::Everywhere || !server.authorization.has(Mode::AlwaysAllow) {
        return None;
    }
    *anonymous = Anonymous::Nowhere;
    Some(
        "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a \
         different authorizer",
    )
}

impl EgressArgs {
    fn into_config(self) -> Result<Option<egress::config::Configuration>, Error> {
        let path = self.egress_selector_config_file.filter(|path| !path.as_os_str().is_empty());
        let read = path.map(|path| egress::config::load(&path)).transpose();
        read.map_err(Error::Usage)
    }
}

impl TraceArgs {
    fn into_config(self) -> Result<Option<traces::config::Configuration>, Error> {
        let path = self.tracing_config_file.filter(|path| !path.as_os_str().is_empty());
        path.map(|path| traces::config::load(&path)).transpose().map_err(Error::Usage)
    }
}

impl ReplicaArgs {
    fn into_config(self, registration: Registration) -> IdentityConfig {
        let leases = IdentityLeases {
            duration_seconds: self.identity_lease_duration_seconds,
            renew_interval: Duration::from_secs(self.identity_lease_renew_interval_seconds.into()),
            gc_period: self.identity_lease_gc_period,
        };
        IdentityConfig { hostname_override: self.hostname_override, leases, registration }
    }
}

/// The lease carries it as a label.
fn label_value(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    format::label_value(text).into_iter().next().map_or_else(|| Ok(text.to_owned()), Err)
}
