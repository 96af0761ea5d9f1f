//! How Pods find the servers: the Service `kubernetes` in `default`, its Endpoints and its EndpointSlice
//! (`pkg/controlplane/controller/kubernetesservice`, `pkg/controlplane/reconcilers`).
//!
//! Each server writes its address into its lease; the leader makes endpoints of the addresses of living servers.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::identity_lease_gc::{Sightings, read};
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::cache::State;
use crate::codec::object::Undecodable;
use crate::controllers::bootstrap::create::create;
use crate::controllers::bootstrap::service_cidr::{self, Inconsistency};
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
const SERVICES: Gvr = Gvr::fixed("v1", "services");
const ENDPOINTS: Gvr = Gvr::fixed("v1", "endpoints");
const SLICES: Gvr = Gvr::fixed("discovery.k8s.io/v1", "endpointslices");
/// The port of the Service, whatever the ports of the servers are.
const PORT: u16 = 443;
/// The same period as upstream's.
const PERIOD: Duration = Duration::from_secs(10);

/// The address at which this server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// `None` if the host has only loopback addresses.
    pub address: Option<IpAddr>,
    pub port: u16,
    pub endpoints: Endpoints,
}

/// The keeper of the Endpoints and the EndpointSlice `kubernetes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endpoints {
    #[default]
    Servers,
    /// Somebody else, or nobody: the servers never touch them.
    Others,
}

impl Advertised {
    /// The endpoint of a server that is bound to an address.
    pub fn new(flag: Option<IpAddr>, bound: SocketAddr, endpoints: Endpoints) -> Self {
        Self { address: address(flag, bound.ip()), port: bound.port(), endpoints }
    }
}

/// The address of the flag; without it, the bound one; if that is unspecified or loopback, the address from which
/// this host reaches others.
pub fn address(flag: Option<IpAddr>, bound: IpAddr) -> Option<IpAddr> {
    flag.or_else(|| if bound.is_unspecified() || bound.is_loopback() { outgoing(bound) } else { Some(bound) })
}

/// The address from which the host would send. Nothing is sent.
fn outgoing(family: IpAddr) -> Option<IpAddr> {
    // Addresses from networks for documentation, so that the default route is used.
    let (any, far): (IpAddr, IpAddr) = match family {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(_) => {
            (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
        }
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((far, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified() && !own.is_loopback()).then_some(own)
}

/// Restores the objects regularly, in case they were changed or deleted.
pub async fn run(api: Arc<Api>, advertised: Advertised) -> Result<(), Error> {
    let (mut sightings, mut inconsistency) = (Sightings::default(), Inconsistency::Untold);
    loop {
        tokio::time::sleep(PERIOD).await;
        service_cidr::reconcile(&api, &mut inconsistency).await?;
        reconcile(&api, &advertised, &mut sightings).await?;
    }
}

/// Creates the Service if it is missing, and updates its endpoints.
pub(in crate::controllers) async fn reconcile(
    api: &Api,
    advertised: &Advertised,
    sightings: &mut Sightings,
) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    let find = |resource: &Gvr| found(api, &state, resource);
    if find(&SERVICES) == Some(None)
        && let Some(address) = api.config.services.first_address()
    {
        create(api, &SERVICES, NAMESPACE, service(address, advertised.port)).await?;
    }
    if advertised.endpoints == Endpoints::Others {
        return Ok(());
    }
    let (Some(known), Some(known_slice)) = (find(&ENDPOINTS), find(&SLICES)) else { return Ok(()) };
    let (servers, now) = (read(api, &state), Instant::now());
    sightings.look(&servers.leases, now);
    let live = servers.leases.iter().filter(|(lease, map)| !sightings.is_dead(lease, map, now));
    let mut addresses: BTreeSet<String> = live.filter_map(|(_, map)| address_of(map)).collect();
    if servers.and_more || addresses.is_empty() && api.store.backend().shared() {
        // Unreadable leases may belong to living servers, so no known address is removed.
        addresses.extend(known.iter().flat_map(addresses_of));
    }
    addresses.extend(advertised.address.map(|address| address.to_string()));
    if addresses.is_empty() {
        return Ok(());
    }
    let (endpoints, slice) = (endpoints(&addresses, advertised.port), slice(&addresses, advertised.port));
    put(api, &ENDPOINTS, known, endpoints, &["subsets"]).await?;
    put(api, &SLICES, known_slice, slice, &["endpoints", "ports"]).await
}

/// The object `kubernetes` of a resource; `Some(None)` if it does not exist, `None` if it cannot be read and must stay.
fn found(api: &Api, state: &State, resource: &Gvr) -> Option<Option<ObjectMap>> {
    let resource = api.resources.get(resource);
    let Some(object) = resource.and_then(|resource| state.get(resource.id, NAMESPACE, NAME)) else {
        return Some(None);
    };
    let told = |error: &Undecodable| api.unreadable.tell("kubernetes-service", &object, error);
    object.to_map().inspect_err(told).ok().map(Some)
}

/// The address in a server's lease.
fn address_of(lease: &ObjectMap) -> Option<String> {
    let annotation = fields::at(lease, &["metadata", "annotations", super::identity_lease::ADDRESS])?;
    annotation.as_str().map(str::to_owned)
}

fn addresses_of(endpoints: &ObjectMap) -> impl Iterator<Item = String> {
    let subsets = fields::items(endpoints, &["subsets"]).iter();
    let addresses = subsets.flat_map(|subset| subset["addresses"].as_array().into_iter().flatten());
    addresses.filter_map(|address| address["ip"].as_str().map(str::to_owned))
}

/// Creates the object, or replaces these members if they differ.
async fn put(
    api: &Api,
    resource: &Gvr,
    found: Option<ObjectMap>,
    wanted: Value,
    members: &[&str],
) -> Result<(), Error> {
    let Some(mut object) = found else { return create(api, resource, NAMESPACE, wanted).await };
    let labels = |object: &ObjectMap| fields::at(object, &["metadata", "labels"]).cloned();
    let Value::Object(wanted) = wanted else { return Ok(()) };
    if members.iter().all(|name| object.get(name) == wanted.get(name)) && labels(&object) == labels(&wanted) {
        return Ok(());
    }
    for name in members {
        fields::restore(&mut object, &wanted, name);
    }
    fields::restore_metadata(&mut object, &wanted, "labels");
    let Some(resource) = api.resources.get(resource) else { return Ok(()) };
    let target = Target { resource, namespace: NAMESPACE, name: NAME };
    match api.update(&Request::own(Verb::Update, target), Body::Object(&object)).await {
        // Another server was faster, or the object is being deleted: the next round will handle it.
        Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn service(address: IpAddr, target_port: u16) -> Value {
    json!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": NAME, "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": PORT, "targetPort": target_port}],
            "clusterIP": address.to_string(),
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    })
}

fn endpoints(addresses: &BTreeSet<String>, port: u16) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    json!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"name": NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{
            "addresses": addresses,
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }],
    })
}

/// An EndpointSlice has addresses of one family: IPv6 only if there are no others.
fn slice(addresses: &BTreeSet<String>, port: u16) -> Value {
    let is_v6 = |address: &&String| address.contains(':');
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.iter().partition(is_v6);
    let (kind, addresses) = if v4.is_empty() { ("IPv6", v6) } else { ("IPv4", v4) };
    let endpoint = |address: &String| json!({"addresses": [address], "conditions": {"ready": true}});
    json!({
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": kind,
        "endpoints": addresses.into_iter().map(endpoint).collect::<Vec<_>>(),
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_comes_before_the_address_that_is_bound() {
        let bound: SocketAddr = "10.1.2.3:6443".parse().expect("an address");
        let flag: IpAddr = "10.9.9.9".parse().expect("an address");
        let endpoints = Endpoints::default();
        assert_eq!(
            Advertised::new(None, bound, endpoints),
            Advertised { address: Some(bound.ip()), port: 6443, endpoints }
        );
        assert_eq!(Advertised::new(Some(flag), bound, endpoints).address, Some(flag));
        let local = Advertised::new(None, "127.0.0.1:1".parse().expect("an address"), endpoints);
        assert!(local.address.is_none_or(|address| !address.is_loopback()));
    }
}
