//! Deployments.

use jiff::Timestamp;

use crate::kinds::apps::rollout::{amount, shown_strategy};
use crate::kinds::apps::shared::{
    available_are_ready, collisions_grow, replica_counts, selector_selects, selector_stays,
};
use crate::kinds::apps::stateful_set::ready_of_desired;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, SELECTOR, age, cells, integer, name, text_column, wide,
};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, containers, selector_requirements};
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::behavior::strategy::status::StatusMetadata;
use crate::kinds::core::pod_spec;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATED;
use crate::kinds::core::pod_template::warnings::{named_template, template_update};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("deployments", "Deployment")
        .short(&["deploy"])
        .category("all")
        .sub(&["scale", "status"])
        .generation(),
    strategy: Strategy {
        status_metadata: StatusMetadata::Except(&["labels"]),
        generation: Generation::ContentAnd("annotations"),
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
    selector_and_template(spec, errors);
    strategy(&spec.get("strategy"), errors);
    errors.not_negative(&spec.get("minReadySeconds"));
    errors.not_negative(&spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    errors.not_negative(&deadline);
    // The default is ten minutes.
    let seconds = deadline.opt_int().unwrap_or(600);
    if seconds <= spec.get("minReadySeconds").int() {
        errors.invalid(&deadline, seconds, "must be greater than minReadySeconds");
    }
}

/// Validates the selector of a deployment or replica set, and that it selects the template.
pub fn selector_and_template(spec: &At<'_, '_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    // Upstream uses this word for replica sets, too.
    selector_selects(&selector, "deployment", errors);
    let template = spec.get("template");
    let labels = template.dig(&["metadata", "labels"]);
    match selector::matches(&selector, &labels) {
        None => errors.invalid(&selector, selector::shown(&selector), "invalid label selector"),
        Some(matches) => {
            if !matches {
                selector::mismatch(&labels, errors);
            }
            pod_spec::template(&template, pod_spec::Owner::Template, errors);
            pod_spec::runs_forever(&template, "ReplicaSet", errors);
        }
    }
}

fn strategy(at: &At<'_, '_>, errors: &mut Errors) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text_or("RollingUpdate") {
        "Recreate" => {
            if rolling.is_set() {
                errors.forbidden(&rolling, "may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            // The default of both is 25 %.
            let (unavailable, surge) =
                (amount(rolling.get("maxUnavailable"), 25), amount(rolling.get("maxSurge"), 25));
            unavailable.check(errors);
            surge.check(errors);
            if unavailable.is_zero() && surge.is_zero() {
                let why = "may not be 0 when `maxSurge` is 0";
                errors.invalid(unavailable.at(), unavailable.shown(), why);
            }
            unavailable.at_most_all(errors);
        }
        other => errors.not_supported(at, shown_strategy(other, &rolling), &["Recreate", "RollingUpdate"]),
    }
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    const COUNTS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    errors.none_negative(&status, &COUNTS);
    replica_counts(&status, &["updatedReplicas", "readyReplicas", "availableReplicas"], errors);
    available_are_ready(&status, "readyReplicas", errors);
    collisions_grow(&status, &At::member(old, "status"), errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Ready", "Ready pods, of those that are wanted."),
        text_column("Up-to-date", "Pods made from the current template."),
        text_column("Available", "Pods that have been ready for long enough."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        ready_of_desired(object),
        integer(&status["updatedReplicas"]),
        integer(&status["availableReplicas"]),
        age(object, now),
        names,
        images,
        // Unlike in all other kinds, an empty selector is printed as empty.
        selector_requirements(&spec["selector"]).unwrap_or_else(|_| "<invalid>".to_owned()),
    ]
}
