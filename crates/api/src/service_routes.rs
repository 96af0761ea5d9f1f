//! Addresses of Services, for webhooks of admission and of conversion that name a Service.
//!
//! A Service is reached as kube-apiserver reaches it (apiserver's `pkg/util/proxy`), at the cluster IP or, with
//! `--enable-aggregator-routing`, at a ready endpoint; before either, at the address that `--service-address` gives it,
//! for servers that cannot reach the cluster's network.

mod availability;
mod fixed;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use rand::seq::SliceRandom as _;

pub use self::availability::Problem;
pub use self::fixed::{FixedAddress, FixedAddresses, parse_fixed};
use crate::cache::{Cache, Range, State};
use crate::egress::{Egress, Network, Route};
use crate::random::Random;
use crate::runtime::Runtime;
use crate::schema::names::Gvr;
use crate::storage::ResourceId;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The label of an EndpointSlice with the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The resources whose numbers [`ServiceRoutes::new`] takes.
pub const RESOURCES: [Gvr; 2] =
    [Gvr::fixed("v1", "services"), Gvr::fixed("discovery.k8s.io/v1", "endpointslices")];

/// How Services are reached that have no fixed address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    #[default]
    ClusterIp,
    Endpoints,
}

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub routing: Routing,
    pub fixed: FixedAddresses,
}

/// A port of a Service.
#[derive(Clone, Copy, Debug)]
pub struct ServicePort<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub port: u16,
}

/// Finds the addresses of Services.
pub struct ServiceRoutes {
    config: Config,
    cache: Cache,
    random: Random,
    services: Option<ResourceId>,
    slices: Option<ResourceId>,
    /// The address at which this server listens, which is that of the Service `kubernetes`.
    own: Option<SocketAddr>,
    /// The way to the cluster's network.
    egress: Egress,
}

impl ServiceRoutes {
    pub fn new(
        config: Config,
        cache: Cache,
        [services, slices]: [Option<ResourceId>; 2],
        runtime: &Runtime,
        own: Option<SocketAddr>,
    ) -> Self {
        let (random, egress) = (runtime.random.clone(), runtime.egresses.to(Network::Cluster));
        Self { config, cache, random, services, slices, own, egress }
    }

    /// The way to a Service's port, with at least one address; or upstream's words for why there is none. The address that a
    /// flag gives, and this server's own, are not reached through the cluster's network.
    pub fn route(&self, to: ServicePort<'_>) -> Result<Route, String> {
        let state = self.cache.any();
        let service = self.service(&state, to)?;
        if let Some(address) = self.config.fixed.get(to, service.as_ref()) {
            return Ok(Route::of(address.to_owned(), Egress::default()));
        }
        if let (Some(own), ServicePort { namespace: "default", name: "kubernetes", port: 443 }) =
            (self.own, to)
        {
            return Ok(Route::of(own.to_string(), Egress::default()));
        }
        let service = service.ok_or_else(|| format!("service \"{}\" not found", to.name))?;
        let addresses = match self.config.routing {
            Routing::ClusterIp => vec![cluster_address(&service, to)?],
            Routing::Endpoints => {
                let slices = self.slices(&state, to)?;
                self.random.with(|rng| {
                    let shuffle = |addresses: &mut [String]| addresses.shuffle(rng);
                    endpoints(&service, to, &slices, shuffle)
                })?
            }
        };
        Ok(Route { addresses, egress: self.egress.clone() })
    }

    /// The host and the port that a flag gives to a Service.
    pub(super) fn fixed(&self, to: ServicePort<'_>, service: &ObjectMap) -> Option<(String, String)> {
        let (host, port) = self.config.fixed.get(to, Some(service))?.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some((host.to_owned(), port.to_owned()))
    }

    fn service(&self, state: &State, to: ServicePort<'_>) -> Result<Option<ObjectMap>, String> {
        let found = self.services.and_then(|services| state.get(services, to.namespace, to.name));
        found.map(|service| service.to_map().map_err(|error| error.to_string())).transpose()
    }

    fn slices(&self, state: &State, to: ServicePort<'_>) -> Result<Vec<ObjectMap>, String> {
        let Some(slices) = self.slices else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for slice in state.objects(slices).range(&Range::of(Some(to.namespace))) {
            let slice = slice.to_map().map_err(|error| error.to_string())?;
            if fields::text(&slice, &["metadata", "labels", SERVICE_NAME]) == to.name {
                found.push(slice);
            }
        }
        Ok(found)
    }
}

/// Upstream's `ResolveCluster`.
fn cluster_address(service: &ObjectMap, to: ServicePort<'_>) -> Result<String, String> {
    let text = |field| fields::text(service, &["spec", field]);
    let host = match text("type") {
        "" | "ClusterIP" if text("clusterIP") == "None" => {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        "" | "ClusterIP" | "NodePort" | "LoadBalancer" => {
            port_name(service, to)?;
            text("clusterIP")
        }
        "ExternalName" => text("externalName"),
        other => return Err(format!("unsupported service type \"{other}\"")),
    };
    Ok(host_and_port(host, u64::from(to.port)))
}

/// Upstream's `ResolveEndpoint`, which answers one ready endpoint by chance: here they follow each other in a chance order,
/// those of the Service's first family before all others.
fn endpoints(
    service: &ObjectMap,
    to: ServicePort<'_>,
    slices: &[ObjectMap],
    mut shuffle: impl FnMut(&mut [String]),
) -> Result<Vec<String>, String> {
    match fields::text(service, &["spec", "type"]) {
        "" | "ClusterIP" | "NodePort" | "LoadBalancer" => {}
        other => return Err(format!("unsupported service type \"{other}\"")),
    }
    let name = port_name(service, to)?;
    let family = fields::items(service, &["spec", "ipFamilies"]).first().and_then(Value::as_str);
    let is_first =
        |slice: &&ObjectMap| family.is_none_or(|family| fields::text(slice, &["addressType"]) == family);
    let (first, others): (Vec<_>, Vec<_>) = slices.iter().partition(is_first);
    let mut addresses = Vec::new();
    for family in [first, others] {
        let mut of_family: Vec<String> =
            family.into_iter().flat_map(|slice| ready_addresses(slice, name)).collect();
        shuffle(&mut of_family);
        addresses.extend(of_family);
    }
    match addresses.is_empty() {
        true => Err(format!("no endpoints available for service \"{}\"", to.name)),
        false => Ok(addresses),
    }
}

/// The name of a Service's port, empty if it has none.
fn port_name<'a>(service: &'a ObjectMap, to: ServicePort<'_>) -> Result<&'a str, String> {
    let ports = fields::items(service, &["spec", "ports"]);
    let is_meant = |port: &&Value| port.get("port").and_then(Value::as_u64) == Some(u64::from(to.port));
    let port = ports.iter().find(is_meant);
    let port =
        port.ok_or_else(|| format!("no service port {} found for service \"{}\"", to.port, to.name))?;
    Ok(port.get("name").and_then(Value::as_str).unwrap_or_default())
}

/// The addresses of the slice's ready endpoints at its port of this name.
fn ready_addresses(slice: &ObjectMap, port: &str) -> Vec<String> {
    let is_meant = |found: &&Value| found.get("name").and_then(Value::as_str) == Some(port);
    let number = |found: &Value| found.get("port").and_then(Value::as_u64);
    let ports = fields::items(slice, &["ports"]).iter();
    let Some(number) = ports.filter(is_meant).find_map(number) else { return Vec::new() };
    let is_ready = |endpoint: &&Value| {
        endpoint.get("conditions").and_then(|conditions| conditions.get("ready")) != Some(&Value::Bool(false))
    };
    let address = |endpoint: &Value| {
        Some(host_and_port(endpoint.get("addresses")?.as_array()?.first()?.as_str()?, number))
    };
    fields::items(slice, &["endpoints"]).iter().filter(is_ready).filter_map(address).collect()
}

fn host_and_port(host: &str, port: u64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
