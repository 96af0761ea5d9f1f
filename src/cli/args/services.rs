//! The flags about Services: their addresses and ports, and where they are reached.

use std::ops::RangeInclusive;

use clap::{ArgAction, Args};

use crate::api::config::service_ranges::Family;
use crate::api::service_routes::{self, FixedAddress, FixedAddresses, Routing, parse_fixed};
use crate::api::services::{self, Network};
use crate::cli::error::Error;
use crate::controllers::servers::kubernetes_service::Endpoints;
use crate::server::config::Config;

/// Addresses, ports and routes of Services.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Misc flags")]
pub struct ServiceArgs {
    /// The CIDR of the cluster IPs of Services; two of different families, separated by a comma, for dual stack
    #[arg(long, value_name = "CIDR", default_value = "10.0.0.0/24", value_parser = networks)]
    service_cluster_ip_range: ServiceNetworks,

    /// The ports reserved for Services of type NodePort
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-32767", value_parser = port_range)]
    service_node_port_range: RangeInclusive<u16>,

    /// The keeper of the endpoints of the Service kubernetes: lease for the servers, by their leases (master-count means
    /// the same), none for others
    #[arg(long, value_name = "TYPE", default_value = "lease", value_parser = endpoints)]
    endpoint_reconciler_type: Endpoints,

    /// Sends requests for Services to ready endpoints instead of the cluster IP
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    enable_aggregator_routing: bool,

    /// The address at which webhooks and the proxy reach a Service, for a server outside the cluster's network. PORT is
    /// a port of the Service, by number or name; without it, the address is for all ports
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT", value_delimiter = ',', value_parser = parse_fixed)]
    service_address: Vec<FixedAddress>,
}

impl ServiceArgs {
    pub fn apply(self, config: &mut Config) -> Result<(), Error> {
        if let (Some(advertised), [first, ..]) =
            (config.advertise_address, self.service_cluster_ip_range.0.as_slice())
            && self.endpoint_reconciler_type == Endpoints::Servers
            && first.family() != Family::of(advertised)
        {
            let why =
                format!("service IP family \"{first}\" must match public address family \"{advertised}\"");
            return Err(Error::Refused(why));
        }
        config.endpoints = self.endpoint_reconciler_type;
        config.services = services::Config {
            networks: self.service_cluster_ip_range.0,
            node_ports: self.service_node_port_range,
        };
        let routing = match self.enable_aggregator_routing {
            true => Routing::Endpoints,
            false => Routing::ClusterIp,
        };
        config.service_routes =
            service_routes::Config { routing, fixed: FixedAddresses::new(self.service_address) };
        Ok(())
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

fn endpoints(text: &str) -> Result<Endpoints, String> {
    match text {
        "lease" | "master-count" => Ok(Endpoints::Servers),
        "none" => Ok(Endpoints::Others),
        _ => Err("allowed values: lease, master-count, none".to_owned()),
    }
}

fn port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let range = text.split_once('-').and_then(|(first, last)| Some(port(first)?..=port(last)?));
    range.filter(|range| !range.is_empty()).ok_or_else(|| format!("{text:?} is no range of ports"))
}
