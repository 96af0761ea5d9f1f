//! `status.conditions` of a definition, and how they are set.

use crate::fields;
use crate::kinds::prelude::*;

/// A condition as it is to be.
pub struct Condition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    pub fn new(kind: &'static str, status: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: if status { "True" } else { "False" }, reason, message: message.into() }
    }

    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: "Unknown", reason, message: message.into() }
    }
}

/// The finalizer that waits for a definition's objects.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub fn find<'o>(object: &'o ObjectMap, kind: &str) -> Option<&'o Value> {
    let conditions = fields::items(object, &["status", "conditions"]);
    conditions.iter().find(|condition| condition["type"] == kind)
}

pub fn is_true(object: &ObjectMap, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Sets a condition, whose time moves only with its status (apiextensions `SetCRDCondition`).
pub fn set(object: &mut ObjectMap, condition: &Condition, now: &str) {
    let status = fields::object_mut(object, "status");
    if !status.get("conditions").is_some_and(Value::is_array) {
        status.insert("conditions", Value::Array(Vec::new()));
    }
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    let at = conditions.iter().position(|found| found["type"] == condition.kind).unwrap_or_else(|| {
        conditions.push(Value::Object([("type", condition.kind.into())].into_iter().collect::<Map>()));
        conditions.len() - 1
    });
    let Some(found) = conditions[at].as_object_mut() else { return };
    let moves = found.get("status").is_none_or(|status| *status != condition.status)
        || found.get("lastTransitionTime").is_none_or(Value::is_null);
    if moves {
        found.insert("lastTransitionTime", now.into());
    }
    found.insert("status", condition.status.into());
    found.insert("reason", condition.reason.into());
    found.insert("message", condition.message.as_str().into());
}

/// Takes a condition away.
pub fn remove(object: &mut ObjectMap, kind: &str) {
    if find(object, kind).is_some()
        && let Some(conditions) =
            fields::object_mut(object, "status").get_mut("conditions").and_then(Value::as_array_mut)
    {
        conditions.retain(|condition| condition["type"] != kind);
    }
}

/// The definition is marked for deletion: from now on no objects of it are created.
pub fn begin_deletion(object: &ObjectMap, now: &str) -> ObjectMap {
    let mut begun = object.clone();
    let metadata = fields::object_mut(&mut begun, "metadata");
    metadata.insert("deletionTimestamp", now.into());
    match metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        Some(finalizers) if finalizers.iter().any(|finalizer| finalizer == CLEANUP) => {}
        Some(finalizers) => finalizers.push(CLEANUP.into()),
        None => {
            metadata.insert("finalizers", vec![CLEANUP].into());
        }
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set(&mut begun, &Condition::new("Terminating", true, "InstanceDeletionPending", message), now);
    begun
}
