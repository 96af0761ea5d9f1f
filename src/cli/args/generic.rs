//! The flags about requests, connections and the server's end, which kube-apiserver calls generic.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::{duration, positive_duration};
use crate::cli::feature_gates::FeatureGates;
use crate::http::limits::InFlightLimits;
use crate::http::server;
use crate::server::config::{ApiLimits, Config};

/// Limits of requests and connections, and the name of the server among others.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Generic flags")]
pub struct GenericArgs {
    /// The address at which other hosts reach this server, an endpoint of the Service `kubernetes` [default: the bound
    /// address, or for a local one that of the host]
    #[arg(long, value_name = "IP")]
    pub(super) advertise_address: Option<IpAddr>,

    /// Reading requests worked on at once, watches apart; more are answered with 429. 0 is no limit
    #[arg(long, value_name = "REQUESTS", default_value_t = 400)]
    pub(super) max_requests_inflight: usize,

    /// Writing requests worked on at once; more are answered with 429. 0 is no limit
    #[arg(long, value_name = "REQUESTS", default_value_t = 200)]
    pub(super) max_mutating_requests_inflight: usize,

    /// Whether requests wait for their share of the server, by FlowSchemas and PriorityLevelConfigurations. If not, only the
    /// number of requests is limited
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = "Features flags")]
    pub(super) enable_priority_and_fairness: bool,

    /// The share of requests of HTTP/2, up to 0.02, after which the client is told to connect anew, behind a load balancer
    /// perhaps to another replica; 0 never does
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = goaway_chance)]
    pub(super) goaway_chance: f64,

    /// Watches without a timeout of their own end after once to twice so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(super) min_request_timeout: u32,

    /// How long a request that is not a watch may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(super) request_timeout: Duration,

    /// The largest request body
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub(super) max_request_body_bytes: usize,

    /// Bytes of request bodies held at once; more wait in line, and are answered with 429 if that takes too long
    #[arg(long, value_name = "BYTES", default_value_t = 128 * 1024 * 1024)]
    pub(super) max_request_body_bytes_inflight: usize,

    /// Connections whose client has shown a credential; on more, requests are answered with 429
    #[arg(long, value_name = "CONNECTIONS", default_value_t = server::Limits::default().connections)]
    pub(super) max_connections: usize,

    /// Connections whose client has not shown a credential yet; a further one ends the oldest of the address that has most
    #[arg(long, value_name = "CONNECTIONS", default_value_t = server::Limits::default().unauthenticated_connections)]
    pub(super) max_unauthenticated_connections: usize,

    /// Bytes of answers that wait to be sent, without those to system:masters; at more, the connections of who holds most end
    #[arg(long, value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes)]
    pub(super) max_unsent_response_bytes: usize,

    /// Bytes of answers that wait on one connection; at more, the largest that nobody reads are broken off
    #[arg(long, value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes_of_connection)]
    pub(super) max_unsent_response_bytes_per_connection: usize,

    /// How long the reader of an answer or a watch may take nothing of it before it is broken off
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = positive_duration)]
    pub(super) response_progress_timeout: Duration,

    /// How long, after SIGTERM or SIGINT, the server goes on as ever, only not ready, before it closes its listener: time for
    /// load balancers to notice
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) shutdown_delay_duration: Duration,

    /// How long requests may finish after that
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(super) shutdown_grace_period: Duration,

    /// Switches features on or off: APIServerIdentity, StorageVersionAPI [default: both are on]
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = FeatureGates::parse)]
    pub(super) feature_gates: FeatureGates,

    /// The path in the line `export KUBECONFIG=`, where the reader knows the file by another one: that of a volume's
    /// directory, for a server in a container
    #[arg(long, value_name = "PATH")]
    pub(super) kubeconfig_shown_as: Option<PathBuf>,
}

impl GenericArgs {
    pub fn apply(self, config: &mut Config) {
        config.advertise_address = self.advertise_address;
        config.shutdown_delay = self.shutdown_delay_duration;
        config.shutdown_grace = self.shutdown_grace_period;
        if let Some(https) = &mut config.https {
            https.connections = server::Limits {
                connections: self.max_connections,
                unauthenticated_connections: self.max_unauthenticated_connections.max(1),
                response_progress: self.response_progress_timeout,
                unsent_bytes: self.max_unsent_response_bytes,
                unsent_bytes_of_connection: self.max_unsent_response_bytes_per_connection,
                ..https.connections
            };
        }
        config.limits = ApiLimits {
            max_request_body_bytes: self.max_request_body_bytes,
            max_request_body_bytes_inflight: self.max_request_body_bytes_inflight,
            in_flight: InFlightLimits {
                reading: self.max_requests_inflight,
                mutating: self.max_mutating_requests_inflight,
            },
            priority_and_fairness: self.enable_priority_and_fairness,
            goaway_chance: self.goaway_chance,
            request_timeout: self.request_timeout,
            min_request_timeout: Duration::from_secs(self.min_request_timeout.into()),
            ..config.limits
        };
    }
}

/// Parses `--goaway-chance` within upstream's bounds.
fn goaway_chance(text: &str) -> Result<f64, String> {
    let chance = text.parse::<f64>().ok().filter(|chance| (0.0..=0.02).contains(chance));
    chance.ok_or_else(|| "cannot be less than 0 or greater than 0.02".to_owned())
}
