//! Daemon sets.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{pod, selector};
use super::rollout::{amount, shown_strategy};
use super::{collisions_grow, not_everything, selector_stays};
use crate::api::ObjectMap;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

/// The count of template changes is the server's own, so there is nothing to say about it.
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
    pod::template(&template, pod::Owner::Template, errors);
    pod::runs_forever(&template, "DaemonSet", errors);
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
