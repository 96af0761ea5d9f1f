//! Rules of roles and their bindings (`pkg/apis/rbac/validation`).

use crate::gotext;
use crate::kinds::behavior::format::{dns1123_subdomain, path_segment};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::rules::selector;
use crate::kinds::prelude::*;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a rule or subject belongs to a namespace or to the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespace,
    Cluster,
}

pub fn role(object: &ObjectMap, errors: &mut Errors) {
    rules(object, Scope::Namespace, errors);
}

pub fn cluster_role(object: &ObjectMap, errors: &mut Errors) {
    rules(object, Scope::Cluster, errors);
    let aggregation = At::member(object, "aggregationRule");
    if !aggregation.is_set() {
        return;
    }
    let selectors = aggregation.get("clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&selectors, why);
    }
    let nothing = crate::tree::Value::Null;
    for one in selectors.items() {
        selector::validate(&one, errors);
        if selector::matches(&one, &At::root(&nothing)).is_none() {
            errors.invalid(&one, Verbatim("null".to_owned()), "invalid label selector.");
        }
    }
}

fn rules(object: &ObjectMap, scope: Scope, errors: &mut Errors) {
    for rule in At::member(object, "rules").items() {
        let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
        let urls = rule.get("nonResourceURLs");
        if urls.is_empty() {
            errors.present(&groups, "resource rules must supply at least one api group");
            errors.present(&resources, "resource rules must supply at least one resource");
            continue;
        }
        if scope == Scope::Namespace {
            errors.invalid(&urls, urls.value(), "namespaced rules cannot apply to non-resource URLs");
        }
        if !groups.is_empty() || !resources.is_empty() || !rule.get("resourceNames").is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&urls, urls.value(), why);
        }
    }
}

pub fn create_binding(object: &ObjectMap, errors: &mut Errors) {
    binding(object, Scope::Namespace, errors);
}

pub fn update_binding(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    binding(new, Scope::Namespace, errors);
    role_stays(new, old, errors);
}

pub fn create_cluster_binding(object: &ObjectMap, errors: &mut Errors) {
    binding(object, Scope::Cluster, errors);
}

pub fn update_cluster_binding(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    binding(new, Scope::Cluster, errors);
    role_stays(new, old, errors);
}

fn role_stays(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (role, before) = (At::member(new, "roleRef"), At::member(old, "roleRef"));
    let changed = ["apiGroup", "kind", "name"]
        .iter()
        .any(|name| !same(role.get(name).value(), before.get(name).value()));
    if changed {
        let text = |name: &str, default| gotext::json(&role.get(name).text_or(default).into());
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            text("apiGroup", GROUP),
            text("kind", ""),
            text("name", "")
        );
        errors.invalid(&role, Verbatim(shown), IMMUTABLE);
    }
}

fn binding(object: &ObjectMap, scope: Scope, errors: &mut Errors) {
    let role = At::member(object, "roleRef");
    let (group, kind, name) = (role.get("apiGroup"), role.get("kind"), role.get("name"));
    errors.one_of(&group, group.text_or(GROUP), &[GROUP]);
    let kinds: &[&str] = if scope == Scope::Namespace { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    errors.one_of(&kind, kind.text(), kinds);
    errors.in_format(&name, path_segment);
    for one in At::member(object, "subjects").items() {
        subject(&one, scope, errors);
    }
}

fn subject(at: &At<'_, '_>, scope: Scope, errors: &mut Errors) {
    let (kind, name, group) = (at.get("kind"), at.get("name"), at.get("apiGroup"));
    match kind.text() {
        "ServiceAccount" => {
            errors.in_format_if_given(&name, dns1123_subdomain);
            if !group.text().is_empty() {
                errors.not_supported(&group, group.text(), &[""]);
            }
            let namespace = at.get("namespace");
            if scope == Scope::Cluster && namespace.text().is_empty() {
                errors.required(&namespace, "");
            }
        }
        "User" | "Group" => _ = errors.one_of(&group, group.text_or(GROUP), &[GROUP]),
        other => errors.not_supported(&kind, other, &["ServiceAccount", "User", "Group"]),
    }
}
