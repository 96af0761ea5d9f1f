//! Rules that workloads share.

use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::rules::selector;

/// What kinds with a label selector cannot change.
pub fn selector_stays(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let (selector, before) = (new.get("selector"), old.get("selector"));
    if !same(selector.value(), before.value()) {
        errors.invalid(&selector, selector::shown(&selector), IMMUTABLE);
    }
}

/// A selector that has to be there, and has to have terms. `kind` as upstream calls it.
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

/// What all their statuses count. `extra` are counts beyond `replicas`, none of which may exceed it.
pub fn replica_counts(status: &At<'_, '_>, extra: &[&str], errors: &mut Errors) {
    let replicas = status.get("replicas").int();
    for count in extra.iter().map(|name| status.get(name)).filter(|count| count.int() > replicas) {
        errors.invalid(&count, count.int(), "cannot be greater than status.replicas");
    }
}

/// More available ones than ready ones cannot be.
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
