//! The flags about requests, connections and the server's end, which kube-apiserver calls generic.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::{duration, positive_duration};
use crate::cli::feature_gates::FeatureGates;
use crate::http::console::Console;
use crate::http::limits::InFlightLimits;
use crate::http::server;
use crate::server::config::{ApiLimits, Config};

/// Limits of requests and connections, and the name of the server among others.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Generic flags")]
pub struct GenericArgs {
    /// The address at which other hosts reach this server, published as the endpoint of the Service `kubernetes`
    /// [default: the bound address, or the host's if that is a loopback address]
    #[arg(long, value_name = "IP")]
    pub(super) advertise_address: Option<IpAddr>,

    /// The maximum number of non-mutating requests in flight, not counting watches; more are answered with 429. 0 means
    /// no limit
    #[arg(long, value_name = "REQUESTS", default_value_t = 400)]
    pub(super) max_requests_inflight: usize,

    /// The maximum number of mutating requests in flight; more are answered with 429. 0 means no limit
    #[arg(long, value_name = "REQUESTS", default_value_t = 200)]
    pub(super) max_mutating_requests_inflight: usize,

    /// Enables API Priority and Fairness: requests queue according to FlowSchemas and PriorityLevelConfigurations. If
    /// false, only the number of requests in flight is limited
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = "Features flags")]
    pub(super) enable_priority_and_fairness: bool,

    /// The probability, up to 0.02, with which an HTTP/2 request makes the server send GOAWAY, so that the client
    /// reconnects, perhaps to another replica behind a load balancer. 0 disables it
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = goaway_chance)]
    pub(super) goaway_chance: f64,

    /// The minimum number of seconds before a watch without a timeout of its own is ended; the actual time is random,
    /// up to twice as long
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(super) min_request_timeout: u32,

    /// The timeout of requests other than watches
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(super) request_timeout: Duration,

    /// The largest request body, in bytes; larger ones are answered with 413
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub(super) max_request_body_bytes: usize,

    /// The total size of request bodies held in memory at once, in bytes. Further requests wait, and are answered with
    /// 429 if that takes too long
    #[arg(long, value_name = "BYTES", default_value_t = 128 * 1024 * 1024)]
    pub(super) max_request_body_bytes_inflight: usize,

    /// The maximum number of reads of past states at a time; more wait, and are answered with 429 if that takes longer
    /// than a request may
    #[arg(long, value_name = "READS", default_value_t = 4)]
    pub(super) asof_max_concurrent: usize,

    /// The maximum number of connections of authenticated clients; requests on further ones are answered with 429
    #[arg(long, value_name = "CONNECTIONS", default_value_t = server::Limits::default().connections)]
    pub(super) max_connections: usize,

    /// The maximum number of connections of clients that have not authenticated yet. A further connection closes the
    /// oldest one of the address that has the most
    #[arg(long, value_name = "CONNECTIONS", default_value_t = server::Limits::default().unauthenticated_connections)]
    pub(super) max_unauthenticated_connections: usize,

    /// The total size of response data that clients have not read yet, in bytes, except for system:masters. When it is
    /// exceeded, connections of the user with the most are closed
    #[arg(long, value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes)]
    pub(super) max_unsent_response_bytes: usize,

    /// The size of response data that may wait on one connection, in bytes. When it is exceeded, the largest responses
    /// that nobody reads are cut off
    #[arg(long, value_name = "BYTES", default_value_t = server::Limits::default().unsent_bytes_of_connection)]
    pub(super) max_unsent_response_bytes_per_connection: usize,

    /// The time after which a response or watch is cut off if its client reads nothing of it
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = positive_duration)]
    pub(super) response_progress_timeout: Duration,

    /// The time for which a server keeps serving after SIGTERM or SIGINT while /readyz fails, so that load balancers
    /// notice before it stops listening
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) shutdown_delay_duration: Duration,

    /// The time that requests in flight have to finish once the server has stopped listening
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(super) shutdown_grace_period: Duration,

    /// Enables or disables features: APIServerIdentity, StorageVersionAPI [default: both are enabled]
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = FeatureGates::parse)]
    pub(super) feature_gates: FeatureGates,

    /// Whether /console/ is served, a page for browsers whose files hold no data: on, off, or auto, which is on if the
    /// server listens on a loopback address
    #[arg(long, value_name = "auto|on|off", default_value = "auto", value_parser = console)]
    pub(super) console: Console,

    /// The path to show in the line `export KUBECONFIG=`, when users know the file by another path, such as that of a
    /// volume of a container
    #[arg(long, value_name = "PATH")]
    pub(super) kubeconfig_shown_as: Option<PathBuf>,
}

impl GenericArgs {
    pub fn apply(self, config: &mut Config) {
        config.advertise_address = self.advertise_address;
        config.console = self.console;
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
            asof_max_concurrent: self.asof_max_concurrent,
            ..config.limits
        };
    }
}

/// Parses `--goaway-chance` within upstream's bounds.
fn goaway_chance(text: &str) -> Result<f64, String> {
    let chance = text.parse::<f64>().ok().filter(|chance| (0.0..=0.02).contains(chance));
    chance.ok_or_else(|| "cannot be less than 0 or greater than 0.02".to_owned())
}

fn console(text: &str) -> Result<Console, String> {
    match text {
        "auto" => Ok(Console::Auto),
        "on" => Ok(Console::On),
        "off" => Ok(Console::Off),
        _ => Err("has to be auto, on or off".to_owned()),
    }
}
