//! Replica sets, and the replication controllers that came before them.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pod;
use super::deployment::{mismatch, selector_and_template, selector_stays};
use super::{available_are_ready, replica_counts};
use crate::api::ObjectMap;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(new, "spec"), errors);
    selector_stays(&At::member(new, "spec"), &At::member(old, "spec"), errors);
}

fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    errors.not_negative(&spec.get("replicas"));
    errors.not_negative(&spec.get("minReadySeconds"));
    selector_and_template(spec, errors);
}

/// Of both kinds.
pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    for name in counts {
        errors.not_negative(&status.get(name));
    }
    replica_counts(&status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], errors);
    available_are_ready(&status, "readyReplicas", errors);
}

/// A new replication controller: its selector is a map, and defaults to the template's labels.
pub fn create_controller(object: &ObjectMap, errors: &mut Errors) {
    controller(&At::member(object, "spec"), errors);
}

pub fn update_controller(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    controller(&At::member(new, "spec"), errors);
}

fn controller(spec: &At<'_, '_>, errors: &mut Errors) {
    errors.not_negative(&spec.get("minReadySeconds"));
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.dig(&["metadata", "labels"]);
    if selector.is_empty() && labels.is_empty() {
        errors.required(&selector, "");
    }
    errors.not_negative(&spec.get("replicas"));
    if !template.is_set() {
        return errors.required(&template, "");
    }
    if selector.entries().any(|(key, value)| labels.key(key).opt_text() != Some(value.text())) {
        mismatch(&template, errors);
    }
    pod::template(&template, pod::Owner::Template, errors);
    pod::runs_forever(&template, "ReplicationController", errors);
}
