//! The flags about where Services are reached.

use clap::{ArgAction, Args};

use super::switch;
use crate::api::service_routes::{Config, FixedAddress, FixedAddresses, Routing, parse_fixed};

#[derive(Clone, Debug, Args)]
pub struct ServiceRouteArgs {
    /// Whether webhooks of Services are called at ready endpoints, from EndpointSlices, and not at the cluster IP
    #[arg(long, env = "ROWPLANE_ENABLE_AGGREGATOR_ROUTING", value_name = "BOOL", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    enable_aggregator_routing: bool,

    /// Where a Service is reached, by webhooks and by its proxy, whatever its objects say: for a server that does not reach the cluster's network.
    /// PORT is the Service's, by number or name; without one, the address is for all of its ports
    #[arg(long, env = "ROWPLANE_SERVICE_ADDRESS", value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT", value_delimiter = ',', value_parser = parse_fixed)]
    service_address: Vec<FixedAddress>,
}

impl ServiceRouteArgs {
    pub fn into_config(self) -> Config {
        let routing = match self.enable_aggregator_routing {
            true => Routing::Endpoints,
            false => Routing::ClusterIp,
        };
        Config { routing, fixed: FixedAddresses::new(self.service_address) }
    }
}
