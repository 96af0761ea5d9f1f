//! What the flags come to, each part typed for the module that it concerns.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::datastore::Datastore;
use crate::api::services;
use crate::auth::pki::Overrides;
use crate::codec::at_rest::StorageMediaType;
use crate::controllers::IdentityLeases;
use crate::http::limits::InFlightLimits;
use crate::http::server;
use crate::schema::names::{GroupResource, GroupVersion};
use crate::storage::Compaction;

/// The configuration of `rowplane serve`.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub data_dir: PathBuf,
    pub bind_address: IpAddr,
    /// Where other hosts reach this server, if not at the address that is bound.
    pub advertise_address: Option<IpAddr>,
    /// 0 takes a free one.
    pub secure_port: u16,
    pub datastore: Datastore,
    /// Of what is written from now on.
    pub storage_media_type: StorageMediaType,
    pub token_auth_file: Option<PathBuf>,
    pub certificates: Overrides,
    /// More names for the serving certificate.
    pub extra_names: Vec<String>,
    pub limits: ApiLimits,
    pub connections: server::Limits,
    pub services: services::Config,
    /// `None`: history is kept for good.
    pub compaction: Option<Compaction>,
    /// How long requests may finish after a signal.
    pub shutdown_grace: Duration,
    /// `None`: the feature gate `APIServerIdentity` is off.
    pub identity: Option<IdentityConfig>,
    /// Resources that are stored in another version than usual, and in which.
    pub storage_versions: Vec<(GroupResource, GroupVersion)>,
    pub log: LogConfig,
}

impl ServeConfig {
    pub fn listen_address(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.secure_port)
    }

    pub fn pki_dir(&self) -> PathBuf {
        self.data_dir.join("pki")
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.data_dir.join("admin.kubeconfig")
    }
}

/// What requests may ask for.
#[derive(Clone, Copy, Debug)]
pub struct ApiLimits {
    pub max_request_body_bytes: usize,
    /// Of all requests together.
    pub max_request_body_bytes_inflight: usize,
    pub in_flight: InFlightLimits,
    /// The share of requests of HTTP/2 after which the connection is closed.
    pub goaway_chance: f64,
    /// For requests that are not long-running; `timeout` in the query can only shorten it.
    pub request_timeout: Duration,
    /// A watch without `timeoutSeconds` ends after a random time between this and twice this.
    pub min_request_timeout: Duration,
    pub event_ttl: Duration,
    /// Objects that a migration of stored objects writes per second.
    pub migration_rate: u32,
}

/// How this server shows the others that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityConfig {
    /// In place of the host's name.
    pub hostname_override: Option<String>,
    pub leases: IdentityLeases,
    /// Whether the server registers its storage versions, and does not write before.
    pub registration: Registration,
}

/// The feature gate `StorageVersionAPI`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    On,
    Off,
}

/// How the server logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// klog's levels.
    pub verbosity: u8,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
