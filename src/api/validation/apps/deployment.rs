//! Deployments.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{pod, selector};
use super::rollout::{amount, shown_strategy};
use super::{available_are_ready, collisions_grow, replica_counts, selector_selects, selector_stays};
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
    selector_and_template(spec, errors);
    strategy(&spec.get("strategy"), errors);
    errors.not_negative(&spec.get("minReadySeconds"));
    errors.not_negative(&spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    errors.not_negative(&deadline);
    // Defaulting gives ten minutes.
    let seconds = deadline.opt_int().unwrap_or(600);
    if seconds <= spec.get("minReadySeconds").int() {
        errors.invalid(&deadline, seconds, "must be greater than minReadySeconds");
    }
}

/// The selector of a deployment or a replica set, and the template that it has to select.
pub(super) fn selector_and_template(spec: &At<'_, '_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    // Upstream says so of replica sets too.
    selector_selects(&selector, "deployment", errors);
    let template = spec.get("template");
    let labels = template.dig(&["metadata", "labels"]);
    match selector::matches(&selector, &labels) {
        None => errors.invalid(&selector, selector::shown(&selector), "invalid label selector"),
        Some(matches) => {
            if !matches {
                selector::mismatch(&labels, errors);
            }
            pod::template(&template, pod::Owner::Template, errors);
            pod::runs_forever(&template, "ReplicaSet", errors);
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
            // Defaulting gives a quarter to both.
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
