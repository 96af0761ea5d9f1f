//! Parts of a pod that an update may change: images, deadlines, tolerations, and a little more while the pod is gated.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::core::pod::metadata_and_spec;
use crate::kinds::core::pod_spec::{annotation, container, scheduling};
use crate::kinds::prelude::*;

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(new, "metadata"), At::member(new, "spec"));
    let (old_metadata, old_spec) = (At::member(old, "metadata"), At::member(old, "spec"));
    metadata_and_spec(&metadata, &spec, errors);
    let annotations = metadata.get("annotations");
    annotation::changes(&annotations, &old_metadata.get("annotations"), errors);
    annotation::validate(&annotations, &spec, errors);
    for name in ["containers", "initContainers"] {
        let list = spec.get(name);
        if list.len() != old_spec.get(name).len() {
            return errors.forbidden(&list, "pod updates may not add or remove containers");
        }
        for container in list.items() {
            errors.present(&container.get("image"), "");
            container::trimmed_image(&container, errors);
        }
    }
    if !deadline(&spec, &old_spec, errors) {
        return;
    }
    tolerations(&spec.get("tolerations"), &old_spec.get("tolerations"), errors);
    gates(&spec.get("schedulingGates"), &old_spec.get("schedulingGates"), errors);
    if !same(spec.value(), old_spec.value()) {
        rest_is_same(&spec, &old_spec, errors);
    }
}

/// A deadline may only be shortened. Returns whether further rules apply.
fn deadline(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) -> bool {
    let at = new.get("activeDeadlineSeconds");
    let before = old.get("activeDeadlineSeconds").opt_int();
    match (at.opt_int(), before) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            errors.within(&at, 0, i64::from(i32::MAX));
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            errors.invalid(&at, seconds, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.invalid(&at, Verbatim("null".to_owned()), why);
            true
        }
        _ => true,
    }
}

fn tolerations(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    fn but_seconds<'v>(one: &At<'v, '_>) -> [&'v str; 4] {
        ["key", "operator", "value", "effect"].map(|name| one.get(name).text())
    }
    let kept: BTreeSet<[&str; 4]> = new.items().map(|new| but_seconds(&new)).collect();
    if old.items().any(|old| !kept.contains(&but_seconds(&old))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        return errors.forbidden(new, why);
    }
    scheduling::tolerations(new, errors);
}

fn gates(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let known: BTreeSet<&str> = old.items().map(|old| old.get("name").text()).collect();
    for gate in new.items() {
        let name = gate.get("name").text();
        if !known.contains(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&gate.get("name"), &why);
        }
    }
}

/// After all allowed changes are reverted, the new spec must equal the old one.
fn rest_is_same(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let (Some(new_map), Some(old_map)) = (spec.value().as_object(), old.value().as_object()) else { return };
    let mut munged = new_map.clone();
    for name in ["containers", "initContainers"] {
        let images = old.get(name);
        let containers = munged.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.filter_map(Value::as_object_mut).zip(images.items()) {
            put(container, "image", old.get("image").value());
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut munged, name, old.get(name).value());
    }
    let grace = "terminationGracePeriodSeconds";
    if old.get(grace).int() < 0 && spec.get(grace).int() == 1 {
        put(&mut munged, grace, old.get(grace).value());
    }
    if !old.get("schedulingGates").is_empty() {
        gated(spec, old, &mut munged, errors);
    }
    if !same(&Value::Object(munged), &Value::Object(old_map.clone())) {
        // Upstream appends the difference of its internal structs.
        errors.forbidden(spec, UPDATABLE);
    }
}

fn put(map: &mut Map, name: &str, value: &Value) {
    if value.is_null() {
        map.shift_remove(name);
    } else {
        map.insert(name, value.clone());
    }
}

/// While a pod is gated, its node constraints may become narrower.
fn gated(spec: &At<'_, '_>, old: &At<'_, '_>, munged: &mut Map, errors: &mut Errors) {
    let (nodes, old_nodes) = (spec.get("nodeSelector"), old.get("nodeSelector"));
    if !same(nodes.value(), old_nodes.value()) {
        if old_nodes.entries().any(|(key, value)| nodes.key(key).opt_text() != Some(value.text())) {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.invalid(&nodes, crate::kinds::behavior::rules::selector::shown_map(&nodes), why);
        }
        put(munged, "nodeSelector", old_nodes.value());
    }
    let path = ["affinity", "nodeAffinity"];
    let (wish, old_wish) = (spec.dig(&path), old.dig(&path));
    if same(wish.value(), old_wish.value()) {
        return;
    }
    node_affinity(&wish, &old_wish, errors);
    let mut affinity = munged.get("affinity").and_then(Value::as_object).cloned().unwrap_or_default();
    put(&mut affinity, "nodeAffinity", old_wish.value());
    let empty = affinity.is_empty() && !old.get("affinity").is_set();
    let affinity = if empty { Value::Null } else { Value::Object(affinity) };
    put(munged, "affinity", &affinity);
}

fn node_affinity(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let path = ["requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let (terms, old_terms) = (new.dig(&path), old.dig(&path));
    if !old.get(path[0]).is_set() {
        return;
    }
    if !old_terms.is_empty() && terms.len() != old_terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return errors.invalid(&terms, Verbatim(gotext::json(terms.value())), why);
    }
    for (term, old) in terms.items().zip(old_terms.items()) {
        if !only_adds(&term, &old) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&term, term.value(), why);
        }
    }
}

fn only_adds(new: &At<'_, '_>, old: &At<'_, '_>) -> bool {
    let parts = ["matchExpressions", "matchFields"];
    if parts.iter().all(|name| old.get(name).is_empty()) {
        return parts.iter().all(|name| new.get(name).is_empty());
    }
    parts.iter().all(|name| {
        let (new, old) = (new.get(name), old.get(name));
        new.len() >= old.len()
            && old.items().zip(new.items()).all(|(old, new)| same(old.value(), new.value()))
    })
}
