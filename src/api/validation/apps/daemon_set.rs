//! Daemon sets.

use super::super::at::At;
use super::super::errors::{Errors, Verbatim};
use super::super::{pod, selector};
use super::collisions_grow;
use super::deployment::{mismatch, selector_stays};
use super::rollout::amount;
use crate::api::ObjectMap;
use crate::gotext;

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
    if selector::matches(&selector, &template.dig(&["metadata", "labels"])) == Some(false) {
        mismatch(&template, errors);
    }
    if selector::is_empty(&selector) {
        errors.invalid(&selector, selector::shown(&selector), "empty selector is invalid for daemonset");
    }
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
        other => {
            let json = |name: &str| match rolling.get(name).value() {
                serde_json::Value::Null => "0".to_owned(),
                value => gotext::json(value),
            };
            let rolling = if rolling.is_set() {
                format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", json("maxUnavailable"), json("maxSurge"))
            } else {
                "null".to_owned()
            };
            let kind = gotext::json(&other.into());
            let shown = Verbatim(format!("{{\"Type\":{kind},\"RollingUpdate\":{rolling}}}"));
            errors.not_supported(at, shown, &["RollingUpdate", "OnDelete"]);
        }
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
    for name in COUNTS {
        errors.not_negative(&status.get(name));
    }
    collisions_grow(&status, &At::member(old, "status"), errors);
}
