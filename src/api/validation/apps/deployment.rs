//! Deployments.

use super::super::at::At;
use super::super::errors::{Errors, Verbatim};
use super::super::same::{IMMUTABLE, same};
use super::super::{pod, selector};
use super::rollout::amount;
use super::{available_are_ready, collisions_grow, replica_counts};
use crate::api::ObjectMap;
use crate::gotext;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(new, "spec"), errors);
    selector_stays(&At::member(new, "spec"), &At::member(old, "spec"), errors);
}

/// What kinds with a label selector cannot change.
pub(super) fn selector_stays(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let (selector, before) = (new.get("selector"), old.get("selector"));
    if !same(selector.value(), before.value()) {
        errors.invalid(&selector, selector::shown(&selector), IMMUTABLE);
    }
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
    if !selector.is_set() {
        errors.required(&selector, "");
    } else {
        selector::validate(&selector, errors);
        if selector::is_empty(&selector) {
            // Upstream says so of replica sets too.
            errors.invalid(&selector, selector::shown(&selector), "empty selector is invalid for deployment");
        }
    }
    let template = spec.get("template");
    match selector::matches(&selector, &template.dig(&["metadata", "labels"])) {
        None => errors.invalid(&selector, selector::shown(&selector), "invalid label selector"),
        Some(matches) => {
            if !matches {
                mismatch(&template, errors);
            }
            pod::template(&template, pod::Owner::Template, errors);
            pod::runs_forever(&template, "ReplicaSet", errors);
        }
    }
}

pub(in super::super) fn mismatch(template: &At<'_, '_>, errors: &mut Errors) {
    let labels = template.dig(&["metadata", "labels"]);
    errors.invalid(&labels, selector::shown_map(&labels), "`selector` does not match template `labels`");
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
        other => {
            let shown = Verbatim(shown_strategy(other, &rolling));
            errors.not_supported(at, shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// Upstream prints its internal struct.
fn shown_strategy(kind: &str, rolling: &At<'_, '_>) -> String {
    let json = |name: &str| match rolling.get(name).value() {
        serde_json::Value::Null => "0".to_owned(),
        value => gotext::json(value),
    };
    let rolling = if rolling.is_set() {
        format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", json("maxUnavailable"), json("maxSurge"))
    } else {
        "null".to_owned()
    };
    format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", gotext::json(&kind.into()))
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
    for name in COUNTS {
        errors.not_negative(&status.get(name));
    }
    replica_counts(&status, &["updatedReplicas", "readyReplicas", "availableReplicas"], errors);
    available_are_ready(&status, "readyReplicas", errors);
    collisions_grow(&status, &At::member(old, "status"), errors);
}
