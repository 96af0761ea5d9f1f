//! Services and what is around them, and nodes.

use super::Remarks;
use super::address::{address, range};
use crate::api::ObjectMap;
use crate::api::validation::at::At;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// `GetWarningsForService`.
pub(super) fn service(object: &ObjectMap, remarks: &mut Remarks<'_>) {
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

/// The status of Services and Ingresses.
pub(super) fn load_balancer(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let status = At::member(object, "status");
    for (index, ingress) in status.dig(&["loadBalancer", "ingress"]).items().enumerate() {
        let list = status.dig(&["loadBalancer", "ingress"]);
        // Upstream names the place, not the field in it.
        address(&list.index(index).holding(ingress.get("ip").value()), remarks);
    }
}

pub(super) fn ingress(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    if metadata.get("annotations").key(INGRESS_CLASS).is_set() && !spec.get("ingressClassName").is_set() {
        let class = crate::gotext::quote(INGRESS_CLASS);
        remarks.say(format!("annotation {class} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

pub(super) fn policy(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for peer in rule.get(peers).items() {
                let block = peer.get("ipBlock");
                range(&block.get("cidr"), remarks);
                each(&block.get("except"), remarks, range);
            }
        }
    }
}

/// Endpoints, but for those that upstream's controller writes.
pub(super) fn endpoints(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    if managed_by(object, "endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return;
    }
    for subset in At::member(object, "subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            for entry in subset.get(list).items() {
                address(&entry.get("ip"), remarks);
            }
        }
    }
}

pub(super) fn new_slice(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    if At::member(object, "addressType").text() == "FQDN" {
        remarks.say("spec.addressType: FQDN endpoints are deprecated");
    }
    slice(object, remarks);
}

pub(super) fn slice(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let managed = managed_by(object, "endpointslice.kubernetes.io/managed-by");
    if matches!(managed, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
        return;
    }
    for endpoint in At::member(object, "endpoints").items() {
        each(&endpoint.get("addresses"), remarks, address);
    }
}

fn managed_by<'a>(object: &'a ObjectMap, label: &str) -> &'a str {
    At::member(object, "metadata").get("labels").key(label).text()
}

pub(super) fn node(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    if spec.get("configSource").is_set() {
        remarks.on(&spec.get("configSource"), "the feature is removed");
    }
    if !spec.get("externalID").text().is_empty() {
        remarks.on(&spec.get("externalID"), "this field is deprecated, and is unused by Kubernetes");
    }
    each(&spec.get("podCIDRs"), remarks, range);
}

fn each(list: &At<'_, '_>, remarks: &mut Remarks<'_>, check: fn(&At<'_, '_>, &mut Remarks<'_>)) {
    for item in list.items() {
        check(&item, remarks);
    }
}
