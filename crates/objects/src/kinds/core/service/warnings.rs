//! Warnings about valid Services.

use crate::kinds::behavior::warnings::address::{address, each, range};
use crate::kinds::prelude::*;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// `GetWarningsForService`.
pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    if metadata.get("annotations").key(TOPOLOGY_HINTS).is_set() {
        let mode = "service.kubernetes.io/topology-mode";
        remarks.say(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {mode} instead"));
    }
    let (kind, cluster_ip) = (spec.get("type").text(), spec.get("clusterIP").text());
    let external_name = kind == "ExternalName";
    if !matches!(cluster_ip, "" | "None") {
        each(&spec.get("clusterIPs"), remarks, address);
    }
    let external_ips = spec.get("externalIPs");
    let headless = kind == "ClusterIP" && cluster_ip == "None";
    if headless {
        headless_service(&spec, remarks);
    }
    each(&external_ips, remarks, address);
    if !external_ips.is_empty() && !headless && !external_name {
        remarks.say("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    address(&spec.get("loadBalancerIP"), remarks);
    each(&spec.get("loadBalancerSourceRanges"), remarks, range);
    if external_name && !external_ips.is_empty() {
        remarks.say(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#);
    }
    if !external_name && !spec.get("externalName").text().is_empty() {
        remarks.say(r#"spec.externalName is ignored when spec.type is not "ExternalName""#);
    }
    let distribution = spec.get("trafficDistribution");
    if distribution.text() == "PreferClose" {
        remarks.on(&distribution, r#""PreferClose" is deprecated; use "PreferSameZone""#);
    }
}

fn headless_service(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    if !spec.get("loadBalancerIP").text().is_empty() {
        remarks.say("spec.loadBalancerIP is ignored for headless services");
    }
    if !spec.get("externalIPs").is_empty() {
        remarks.say("spec.externalIPs is ignored for headless services");
    }
    if spec.get("sessionAffinity").text() != "None" {
        remarks.say("spec.SessionAffinity is ignored for headless services");
    }
}
