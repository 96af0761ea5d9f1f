//! The addresses and ports that a Service still needs, and those that it holds.

use std::collections::{HashMap, HashSet};

use super::families::{families, texts};
use super::{Claim, Reason};
use crate::config::service_ranges::Family;
use crate::kinds::core::service::normal_form::checks_health;
use crate::kinds::core::service::normal_form::has_addresses;
use crate::kinds::core::service::normal_form::has_node_ports;
use crate::kinds::core::service::normal_form::ports_mut;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// The address or port to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    This(Claim),
    AnyAddress(Family),
    AnyPort,
}

/// The field of the spec that gets the claimed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedField {
    Address(usize),
    Port(usize),
    HealthCheckPort,
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub place: WantedField,
    pub want: Want,
    pub reason: Reason,
}

impl WantedField {
    pub fn put(self, spec: &mut ObjectMap, claim: Claim) {
        match (self, claim) {
            (Self::Address(index), Claim::Address(address)) => {
                let text = Value::from(address.to_string());
                if index == 0 {
                    spec.insert("clusterIP", text.clone());
                }
                let list = spec.entry("clusterIPs").or_insert_with(|| json!([]));
                if !list.is_array() {
                    *list = json!([]);
                }
                let Value::Array(list) = list else { return };
                match list.get_mut(index) {
                    Some(slot) => *slot = text,
                    None => list.push(text),
                }
            }
            (Self::Port(index), Claim::Port(number)) => {
                if let Some(port) = ports_mut(spec).nth(index) {
                    port.insert("nodePort", number.into());
                }
            }
            (Self::HealthCheckPort, Claim::Port(number)) => {
                spec.insert("healthCheckNodePort", number.into());
            }
            _ => {}
        }
    }
}

/// The claims that the Service needs, in the order in which upstream allocates.
pub(super) fn of(spec: &ObjectMap, old: Option<&ObjectMap>) -> Vec<Wanted> {
    let had = old.map(held).unwrap_or_default();
    let mut wanted = addresses(spec, old, &had);
    wanted.extend(ports(spec, &had));
    if checks_health(spec) {
        let want = match number(spec.get("healthCheckNodePort")) {
            Some(port) if had.contains(&Claim::Port(port)) => None,
            Some(port) => Some(Want::This(Claim::Port(port))),
            None => Some(Want::AnyPort),
        };
        let place = WantedField::HealthCheckPort;
        wanted.extend(want.map(|want| Wanted { place, want, reason: Reason::HealthCheckPort }));
    }
    wanted
}

fn addresses(spec: &ObjectMap, old: Option<&ObjectMap>, had: &[Claim]) -> Vec<Wanted> {
    let headless = |spec: &ObjectMap| texts(spec, "clusterIPs").first() == Some(&"None");
    if !has_addresses(spec) || headless(spec) || old.is_some_and(headless) {
        return Vec::new();
    }
    let sent = texts(spec, "clusterIPs");
    let want = |(index, family): (usize, Family)| {
        let want = match sent.get(index).and_then(|text| text.parse().ok()).map(Claim::Address) {
            Some(claim) if had.contains(&claim) => return None,
            Some(claim) => Want::This(claim),
            None => Want::AnyAddress(family),
        };
        Some(Wanted { place: WantedField::Address(index), want, reason: Reason::Addresses })
    };
    families(spec).into_iter().enumerate().filter_map(want).collect()
}

/// The node ports that are needed. Ports of the same number but different protocols share a node port; see
/// [`share_ports`].
fn ports(spec: &ObjectMap, had: &[Claim]) -> Vec<Wanted> {
    let on_demand = spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    if !has_node_ports(spec) {
        return Vec::new();
    }
    let list = fields::items(spec, &["ports"]);
    let asked: Vec<Option<u16>> = list.iter().map(|port| number(port.get("nodePort"))).collect();
    let mut claimed: HashSet<u16> = had.iter().filter_map(Claim::port).collect();
    // Port numbers that have requested a node port, or will get one.
    let with_port = list.iter().zip(&asked).filter(|(_, asked)| asked.is_some());
    let mut lenders: HashSet<&Value> = with_port.filter_map(|(port, _)| port.get("port")).collect();
    let mut wanted = Vec::new();
    for (index, port) in list.iter().enumerate() {
        let own = port.get("port").unwrap_or(&Value::Null);
        let lent = lenders.contains(own);
        let want = match asked[index] {
            Some(port) if !claimed.insert(port) => None,
            Some(port) => Some(Want::This(Claim::Port(port))),
            None if lent || !on_demand => None,
            None => {
                lenders.insert(own);
                Some(Want::AnyPort)
            }
        };
        wanted.extend(want.map(|want| Wanted {
            place: WantedField::Port(index),
            want,
            reason: Reason::Port(index),
        }));
    }
    wanted
}

/// Gives ports of the same number but different protocols the same node port.
pub(super) fn share_ports(spec: &mut ObjectMap) {
    let on_demand = spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    if !has_node_ports(spec) || !on_demand {
        return;
    }
    let list = fields::items(spec, &["ports"]).iter();
    let lender = |port: &Value| Some((port.get("port")?.clone(), number(port.get("nodePort"))?));
    // Of equal numbers the first counts: the list is read backwards, and later entries replace earlier ones.
    let numbers: HashMap<Value, u16> = list.rev().filter_map(lender).collect();
    for port in ports_mut(spec) {
        if number(port.get("nodePort")).is_none()
            && let Some(number) = port.get("port").and_then(|own| numbers.get(own))
        {
            port.insert("nodePort", (*number).into());
        }
    }
}

/// Everything that the Service holds.
pub(super) fn held(spec: &ObjectMap) -> Vec<Claim> {
    let addresses =
        texts(spec, "clusterIPs").into_iter().filter_map(|text| text.parse().ok()).map(Claim::Address);
    let ports = fields::items(spec, &["ports"]).iter().map(|port| port.get("nodePort"));
    let ports = ports.chain([spec.get("healthCheckNodePort")]).filter_map(number);
    let mut held: Vec<Claim> = if has_addresses(spec) { addresses.collect() } else { Vec::new() };
    let mut seen = HashSet::new();
    held.extend(ports.filter(|port| seen.insert(*port)).map(Claim::Port));
    held
}

/// A port number; 0 means none. One that does not fit in 16 bits becomes 1, which is then refused as out of range.
fn number(value: Option<&Value>) -> Option<u16> {
    let number = value?.as_i64().filter(|number| *number != 0)?;
    Some(u16::try_from(number).unwrap_or(1))
}
