//! Metrics of claims: how many were made or refused, and how much of the ranges is claimed.

use std::net::IpAddr;
use std::time::Instant;

use super::Claim;
use super::wants::Want;
use crate::Cluster;
use crate::cache::Range;
use crate::config::service_ranges::{Family, Network};
use crate::metrics::{Choice, Metrics, RangeUse, ServiceRanges};
use crate::schema::names::Gvr;
use crate::storage::ResourceId;

/// A claim that is being made.
pub(super) struct Measured {
    want: Want,
    began: Instant,
    /// The network of the address, once it is known.
    pub network: Option<Network>,
}

impl Measured {
    pub fn start(want: Want) -> Self {
        Self { want, began: Instant::now(), network: None }
    }

    /// Counts what came of it. Of addresses that are in no network, nothing is counted, as upstream does not.
    pub fn end(self, is_claimed: bool, metrics: &Metrics) {
        let choice = if matches!(self.want, Want::This(_)) { Choice::Static } else { Choice::Dynamic };
        let is_port = matches!(self.want, Want::This(Claim::Port(_)) | Want::AnyPort);
        if is_port {
            return metrics.port_asked(choice, is_claimed);
        }
        let Some(network) = self.network else { return };
        match is_claimed {
            true => metrics.address_allocated(&network.to_string(), choice, self.began.elapsed()),
            false => metrics.address_refused(&network.to_string(), choice),
        }
    }
}

impl Cluster {
    /// How much of the ranges of Services is claimed in this server's state.
    pub fn service_ranges(&self) -> ServiceRanges {
        let state = self.cache.any();
        // The names of claims are what is claimed.
        let names = |resource: ResourceId| -> Vec<String> {
            let claims = state.objects(resource);
            claims.range(&Range::of(None)).map(|claim| claim.name().to_owned()).collect()
        };
        let addresses = self.resources.get(&Gvr::fixed("networking.k8s.io/v1", "ipaddresses"));
        let addresses: Vec<IpAddr> = addresses
            .map(|resource| names(resource.id))
            .into_iter()
            .flatten()
            .filter_map(|name| name.parse().ok())
            .collect();
        let used =
            |allocated: u128, size: u128| RangeUse { allocated, available: size.saturating_sub(allocated) };
        let open = [Family::V4, Family::V6].map(|family| self.open_networks(&state, family).networks);
        let networks = open.into_iter().flatten().map(|network| {
            let allocated = addresses.iter().filter(|address| network.contains(**address)).count();
            (network.to_string(), used(allocated as u128, network.size()))
        });
        let range = &self.config.services.node_ports;
        let is_in_range = |name: &String| name.parse().is_ok_and(|port: u16| range.contains(&port));
        let ports = names(self.hidden.node_ports.id()).iter().filter(|name| is_in_range(name)).count();
        ServiceRanges { networks: networks.collect(), node_ports: used(ports as u128, range.len() as u128) }
    }
}
