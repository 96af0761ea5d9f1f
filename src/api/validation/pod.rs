//! Pods and their templates (core `ValidatePodSpec` and what is around it).

mod affinity;
mod annotation;
mod container;
mod env;
mod extra;
mod mount;
mod network;
mod probe;
mod projected;
mod resources;
mod scheduling;
mod security;
mod status;
mod update;
mod volume;
mod windows;

pub use affinity::node_selector;
pub use probe::port_or_name;
pub use scheduling::{TAINT_EFFECTS, tolerations};
pub use status::status;
pub use update::update;

use super::at::At;
use super::errors::Errors;
use super::format::dns1123_subdomain;
use super::{metadata, selector};
use crate::api::ObjectMap;
use container::Shared;

/// What `v1.DefaultTerminationGracePeriodSeconds` says.
const DEFAULT_GRACE: i64 = 30;

/// Whose spec it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A pod of this name.
    Pod(&'a str),
    Template,
    /// The template of a stateful set, which gives names to its pods itself, and volumes for these claims.
    StatefulTemplate(&'a [&'a str]),
}

/// A new pod.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    metadata_and_spec(&metadata, &spec, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.get("nodeName").text().is_empty() && !spec.get("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&spec.get("nodeName"), why);
    }
    extra::annotations_match(&metadata.get("annotations"), &spec, errors);
}

/// A pod of which one of its subresources has written a part.
pub fn whole(object: &ObjectMap, errors: &mut Errors) {
    metadata_and_spec(&At::member(object, "metadata"), &At::member(object, "spec"), errors);
}

fn metadata_and_spec(metadata: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    annotation::validate(&metadata.get("annotations"), spec, errors);
    let owner = Owner::Pod(metadata.get("name").text());
    let mirror = metadata.get("annotations").key(annotation::MIRROR).is_set();
    self::spec(spec, owner, mirror, errors);
    // The old name is still understood.
    if ["serviceAccountName", "serviceAccount"].iter().all(|name| spec.get(name).text().is_empty()) {
        tokens_without_account(spec, errors);
    }
    for name in ["containers", "initContainers"] {
        for container in spec.get(name).items() {
            container::trimmed_image(&container, errors);
        }
    }
}

fn tokens_without_account(spec: &At<'_, '_>, errors: &mut Errors) {
    for volume in spec.get("volumes").items() {
        for source in volume.dig(&["projected", "sources"]).items() {
            let token = source.get("serviceAccountToken");
            if token.is_set() {
                errors.forbidden(&token, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}

/// A template of its own, without anything that uses it.
pub fn lone_template(object: &ObjectMap, errors: &mut Errors) {
    template(&At::member(object, "template"), Owner::Template, errors);
}

/// A template of pods.
pub fn template(at: &At<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    let (labels, annotations) = (at.dig(&["metadata", "labels"]), at.dig(&["metadata", "annotations"]));
    // Upstream's errors leave `metadata` out.
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

/// Labels and annotations of a template once more: upstream checks those of stateful sets twice.
pub fn template_metadata(at: &At<'_, '_>, errors: &mut Errors) {
    let (labels, annotations) = (at.dig(&["metadata", "labels"]), at.dig(&["metadata", "annotations"]));
    selector::labels(&labels.called("labels"), errors);
    metadata::annotations(&annotations.called("annotations"), errors);
    annotation::validate(&annotations.called("annotations"), &at.get("spec"), errors);
}

/// Rules of templates whose pods are replaced when they end.
pub fn runs_forever(template: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let policy = template.dig(&["spec", "restartPolicy"]);
    errors.one_of(&policy, policy.text_or("Always"), &["Always"]);
    let deadline = template.dig(&["spec", "activeDeadlineSeconds"]);
    if deadline.is_set() {
        errors.forbidden(&deadline, &format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}

fn spec(spec: &At<'_, '_>, owner: Owner<'_>, mirror: bool, errors: &mut Errors) {
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

/// What defaulting makes of it: negative periods become the shortest one.
fn grace_period(spec: &At<'_, '_>) -> i64 {
    match spec.get("terminationGracePeriodSeconds").opt_int() {
        None => DEFAULT_GRACE,
        Some(period) if period < 0 => 1,
        Some(period) => period,
    }
}

/// Names of other objects, and the small fields between them.
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
    if let Some(text) = class.opt_text() {
        errors.invalid_each(&class, text, dns1123_subdomain(text));
    }
    let preemption = spec.get("preemptionPolicy");
    match preemption.opt_text() {
        None => {}
        Some("") => errors.required(&preemption, ""),
        Some(text) => _ = errors.one_of(&preemption, text, &["PreemptLowerPriority", "Never"]),
    }
    resources::overhead(&spec.get("overhead"), errors);
}

fn reference(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.text().is_empty() {
        errors.in_format(at, dns1123_subdomain);
    }
}

/// All containers of a pod, in the order in which upstream visits them.
fn visit<'v>(spec: &At<'v, '_>, visitor: &mut dyn FnMut(&At<'v, '_>)) {
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(name).items() {
            visitor(&container);
        }
    }
}
