//! Network policies, ingress classes, endpoint slices (`pkg/apis/{networking,discovery}/v1/defaults.go`).

use super::set::{if_absent, is_zero, part};
use crate::fields::ObjectMap;
use crate::tree::json;

pub(super) fn policy_port(port: &mut ObjectMap) {
    if_absent(port, "protocol", "TCP");
}

pub(super) fn policy(policy: &mut ObjectMap) {
    let Some(spec) = part(policy, "spec") else { return };
    if is_zero(spec, "policyTypes") {
        let types = if is_zero(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        spec.insert("policyTypes", types);
    }
}

pub(super) fn ingress_class(class: &mut ObjectMap) {
    if let Some(parameters) = part(class, "spec").and_then(|spec| part(spec, "parameters")) {
        if_absent(parameters, "scope", "Cluster");
    }
}

pub(super) fn endpoint_port(port: &mut ObjectMap) {
    if_absent(port, "name", "");
    if_absent(port, "protocol", "TCP");
}
