//! Locations that proxies lead to: the first address of a Pod, an endpoint of a Service, a Node's kubelet or another port of
//! the Node.

use std::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt as _;

use super::{ENDPOINTS, Location, NODES, PODS, SERVICES};
use crate::cache::State;
use crate::egress::Egress;
use crate::error::Error;
use crate::gotext::quote;
use crate::relay::Address;
use crate::request::Request;
use crate::service_routes::ServicePort;
use crate::tree::Value;
use crate::{Api, ObjectMap, fields};

/// The characters that a path of Go's `URL` escapes.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// `[scheme:]name[:port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id<'a> {
    /// `http`, `https` or empty.
    scheme: &'a str,
    name: &'a str,
    port: &'a str,
}

impl<'a> Id<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match *parts {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let is_valid = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        is_valid.then_some(Self { scheme, name, port })
    }
}

/// The path that a proxy asks for, cleaned and escaped as Go does; empty if there is none.
pub fn path(options: &ObjectMap) -> String {
    let path = fields::text(options, &["path"]);
    if path.is_empty() {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    let joined = kept.join("/");
    let slash = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{slash}", utf8_percent_encode(&joined, &ESCAPED))
}

impl Api {
    /// The location that a proxy leads to. `query` is the client's.
    pub async fn proxy_location(
        &self,
        request: &Request<'_>,
        options: &ObjectMap,
        query: &str,
    ) -> Result<Location, Error> {
        let (text, namespace) = (request.target.name, request.target.namespace);
        let plural = &*request.target.resource.definition.plural;
        let kind = plural.strip_suffix('s').unwrap_or(plural);
        let id = Id::parse(text)
            .ok_or_else(|| Error::BadRequest(format!("invalid {kind} request {}", quote(text))))?;
        let state = self.cache.fresh().await?;
        let address = match kind {
            "pod" => self.pod_address(&state, namespace, id)?,
            "service" => self.service_address(&state, namespace, id, text)?,
            _ => self.node_address(&state, id).await?,
        };
        Ok(Location { address, path: path(options), query: query.to_owned(), takes_websockets: false })
    }

    fn pod_address(&self, state: &State, namespace: &str, id: Id<'_>) -> Result<Address, Error> {
        let pod = self.stored(state, &PODS, namespace, id.name)?;
        let first = fields::items(&pod, &["spec", "containers"]).iter().find_map(|container| {
            let ports = container.get("ports").and_then(Value::as_array)?;
            ports.first()?.get("containerPort")?.as_u64()
        });
        let port = match (id.port, first) {
            ("", Some(first)) => first.to_string(),
            (port, _) => port.to_owned(),
        };
        let host = pod_addresses(&pod).next().unwrap_or_default().to_owned();
        if !host.parse().is_ok_and(|address| is_global_unicast(&address)) {
            return Err(not_allowed());
        }
        Ok(self.anonymous(id.scheme, host, port))
    }

    /// An endpoint by chance whose Pod is there and has this address, as upstream chooses; or the address that
    /// `--service-address` gives to the Service.
    fn service_address(
        &self,
        state: &State,
        namespace: &str,
        id: Id<'_>,
        text: &str,
    ) -> Result<Address, Error> {
        let unavailable = |message: String| Error::Unavailable { message, retry_after: 0 };
        let mut port = id.port.to_owned();
        if let Ok(number) = id.port.parse::<i64>() {
            let service = self.stored(state, &SERVICES, namespace, id.name)?;
            let mut ports = fields::items(&service, &["spec", "ports"]).iter();
            let found = ports.find(|port| port.get("port").and_then(Value::as_i64) == Some(number));
            let found = found.ok_or_else(|| {
                let name = quote(id.name);
                unavailable(format!("no service port {number} found for service {name}"))
            })?;
            port = found.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let number = u16::try_from(number).unwrap_or_default();
            let to = ServicePort { namespace, name: id.name, port: number };
            if let Some((host, port)) = self.service_routes.fixed(to, &service) {
                return Ok(Address { egress: Egress::default(), ..self.anonymous(id.scheme, host, port) });
            }
        }
        let endpoints = self.stored(state, &ENDPOINTS, namespace, id.name)?;
        let subsets = fields::items(&endpoints, &["subsets"]);
        if subsets.is_empty() {
            let name = quote(id.name);
            return Err(unavailable(format!("no endpoints available for service {name}")));
        }
        let found = any_of(self, subsets).find_map(|subset| {
            let (addresses, ports) = (list(subset, "addresses"), list(subset, "ports"));
            let port = ports
                .iter()
                .find(|found| found.get("name").and_then(Value::as_str).unwrap_or_default() == port)?;
            let port = port.get("port")?.as_u64()?;
            let address =
                any_of(self, addresses).find(|address| self.is_of_pod(state, namespace, address))?;
            Some((address.get("ip")?.as_str()?.to_owned(), port.to_string()))
        });
        let (host, port) = found
            .ok_or_else(|| unavailable(format!("no endpoints available for service {}", quote(text))))?;
        Ok(self.anonymous(id.scheme, host, port))
    }

    /// Whether an address of endpoints is that of a Pod in this namespace: others could lead anywhere.
    fn is_of_pod(&self, state: &State, namespace: &str, address: &Value) -> bool {
        let Some(target) = address.get("targetRef").and_then(Value::as_object) else { return false };
        let text = |field| fields::text(target, &[field]);
        if text("kind") != "Pod" || text("namespace") != namespace {
            return false;
        }
        let ip = address.get("ip").and_then(Value::as_str).unwrap_or_default();
        let pod = self.stored(state, &PODS, namespace, text("name"));
        pod.is_ok_and(|pod| pod_addresses(&pod).any(|address| address == ip))
    }

    async fn node_address(&self, state: &State, id: Id<'_>) -> Result<Address, Error> {
        let node = self.stored(state, &NODES, "", id.name)?;
        let kubelet = self.kubelets.address(&node).await?;
        // Who connects to nothing looks nothing up.
        let checked = match kubelet.egress.is_closed() {
            true => Vec::new(),
            false => checked(&kubelet.host).await?,
        };
        if id.port.is_empty() || id.port == kubelet.port {
            return Ok(Address { checked, ..kubelet });
        }
        Ok(Address { checked, ..self.anonymous(id.scheme, kubelet.host, id.port.to_owned()) })
    }

    fn anonymous(&self, scheme: &str, host: String, port: String) -> Address {
        let tls = (scheme == "https").then(|| self.kubelets.anonymous());
        Address { host, port, tls, checked: Vec::new(), egress: self.kubelets.egress() }
    }
}

/// The addresses of a host, all of which have to lead to where others than this server get, too.
async fn checked(host: &str) -> Result<Vec<IpAddr>, Error> {
    let found: Vec<IpAddr> = match tokio::net::lookup_host((host, 0)).await {
        Ok(found) => found.map(|address| address.ip()).collect(),
        Err(_) => return Err(Error::BadRequest(format!("lookup {host}: no such host"))),
    };
    if found.is_empty() {
        return Err(Error::BadRequest("no addresses for hostname".to_owned()));
    }
    if found.iter().all(is_global_unicast) { Ok(found) } else { Err(not_allowed()) }
}

fn not_allowed() -> Error {
    Error::BadRequest("address not allowed".to_owned())
}

fn list<'a>(parent: &'a Value, name: &str) -> &'a [Value] {
    parent.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// All of these, beginning somewhere.
fn any_of<'a>(api: &Api, all: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    let first = match all.len() {
        0 => 0,
        length => api.runtime.random.with(|rng| rng.random_range(0..length)),
    };
    all[first..].iter().chain(&all[..first])
}

/// The addresses of a Pod, the first of which is its own.
fn pod_addresses(pod: &ObjectMap) -> impl Iterator<Item = &str> {
    let all = fields::items(pod, &["status", "podIPs"]).iter();
    all.filter_map(|address| address.get("ip").and_then(Value::as_str))
}

/// Go's `IsGlobalUnicast`: private ranges count, too.
fn is_global_unicast(address: &IpAddr) -> bool {
    let address = address.to_canonical();
    let is_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !is_local && !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn ids_have_up_to_three_parts() {
        let id = |scheme, name, port| Some(Id { scheme, name, port });
        for (text, want) in [
            ("p", id("", "p", "")),
            ("p:80", id("", "p", "80")),
            ("https:p:web", id("https", "p", "web")),
            ("https:p:", id("https", "p", "")),
            (":p:80", id("", "p", "80")),
            ("ftp:p:80", None),
            ("a:b:c:d", None),
            (":80", None),
        ] {
            assert_eq!(Id::parse(text), want, "{text}");
        }
    }

    #[test]
    fn paths_are_cleaned_and_escaped() {
        for (given, want) in [
            ("", ""),
            ("/", "/"),
            ("/a/", "/a/"),
            ("/a//b/../c d", "/a/c%20d"),
            ("/a?b#c%é", "/a%3Fb%23c%25%C3%A9"),
            ("/../..", "/"),
        ] {
            let Value::Object(options) = json!({"path": given}) else { unreachable!("an object") };
            assert_eq!(path(&options), want, "{given}");
        }
    }

    #[test]
    fn local_addresses_are_not_proxied_to() {
        for (text, want) in [
            ("10.1.2.3", true),
            ("fd00::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(is_global_unicast(&text.parse().expect("an address")), want, "{text}");
        }
    }
}
