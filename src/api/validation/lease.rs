//! Leases.

use super::at::At;
use super::errors::Errors;
use crate::api::ObjectMap;
use crate::api::meta::format::label_key;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.opt_int().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&duration, duration.int(), "must be greater than 0");
    }
    errors.not_negative(&spec.get("leaseTransitions"));
    let strategy = spec.get("strategy");
    if strategy.is_set() {
        self::strategy(&strategy, errors);
    }
    let holder = spec.get("preferredHolder");
    if !holder.text().is_empty() && strategy.text().is_empty() {
        errors.forbidden(&holder, "may only be specified if `strategy` is defined");
    }
}

/// How a holder is chosen.
fn strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    // Where upstream says it is.
    let (place, text) = (strategy.get("strategy"), strategy.text());
    if text.contains('/') {
        errors.invalid_each(&place, text, label_key(text));
    } else {
        errors.one_of(&place, text, &["OldestEmulationVersion"]);
    }
}
