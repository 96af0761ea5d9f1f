//! Services (`pkg/apis/core/v1/defaults.go`). Addresses and ports are allocated elsewhere.

use super::set::{if_absent, if_zero, is_zero, is_zero_value, part, structs, text};
use crate::fields::{self, ObjectMap};
use crate::tree::{Value, json};

const CLIENT_IP_SECONDS: i64 = 10_800;

pub(super) fn service(service: &mut ObjectMap) {
    let Some(spec) = part(service, "spec") else { return };
    affinity(spec);
    if_zero(spec, "type", "ClusterIP");
    structs(spec, "ports").for_each(port);
    let kind = text(spec, "type").to_owned();
    let reachable = match &*kind {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !fields::items(spec, &["externalIPs"]).is_empty(),
        _ => false,
    };
    if reachable {
        if_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        if_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind != "LoadBalancer" {
        return;
    }
    if_absent(spec, "allocateLoadBalancerNodePorts", true);
    let balancer = part(service, "status").and_then(|status| part(status, "loadBalancer"));
    for ingress in balancer.into_iter().flat_map(|balancer| structs(balancer, "ingress")) {
        if !is_zero(ingress, "ip") {
            if_absent(ingress, "ipMode", "VIP");
        }
    }
}

fn affinity(spec: &mut ObjectMap) {
    if_zero(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.shift_remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = fields::at(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
            if seconds.is_none_or(Value::is_null) {
                let config = json!({"clientIP": {"timeoutSeconds": CLIENT_IP_SECONDS}});
                spec.insert("sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
}

fn port(port: &mut ObjectMap) {
    if port.get("targetPort").is_none_or(is_zero_value) {
        let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
        port.insert("targetPort", number);
    }
    if_zero(port, "protocol", "TCP");
}
