//! Persistent volumes tell since when they are in their phase (`pkg/registry/core/persistentvolume/strategy.go`).

use crate::api::{ObjectMap, fields};

const SINCE: &str = "lastPhaseTransitionTime";

pub(super) fn prepare_create(object: &mut ObjectMap, now: &str) {
    fields::object_mut(object, "status").insert(SINCE, now.into());
}

pub(super) fn prepare_status_update(new: &mut ObjectMap, old: &ObjectMap, now: &str) {
    let path = ["status", "phase"];
    let moved = fields::text(new, &path) != fields::text(old, &path);
    let stored = fields::text(old, &["status", SINCE]);
    // A client may give the time itself.
    let since = match fields::text(new, &["status", SINCE]) {
        "" if !moved => stored,
        given if moved && (given.is_empty() || given == stored) => now,
        _ => return,
    };
    if !since.is_empty() {
        fields::object_mut(new, "status").insert(SINCE, since.into());
    }
}
