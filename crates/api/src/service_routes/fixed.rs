//! Addresses of Services that the server is given when it starts.

use std::collections::BTreeMap;

use super::{ServicePort, port_name};
use crate::ObjectMap;

/// The ports of a Service that an address is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ports {
    All,
    Number(u16),
    Name(String),
}

/// One address, as `--service-address` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedAddress {
    namespace: String,
    name: String,
    ports: Ports,
    /// `host:port`.
    address: String,
}

/// Addresses by namespace, name and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedAddresses(BTreeMap<(String, String), BTreeMap<Ports, String>>);

impl FixedAddresses {
    /// The addresses by Service and ports; of two addresses for the same ports, the last one counts.
    pub fn new(all: impl IntoIterator<Item = FixedAddress>) -> Self {
        let mut found = BTreeMap::<_, BTreeMap<_, _>>::new();
        for FixedAddress { namespace, name, ports, address } in all {
            found.entry((namespace, name)).or_default().insert(ports, address);
        }
        Self(found)
    }

    /// The address of a port: by its number, then by its name in the Service, if there is one, then that of all ports.
    pub(super) fn get(&self, to: ServicePort<'_>, service: Option<&ObjectMap>) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let ports = self.0.get(&(to.namespace.to_owned(), to.name.to_owned()))?;
        let by_name = || {
            let name = port_name(service?, to).ok()?;
            ports.get(&Ports::Name(name.to_owned()))
        };
        let by_number = ports.get(&Ports::Number(to.port));
        by_number.or_else(by_name).or_else(|| ports.get(&Ports::All)).map(String::as_str)
    }
}

/// Reads `NAMESPACE/NAME[:PORT]=HOST:PORT`.
pub fn parse_fixed(text: &str) -> Result<FixedAddress, String> {
    let form = || "must be NAMESPACE/NAME[:PORT]=HOST:PORT".to_owned();
    let (service, address) = text.split_once('=').ok_or_else(form)?;
    let (namespace, name) = service.split_once('/').ok_or_else(form)?;
    let (name, ports) = match name.split_once(':') {
        None => (name, Ports::All),
        Some((_, "")) => return Err(form()),
        Some((name, port)) => {
            (name, port.parse().map_or_else(|_| Ports::Name(port.to_owned()), Ports::Number))
        }
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(form)?;
    if namespace.is_empty() || name.is_empty() || host.is_empty() {
        return Err(form());
    }
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(format!("{port:?} is no port"));
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(format!("an address of IPv6 is written [{host}]"));
    }
    Ok(FixedAddress {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ports,
        address: address.to_owned(),
    })
}
