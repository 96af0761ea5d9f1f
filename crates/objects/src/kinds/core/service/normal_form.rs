//! Fields that a new version of a Service inherits from the old one, and fields that are dropped with its type
//! (upstream's `patchAllocatedValues`, `normalizeClusterIPs` and `dropTypeDependentFields`).

use std::collections::{HashMap, HashSet};

use crate::fields;
use crate::kinds::prelude::*;
use crate::tree::json;

/// In a new Service, `clusterIPs` follows from `clusterIP` if it is absent.
pub fn begin_create(service: &mut ObjectMap) {
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    if has(spec, "clusterIP") && !has(spec, "clusterIPs") {
        let addresses = json!([spec["clusterIP"]]);
        spec.insert("clusterIPs", addresses);
    }
}

/// Allocated values are restored before anything else sees the new version.
pub fn begin_update(new: &mut ObjectMap, old: &ObjectMap) {
    if let (Some(Value::Object(new)), Some(old)) = (new.get_mut("spec"), fields::object(old, "spec")) {
        take_over(new, old);
        normalize(new, old);
    }
}

pub fn prepare_update(new: &mut ObjectMap, old: &ObjectMap) {
    if let (Some(Value::Object(new)), Some(old)) = (new.get_mut("spec"), fields::object(old, "spec")) {
        drop_what_the_type_had(new, old);
    }
    drop_internal_policy(new);
    if fields::object(new, "spec").is_some_and(|spec| !is_balanced(spec))
        && let Some(Value::Object(status)) = new.get_mut("status")
    {
        status.insert("loadBalancer", json!({}));
    }
}

/// Services that only stand for a name show no policy for traffic inside, whatever they were sent or had before
/// (`defaultOnReadInternalTrafficPolicy`). What is no policy is left to validation.
pub fn drop_internal_policy(service: &mut ObjectMap) {
    const POLICY: &str = "internalTrafficPolicy";
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    if !has_addresses(spec) && matches!(fields::text(spec, &[POLICY]), "Cluster" | "Local") {
        spec.shift_remove(POLICY);
    }
}

/// Whether a Service needs something.
type Needs = fn(&ObjectMap) -> bool;

fn drop_what_the_type_had(new: &mut ObjectMap, old: &ObjectMap) {
    let kinds: [(Needs, &[&[&str]]); 4] = [
        (has_addresses, &[&["clusterIP", "clusterIPs"], &["ipFamilies"], &["ipFamilyPolicy"]]),
        (checks_health, &[&["healthCheckNodePort"]]),
        (is_balanced, &[&["allocateLoadBalancerNodePorts"], &["loadBalancerClass"]]),
        (is_reachable, &[&["externalTrafficPolicy"]]),
    ];
    for (needs, groups) in kinds {
        if !needs(old) || needs(new) {
            continue;
        }
        for group in groups {
            if group.iter().all(|name| new.get(name) == old.get(name)) {
                group.iter().for_each(|name| drop(new.shift_remove(name)));
            }
        }
    }
    let before: HashSet<i64> = node_ports(old).into_iter().collect();
    if has_node_ports(old) && !has_node_ports(new) && node_ports(new).iter().all(|port| before.contains(port))
    {
        for port in ports_mut(new) {
            port.shift_remove("nodePort");
        }
    }
}

/// Restores allocated values that the client has left out: it does not mean to release them.
fn take_over(new: &mut ObjectMap, old: &ObjectMap) {
    if has_addresses(old) && has_addresses(new) {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if !has(new, name) {
                fields::restore(new, old, name);
            }
        }
    }
    if is_given_ports(old) && is_given_ports(new) {
        let (before, now) = (node_ports(old), node_ports(new));
        let name = |port: &Value| port.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let by_name: HashMap<String, i64> =
            fields::items(old, &["ports"]).iter().map(|port| (name(port), node_port(port))).collect();
        for port in ports_mut(new) {
            let value = Value::Object(port.clone());
            let known = by_name.get(&name(&value)).copied().unwrap_or(0);
            let used = before.contains(&known) && now.contains(&known);
            if node_port(&value) == 0 && known != 0 && !used {
                port.insert("nodePort", known.into());
            }
        }
    }
    if checks_health(old) && checks_health(new) && !has(new, "healthCheckNodePort") {
        fields::restore(new, old, "healthCheckNodePort");
    }
}

/// Follows changes of `clusterIP` by clients that do not know `clusterIPs`.
fn normalize(new: &mut ObjectMap, old: &ObjectMap) {
    let same = new.get("clusterIPs") == old.get("clusterIPs");
    let (before, now) = (fields::text(old, &["clusterIP"]), fields::text(new, &["clusterIP"]).to_owned());
    if before == now {
        if has(old, "clusterIPs") && !has(new, "clusterIPs") {
            fields::restore(new, old, "clusterIPs");
        }
    } else if same && now.is_empty() {
        new.shift_remove("clusterIPs");
    } else if same {
        new.insert("clusterIPs", json!([now]));
    }
}

fn has(spec: &ObjectMap, name: &str) -> bool {
    spec.get(name).is_some_and(|value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        value => !value.is_null(),
    })
}

fn kind(spec: &ObjectMap) -> &str {
    fields::text(spec, &["type"])
}

/// Whether Services of the type have addresses, of which `None` is one.
pub fn has_addresses(spec: &ObjectMap) -> bool {
    kind(spec) != "ExternalName"
}

pub fn has_node_ports(spec: &ObjectMap) -> bool {
    kind(spec) == "NodePort" || is_balanced(spec)
}

/// Whether the Service gets node ports that it does not name.
pub fn is_given_ports(spec: &ObjectMap) -> bool {
    let allocates = || spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool).unwrap_or(true);
    kind(spec) == "NodePort" || is_balanced(spec) && allocates()
}

fn is_balanced(spec: &ObjectMap) -> bool {
    kind(spec) == "LoadBalancer"
}

fn is_reachable(spec: &ObjectMap) -> bool {
    has_node_ports(spec) || kind(spec) == "ClusterIP" && !fields::items(spec, &["externalIPs"]).is_empty()
}

/// Whether a load balancer asks nodes whether they have pods of the Service.
pub fn checks_health(spec: &ObjectMap) -> bool {
    is_balanced(spec) && fields::text(spec, &["externalTrafficPolicy"]) == "Local"
}

fn node_port(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_i64).unwrap_or(0)
}

fn node_ports(spec: &ObjectMap) -> Vec<i64> {
    fields::items(spec, &["ports"]).iter().map(node_port).filter(|port| *port != 0).collect()
}

pub fn ports_mut(spec: &mut ObjectMap) -> impl Iterator<Item = &mut ObjectMap> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}
