//! Pod specs, in pods and in templates (core `ValidatePodSpec` and its callers).

pub mod affinity;
pub mod annotation;
pub mod app_armor;
pub mod container;
pub mod env;
pub mod extra;
pub mod gated_fields;
pub mod mount;
pub mod network;
pub mod probe;
pub mod projected;
pub mod resources;
pub mod scheduling;
pub mod security;
pub mod volume;
mod volume_files;
pub mod warnings;
pub mod windows;

use self::container::Shared;
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::{metadata, selector};
use crate::kinds::prelude::*;

/// The value of `v1.DefaultTerminationGracePeriodSeconds`.
const DEFAULT_GRACE: i64 = 30;

/// The owner of a spec.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A pod with this name.
    Pod(&'a str),
    Template,
    /// The template of a stateful set, which sets the names of its pods, and volumes for these claims.
    StatefulTemplate(&'a [&'a str]),
}

/// Validates a pod template.
pub fn template(at: &At<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    let (labels, annotations) = (at.dig(&["metadata", "labels"]), at.dig(&["metadata", "annotations"]));
    // Upstream's errors lack `metadata`.
    selector::labels(&labels.called("labels"), errors);
    let called = annotations.called("annotations");
    metadata::annotations(&called, errors);
    let pod = at.get("spec");
    annotation::validate(&called, &pod, errors);
    spec(&pod, owner, false, errors);
    extra::annotations_match(&annotations, &pod, errors);
    if !pod.get("ephemeralContainers").is_empty() {
        errors.forbidden(&pod.get("ephemeralContainers"), "ephemeral containers not allowed in pod template");
    }
}

/// Validates labels and annotations of a template again: upstream checks those of stateful sets twice.
pub fn template_metadata(at: &At<'_, '_>, errors: &mut Errors) {
    let (labels, annotations) = (at.dig(&["metadata", "labels"]), at.dig(&["metadata", "annotations"]));
    selector::labels(&labels.called("labels"), errors);
    metadata::annotations(&annotations.called("annotations"), errors);
    annotation::validate(&annotations.called("annotations"), &at.get("spec"), errors);
}

/// Rules for templates whose pods are replaced when they end.
pub fn runs_forever(template: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let policy = template.dig(&["spec", "restartPolicy"]);
    errors.one_of(&policy, policy.text_or("Always"), &["Always"]);
    let deadline = template.dig(&["spec", "activeDeadlineSeconds"]);
    if deadline.is_set() {
        errors.forbidden(&deadline, &format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}

pub fn spec(spec: &At<'_, '_>, owner: Owner<'_>, mirror: bool, errors: &mut Errors) {
    let volumes = volume::volumes(&spec.get("volumes"), owner, errors);
    let claims = scheduling::resource_claims(&spec.get("resourceClaims"), mirror, errors);
    let shared = Shared {
        spec: *spec,
        volumes,
        claims,
        grace: grace_period(spec),
        host_users: spec.get("hostUsers").opt_flag() != Some(false),
    };
    container::containers(&shared, errors);
    container::init_containers(&shared, errors);
    container::ephemeral_containers(&shared, errors);
    resources::validate(spec, &shared.claims, errors);
    network::host_network_ports(spec, errors);
    let (restart, dns) = (spec.get("restartPolicy"), spec.get("dnsPolicy"));
    errors.one_of(&restart, restart.text_or("Always"), &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.one_of(&dns, dns.text_or("ClusterFirst"), &policies);
    selector::labels(&spec.get("nodeSelector"), errors);
    security::pod(&spec.get("securityContext"), spec, errors);
    affinity::affinity(&spec.get("affinity"), errors);
    network::dns(spec, errors);
    scheduling::readiness_gates(&spec.get("readinessGates"), errors);
    scheduling::scheduling_gates(&spec.get("schedulingGates"), errors);
    scheduling::topology_spread(&spec.get("topologySpreadConstraints"), errors);
    windows::host_process(spec, errors);
    network::host_users(spec, errors);
    network::host_name(spec, errors);
    references(spec, owner, errors);
    windows::operating_system(spec, errors);
    extra::scheduling_group(&spec.get("schedulingGroup"), errors);
    extra::file_references(spec, errors);
}

/// The grace period after defaulting: a negative one becomes the shortest possible.
fn grace_period(spec: &At<'_, '_>) -> i64 {
    match spec.get("terminationGracePeriodSeconds").opt_int() {
        None => DEFAULT_GRACE,
        Some(period) if period < 0 => 1,
        Some(period) => period,
    }
}

/// Validates names of other objects and the small fields between them.
fn references(spec: &At<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    for name in ["serviceAccountName", "nodeName"] {
        reference(&spec.get(name), errors);
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.within(&deadline, 1, i64::from(i32::MAX));
    }
    if !matches!(owner, Owner::StatefulTemplate(_)) {
        network::names(spec, errors);
    }
    scheduling::tolerations(&spec.get("tolerations"), errors);
    network::host_aliases(&spec.get("hostAliases"), errors);
    reference(&spec.get("priorityClassName"), errors);
    let class = spec.get("runtimeClassName");
    errors.in_format_if_set(&class, dns1123_subdomain);
    let preemption = spec.get("preemptionPolicy");
    match preemption.opt_text() {
        None => {}
        Some("") => errors.required(&preemption, ""),
        Some(text) => _ = errors.one_of(&preemption, text, &["PreemptLowerPriority", "Never"]),
    }
    resources::overhead(&spec.get("overhead"), errors);
}

fn reference(at: &At<'_, '_>, errors: &mut Errors) {
    errors.in_format_if_given(at, dns1123_subdomain);
}

/// All containers of a pod, in the order in which upstream visits them.
pub fn visit<'v>(spec: &At<'v, '_>, visitor: &mut dyn FnMut(&At<'v, '_>)) {
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(name).items() {
            visitor(&container);
        }
    }
}
