//! Annotations with a meaning of their own, most of which were replaced by fields.

use crate::gotext;
use crate::kinds::behavior::rules::path_text::descending;
use crate::kinds::core::pod_spec::{scheduling, visit};
use crate::kinds::prelude::*;

/// Marks a pod that a kubelet has made from a file.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

pub fn validate(map: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    if map.is_empty() {
        return;
    }
    let mirror = map.key(MIRROR);
    if mirror.is_set() && spec.get("nodeName").text().is_empty() {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&mirror, mirror.text(), why);
    }
    tolerations(map, errors);
    let cost = map.key(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.invalid(&cost, cost.text(), "must be a 32bit integer");
    }
    let pod = map.key(SECCOMP_POD);
    if pod.is_set() {
        seccomp(&map.get(SECCOMP_POD), pod.text(), errors);
    }
    for (key, value) in map.entries() {
        if key.starts_with(SECCOMP_CONTAINER) {
            seccomp(&map.get(key), value.text(), errors);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor(&value, container, spec, errors);
        }
    }
}

fn tolerations(map: &At<'_, '_>, errors: &mut Errors) {
    let text = map.key(TOLERATIONS).text();
    if text.is_empty() {
        return;
    }
    match serde_json::from_str(text) {
        Ok(list) => scheduling::tolerations(&map.other(TOLERATIONS, &list), errors),
        Err(_) => errors.invalid(map, TOLERATIONS, "invalid JSON"),
    }
}

fn is_cost(text: &str) -> bool {
    let first = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    first && text.parse::<i32>().is_ok()
}

fn seccomp(at: &At<'_, '_>, profile: &str, errors: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(path) => descending(at, path, errors),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => errors.invalid(at, profile, "must be a valid seccomp profile"),
    }
}

fn app_armor(at: &At<'_, '_>, container: &str, spec: &At<'_, '_>, errors: &mut Errors) {
    let mut found = false;
    visit(spec, &mut |other| found |= other.get("name").text() == container);
    if !found {
        errors.invalid(at, container, "container not found");
    }
    let profile = at.text();
    if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
        let why = format!("invalid AppArmor profile name: {}", gotext::quote(profile));
        errors.invalid(at, profile, &why);
    }
}

/// Changes that an update may not make to them.
pub fn changes(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    for (key, value) in old.entries() {
        let at = new.key(key);
        if at.opt_text() == Some(value.text()) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&at, "may not remove or update AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&at, "may not remove or update mirror pod annotation");
        }
    }
    for (key, at) in new.entries().filter(|(key, _)| !old.key(key).is_set()) {
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&at, "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&at, "may not add mirror pod annotation");
        }
    }
}
