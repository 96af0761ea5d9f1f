//! DaemonSets.

pub mod template_generation;

use crate::kinds::apps::rollout::{amount, shown_strategy};
use crate::kinds::apps::shared::{collisions_grow, not_everything, selector_stays};
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, SELECTOR, integer_column, text_column, wide};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, labels, selector as text_selector};
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::pod_spec;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATED;
use crate::kinds::core::pod_template::warnings::{changed, template};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("daemonsets", "DaemonSet")
        .short(&["ds"])
        .category("all")
        .sub(&["status"])
        .generation(),
    strategy: Strategy {
        status: StatusRule::Reset(STATUS),
        gated_fields: &[Under("spec", TEMPLATED)],
        hooks: &DaemonSetHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::new(template, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The zero value of the status type, as `encoding/json` prints it.
const STATUS: &str =
    r#"{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}"#;

#[derive(Debug)]
struct DaemonSetHooks;

impl Hooks for DaemonSetHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        template_generation::prepare_create(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        template_generation::prepare_update(new, old);
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        template_generation::keep_template_generation(new, old);
    }
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

/// The count of template changes is set by the server, so it is not validated.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let new = At::member(new, "spec");
    selector_stays(&new, &At::member(old, "spec"), errors);
    spec(&new, errors);
}

fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    selector::validate(&selector, errors);
    let labels = template.dig(&["metadata", "labels"]);
    if selector::matches(&selector, &labels) == Some(false) {
        selector::mismatch(&labels, errors);
    }
    not_everything(&selector, "daemonset", errors);
    pod_spec::template(&template, pod_spec::Owner::Template, errors);
    pod_spec::runs_forever(&template, "DaemonSet", errors);
    errors.not_negative(&spec.get("minReadySeconds"));
    strategy(&spec.get("updateStrategy"), errors);
    errors.not_negative(&spec.get("revisionHistoryLimit"));
}

fn strategy(at: &At<'_, '_>, errors: &mut Errors) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text_or("RollingUpdate") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) =
                (amount(rolling.get("maxUnavailable"), 1), amount(rolling.get("maxSurge"), 0));
            unavailable.check(errors);
            surge.check(errors);
            unavailable.at_most_all(errors);
            surge.at_most_all(errors);
            match (unavailable.is_zero(), surge.is_zero()) {
                (false, false) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(surge.at(), surge.shown(), why);
                }
                (true, true) => errors.required(unavailable.at(), "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        other => errors.not_supported(at, shown_strategy(other, &rolling), &["RollingUpdate", "OnDelete"]),
    }
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    const COUNTS: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    errors.none_negative(&status, &COUNTS);
    collisions_grow(&status, &At::member(old, "status"), errors);
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    if changed(new, old, &["metadata", "annotations", GENERATION]) {
        template(new, remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Desired", "Nodes that should run the pod.").at("status.desiredNumberScheduled"),
        integer_column("Current", "Nodes that run the pod and should.").at("status.currentNumberScheduled"),
        integer_column("Ready", "Nodes whose pod is ready.").at("status.numberReady"),
        integer_column("Up-to-date", "Nodes whose pod is made from the current template.")
            .at("status.updatedNumberScheduled"),
        integer_column("Available", "Nodes whose pod has been ready for long enough.")
            .at("status.numberAvailable"),
        text_column("Node Selector", "Labels that a node needs to get the pod.")
            .of(|object, _| labels(&object["spec"]["template"]["spec"]["nodeSelector"]).into()),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR.of(|object, _| text_selector(&object["spec"]["selector"]).into())),
    ],
    ..PLAIN
};
