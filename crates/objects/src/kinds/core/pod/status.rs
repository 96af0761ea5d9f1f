//! Rules for the status that kubelets and schedulers write.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::behavior::format::{dns1123_subdomain, label_key};
use crate::kinds::behavior::rules::ip;
use crate::kinds::behavior::rules::same::immutable;
use crate::kinds::core::pod_spec::annotation;
use crate::kinds::prelude::*;

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec, status) =
        (At::member(new, "metadata"), At::member(new, "spec"), At::member(new, "status"));
    let (old_metadata, old_spec, old_status) =
        (At::member(old, "metadata"), At::member(old, "spec"), At::member(old, "status"));
    let annotations = metadata.get("annotations");
    annotation::changes(&annotations, &old_metadata.get("annotations"), errors);
    annotation::validate(&annotations, &spec, errors);
    conditions(&status.get("conditions"), errors);
    nominated_node(&status, (&old_status, &old_spec), errors);
    not_negative(&status.get("observedGeneration"), errors);
    immutable(&status.get("qosClass"), &old_status.get("qosClass"), errors);
    let lists = [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ];
    for (name, containers) in lists {
        transitions(&status.get(name), &old_status.get(name), &old_spec, containers, errors);
    }
    claims(&status.get("resourceClaimStatuses"), &spec.get("resourceClaims"), errors);
    addresses(&status.get("podIPs"), &old_status.get("podIPs"), errors);
    let hosts = status.get("hostIPs");
    if !hosts.is_empty() {
        let first = hosts.index(0);
        if status.get("hostIP").text() != first.get("ip").text() {
            errors.invalid(&first.get("ip"), first.get("ip").text(), "must be equal to `hostIP`");
        }
        addresses(&hosts, &old_status.get("hostIPs"), errors);
    }
}

fn conditions(list: &At<'_, '_>, errors: &mut Errors) {
    for condition in list.items() {
        not_negative(&condition.get("observedGeneration"), errors);
        let kind = condition.get("type").text();
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            errors.invalid_each(&condition.get("Type"), kind, label_key(kind));
        }
    }
}

fn not_negative(at: &At<'_, '_>, errors: &mut Errors) {
    if at.int() < 0 {
        errors.invalid(at, at.int(), "must be a non-negative integer");
    }
}

fn nominated_node(status: &At<'_, '_>, (old, spec): (&At<'_, '_>, &At<'_, '_>), errors: &mut Errors) {
    let node = status.get("nominatedNodeName");
    let changed = node.text() != old.get("nominatedNodeName").text();
    if node.text().is_empty() || !changed {
        return;
    }
    errors.in_format(&node, dns1123_subdomain);
    if !spec.get("nodeName").text().is_empty() {
        errors.forbidden(&node, "may not be set on pods that are already bound to a node");
    }
}

/// A terminated container stays terminated, unless it may be restarted.
fn transitions(new: &At<'_, '_>, old: &At<'_, '_>, spec: &At<'_, '_>, containers: &str, errors: &mut Errors) {
    if !containers.is_empty() && may_restart_all(spec) {
        return;
    }
    let running: BTreeSet<&str> = new
        .items()
        .filter(|status| !status.dig(&["state", "terminated"]).is_set())
        .map(|status| status.get("name").text())
        .collect();
    let list = spec.get(containers);
    // Of equal names, the first counts.
    let mut by_name: BTreeMap<&str, &Value> = BTreeMap::new();
    for container in list.items() {
        by_name.entry(container.get("name").text()).or_insert(container.value());
    }
    for (index, old) in old.items().enumerate() {
        let ended = old.dig(&["state", "terminated"]);
        if !ended.is_set() {
            continue;
        }
        let name = old.get("name").text();
        if !running.contains(name) {
            continue;
        }
        let container = by_name.get(name).map(|container| At::root(container));
        let code = ended.get("exitCode").int();
        if !container.is_some_and(|container| restarts(&container, spec, code)) {
            let at = new.index(index);
            errors.forbidden(&at.get("state"), "may not be transitioned to non-terminated state");
        }
    }
}

fn may_restart_all(spec: &At<'_, '_>) -> bool {
    let restarts_all = |container: At<'_, '_>| {
        let rules = container.get("restartPolicyRules");
        rules.items().any(|rule| rule.get("action").text() == "RestartAllContainers")
    };
    ["containers", "initContainers"].iter().any(|name| spec.get(name).items().any(restarts_all))
}

fn restarts(container: &At<'_, '_>, spec: &At<'_, '_>, code: i64) -> bool {
    let own = container.get("restartPolicy");
    let policy = if own.is_set() { own.text() } else { spec.get("restartPolicy").text_or("Always") };
    let matching = |rule: At<'_, '_>| {
        let codes = rule.get("exitCodes");
        let among = codes.get("values").items().any(|value| value.int() == code);
        match codes.get("operator").text() {
            "In" => among,
            "NotIn" => !among,
            _ => false,
        }
    };
    if own.is_set() && container.get("restartPolicyRules").items().any(matching) {
        return true;
    }
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn claims(list: &At<'_, '_>, known: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let known: BTreeSet<&str> = known.items().map(|known| known.get("name").text()).collect();
    for claim in list.items() {
        let name = claim.get("name");
        if !known.contains(name.text()) {
            errors.invalid(&name, name.text(), "must match the name of an entry in `spec.resourceClaims`");
        }
        errors.distinct_from(&name, &mut seen);
        let reference = claim.get("resourceClaimName");
        errors.in_format_if_set(&reference, dns1123_subdomain);
    }
}

/// At most one address per IP family is allowed.
fn addresses(list: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let texts = |list: &At<'_, '_>| -> Vec<String> {
        list.items().map(|address| address.get("ip").text().to_owned()).collect()
    };
    let (new, known) = (texts(list), texts(old));
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    for (address, text) in list.items().zip(&new) {
        ip::legacy(&address, text, &known, errors);
    }
    if new.len() > 1 && (new.len() > 2 || !ip::dual_stack(new.iter().map(String::as_str))) {
        let shown: Vec<String> = new
            .iter()
            .map(|text| format!("{{\"IP\":{}}}", crate::gotext::json(&text.as_str().into())))
            .collect();
        let shown = crate::kinds::behavior::rules::errors::Verbatim(format!("[{}]", shown.join(",")));
        errors.invalid(list, shown, "may specify no more than one IP for each IP family");
    }
}
