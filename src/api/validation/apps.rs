//! Kinds that keep pods running (`pkg/apis/apps/validation`).

pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
pub mod revision;
mod rollout;
pub mod stateful_set;

pub use rollout::amount;

use super::at::At;
use super::errors::Errors;

/// What all their statuses count. `extra` are counts beyond `replicas`, none of which may exceed it.
fn replica_counts(status: &At<'_, '_>, extra: &[&str], errors: &mut Errors) {
    let replicas = status.get("replicas").int();
    for count in extra.iter().map(|name| status.get(name)).filter(|count| count.int() > replicas) {
        errors.invalid(&count, count.int(), "cannot be greater than status.replicas");
    }
}

/// More available ones than ready ones cannot be.
fn available_are_ready(status: &At<'_, '_>, ready: &str, errors: &mut Errors) {
    let available = status.get("availableReplicas");
    if available.int() > status.get("readyReplicas").int() {
        errors.invalid(&available, available.int(), &format!("cannot be greater than {ready}"));
    }
}

fn collisions_grow(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
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
