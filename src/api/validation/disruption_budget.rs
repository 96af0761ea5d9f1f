//! Disruption budgets.

use super::apps::amount;
use super::at::At;
use super::condition;
use super::errors::{Errors, Verbatim};
use super::selector;
use crate::api::ObjectMap;
use crate::gotext;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let (available, unavailable) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if available.is_set() && unavailable.is_set() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.invalid(&spec, internal(&spec), why);
    }
    for number in [available, unavailable] {
        if number.is_set() {
            let number = amount(number, 0);
            number.check(errors);
            number.at_most_all(errors);
        }
    }
    selector::validate(&spec.get("selector"), errors);
    let policy = spec.get("unhealthyPodEvictionPolicy");
    let text = policy.opt_text().unwrap_or("IfHealthyBudget");
    errors.one_of(&policy, text, &["AlwaysAllow", "IfHealthyBudget"]);
}

/// Upstream prints its internal struct.
fn internal(spec: &At<'_, '_>) -> Verbatim {
    let json = |name: &str| gotext::json(spec.get(name).value());
    Verbatim(format!(
        "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
        json("minAvailable"),
        selector::shown(&spec.get("selector")).0,
        json("maxUnavailable"),
        json("unhealthyPodEvictionPolicy")
    ))
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    errors
        .none_negative(&status, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
    condition::validate_all(&status.get("conditions"), errors);
}
