//! Warnings about pod specs (`pkg/api/pod/warnings.go`).

pub mod overlaps;
pub mod ports;

use std::collections::HashSet;

use crate::gotext::quote;
use crate::kinds::behavior::warnings::address::address;
use crate::kinds::behavior::warnings::whole_bytes;
use crate::kinds::core::node::labels;
use crate::kinds::core::pod_spec::app_armor::DEPRECATED;
use crate::kinds::core::pod_spec::{app_armor, visit};
use crate::kinds::core::volume_source::warnings;
use crate::kinds::prelude::*;

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

const SECCOMP: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;

const SYSCTLS: &str = r#"non-functional in v1.11+; use the "sysctls" field instead"#;

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Annotations without an effect.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", SYSCTLS),
    ("security.alpha.kubernetes.io/unsafe-sysctls", SYSCTLS),
];

/// The owner of a spec. For Pods, [`app_armor`] gives the warnings about AppArmor profiles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Pod,
    Template,
}

pub fn template(template: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let annotations = template.dig(&["metadata", "annotations"]);
    spec(&template.get("spec"), &annotations, Owner::Template, remarks);
}

pub fn spec(spec: &At<'_, '_>, annotations: &At<'_, '_>, owner: Owner, remarks: &mut Remarks<'_>) {
    labels::selector(&spec.get("nodeSelector"), remarks);
    node_affinity(&spec.dig(&["affinity", "nodeAffinity"]), remarks);
    for constraint in spec.get("topologySpreadConstraints").items() {
        labels::key(&constraint.get("topologyKey"), remarks);
        has_selector(&constraint, remarks);
    }
    for (key, why) in ANNOTATIONS {
        let annotation = annotations.key(key);
        if annotation.is_set() {
            remarks.on(&annotation, why);
        }
    }
    for volume in spec.get("volumes").items() {
        warnings::source(&volume, remarks);
    }
    overlaps::volumes(&spec.get("volumes"), remarks);
    repeated(&spec.get("hostAliases"), "ip", remarks);
    repeated(&spec.get("imagePullSecrets"), "name", remarks);
    for secret in spec.get("imagePullSecrets").items().filter(|secret| secret.get("name").text().is_empty()) {
        remarks.on(&secret.get("name"), r#"invalid empty name """#);
    }
    bytes(&spec.get("overhead"), remarks);
    let seccomp = annotations.key(SECCOMP_POD);
    if seccomp.is_set() && !spec.dig(&["securityContext", "seccompProfile"]).is_set() {
        remarks.on(&seccomp, SECCOMP);
    }
    visit(spec, &mut |container| {
        security_annotations(container, spec, annotations, owner, remarks);
        for list in ["limits", "requests"] {
            let resources = container.get("resources");
            whole_bytes(&resources.get(list).key("memory"), remarks);
        }
        for list in ["limits", "requests"] {
            let resources = container.get("resources");
            whole_bytes(&resources.get(list).key("ephemeral-storage"), remarks);
        }
        hidden_variables(&container.get("env"), remarks);
    });
    ports::of_containers(spec, remarks);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        remarks.on(&grace, "must be >= 0; negative values are invalid and will be treated as 1");
    }
    for affinity in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(&spec.dig(&["affinity", affinity]), remarks);
    }
    for server in spec.dig(&["dnsConfig", "nameservers"]).items() {
        address(&server, remarks);
    }
    for alias in spec.get("hostAliases").items() {
        address(&alias.get("ip"), remarks);
    }
}

fn node_affinity(affinity: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.get("nodeSelectorTerms").items() {
        labels::term(&term, false, remarks);
    }
    for weighed in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        labels::term(&weighed.get("preference"), true, remarks);
    }
}

fn pod_affinity(affinity: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
        has_selector(&term, remarks);
    }
    for weighed in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        has_selector(&weighed.get("podAffinityTerm"), remarks);
    }
}

fn has_selector(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let selector = at.get("labelSelector");
    if !selector.is_set() {
        remarks.on(&selector, NO_SELECTOR);
    }
}

/// Warns about list items that have the same value as an earlier one.
fn repeated(list: &At<'_, '_>, name: &str, remarks: &mut Remarks<'_>) {
    let mut seen = HashSet::with_capacity(list.len());
    for item in list.items() {
        let field = item.get(name);
        if !seen.insert(field.text()) {
            remarks.on(&field, format_args!("duplicate {name} {}", quote(field.text())));
        }
    }
}

fn bytes(amounts: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    for name in ["memory", "ephemeral-storage"] {
        whole_bytes(&amounts.key(name), remarks);
    }
}

fn security_annotations(
    container: &At<'_, '_>,
    spec: &At<'_, '_>,
    annotations: &At<'_, '_>,
    owner: Owner,
    remarks: &mut Remarks<'_>,
) {
    if annotations.is_empty() {
        return;
    }
    let (name, context) = (container.get("name").text(), container.get("securityContext"));
    let key = format!("{SECCOMP_CONTAINER}{name}");
    let seccomp = annotations.key(&key);
    if seccomp.is_set() && !context.get("seccompProfile").is_set() {
        remarks.on(&seccomp, SECCOMP);
    }
    let key = format!("{}{name}", app_armor::ANNOTATION);
    let annotation = annotations.key(&key);
    if owner == Owner::Pod || !annotation.is_set() || context.get("appArmorProfile").is_set() {
        return;
    }
    let of_pod = spec.dig(&["securityContext", "appArmorProfile"]);
    let same = app_armor::profile(annotation.text()).is_some_and(|profile| profile == *of_pod.value());
    if !same {
        remarks.on(&annotation, DEPRECATED);
    }
}

/// Warns about variables that are set again without a reference to their earlier value.
fn hidden_variables(variables: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let mut names = HashSet::with_capacity(variables.len());
    for variable in variables.items() {
        let name = variable.get("name").text();
        if names.insert(name) {
            continue;
        }
        let (reference, value) = (format!("$({name})"), variable.get("value").text());
        if variable.get("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            let name = quote(name);
            remarks.on(
                &variable,
                format_args!("hides previous definition of {name}, which may be dropped when using apply"),
            );
        }
    }
}
