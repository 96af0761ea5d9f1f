//! Replica sets, and the replication controllers that came before them.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{pod, selector};
use super::deployment::selector_and_template;
use super::{available_are_ready, replica_counts, selector_stays};
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
    errors.none_negative(&status, &counts);
    replica_counts(&status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], errors);
    available_are_ready(&status, "readyReplicas", errors);
}

/// A replication controller: its selector is a map, and defaults to the template's labels.
pub fn controller(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
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
        selector::mismatch(&labels, errors);
    }
    pod::template(&template, pod::Owner::Template, errors);
    pod::runs_forever(&template, "ReplicationController", errors);
}
