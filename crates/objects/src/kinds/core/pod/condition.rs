//! Conditions that the server sets itself.

use crate::fields;
use crate::kinds::prelude::*;
use crate::tree::json;

/// A condition of a pod that is true.
pub struct Condition<'a> {
    pub kind: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

impl<'a> Condition<'a> {
    /// A condition without reason and message.
    pub fn plain(kind: &'a str) -> Self {
        Self { kind, reason: "", message: "" }
    }
}

/// Sets a condition in a pod's status to true. Its time is now, unless it was true before.
pub fn set(status: &mut ObjectMap, condition: &Condition<'_>, now: &str) {
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let known =
        conditions.iter_mut().find(|known| known.get("type").is_some_and(|kind| kind == condition.kind));
    let since = known
        .as_ref()
        .and_then(|known| known.as_object())
        .filter(|known| fields::text(known, &["status"]) == "True");
    let since = since.map_or("", |known| fields::text(known, &["lastTransitionTime"]));
    let mut set = json!({
        "type": condition.kind,
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": if since.is_empty() { now } else { since },
    });
    for (field, text) in [("reason", condition.reason), ("message", condition.message)] {
        if !text.is_empty() {
            set[field] = text.into();
        }
    }
    match known {
        Some(known) => *known = set,
        None => conditions.push(set),
    }
}
