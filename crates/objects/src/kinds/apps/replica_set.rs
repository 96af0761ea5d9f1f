//! ReplicaSets.

use jiff::Timestamp;

use crate::kinds::apps::deployment::selector_and_template;
use crate::kinds::apps::shared::{available_are_ready, replica_counts, selector_stays};
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, SELECTOR, age, cells, integer, integer_column, name, wide,
};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, containers, selector};
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATED;
use crate::kinds::core::pod_template::warnings::{named_template, template_update};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("replicasets", "ReplicaSet")
        .short(&["rs"])
        .category("all")
        .sub(&["scale", "status"])
        .generation(),
    strategy: Strategy {
        status: StatusRule::Reset(r#"{"replicas":0}"#),
        gated_fields: &[Under("spec", TEMPLATED)],
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::new(named_template, template_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

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

/// The status of ReplicaSets and ReplicationControllers.
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

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Desired", "Pods that are wanted."),
        integer_column("Current", "Pods that exist."),
        integer_column("Ready", "Pods that are ready."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: Some(|object, now| cells(object, now, selector(&object["spec"]["selector"]))),
    ..PLAIN
};

pub fn cells(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        integer(&spec["replicas"]),
        integer(&status["replicas"]),
        integer(&status["readyReplicas"]),
        age(object, now),
        names,
        images,
        selector,
    ]
}
