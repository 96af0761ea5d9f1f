//! Rules that workloads share.

use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::rules::selector;
use crate::kinds::prelude::*;

/// Validates that the label selector has not changed.
pub fn selector_stays(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let (selector, before) = (new.get("selector"), old.get("selector"));
    if !same(selector.value(), before.value()) {
        errors.invalid(&selector, selector::shown(&selector), IMMUTABLE);
    }
}

/// Validates that the selector exists and is not empty. `kind` is upstream's name for the kind.
pub fn selector_selects(selector: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    if !selector.is_set() {
        return errors.required(selector, "");
    }
    selector::validate(selector, errors);
    not_everything(selector, kind, errors);
}

pub fn not_everything(selector: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    if selector::is_empty(selector) {
        let why = format!("empty selector is invalid for {kind}");
        errors.invalid(selector, selector::shown(selector), &why);
    }
}

/// Validates the counts in a status: none of `extra` may exceed `replicas`.
pub fn replica_counts(status: &At<'_, '_>, extra: &[&str], errors: &mut Errors) {
    let replicas = status.get("replicas").int();
    for count in extra.iter().map(|name| status.get(name)).filter(|count| count.int() > replicas) {
        errors.invalid(&count, count.int(), "cannot be greater than status.replicas");
    }
}

/// Validates that there are not more available replicas than ready ones.
pub fn available_are_ready(status: &At<'_, '_>, ready: &str, errors: &mut Errors) {
    let available = status.get("availableReplicas");
    if available.int() > status.get("readyReplicas").int() {
        errors.invalid(&available, available.int(), &format!("cannot be greater than {ready}"));
    }
}

pub fn collisions_grow(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let (count, before) = (new.get("collisionCount"), old.get("collisionCount").opt_int());
    let decremented = match (count.opt_int(), before) {
        (None, Some(_)) => true,
        (Some(count), Some(before)) => count < before,
        (_, None) => false,
    };
    if decremented {
        errors.invalid(&count, count.int(), "cannot be decremented");
    }
}
