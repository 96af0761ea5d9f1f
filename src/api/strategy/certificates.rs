//! Certificate signing requests (`pkg/registry/certificates/certificates/strategy.go`): who asks is not for the
//! client to say, and neither is the approval.

use serde_json::{Value, json};

use crate::api::{ObjectMap, fields};
use crate::user::User;

/// Whoever could choose these would get certificates for others.
pub(super) fn prepare_create(object: &mut ObjectMap, user: &User) {
    let spec = fields::object_mut(object, "spec");
    for key in ["username", "uid", "groups", "extra"] {
        spec.shift_remove(key);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// Only the approval subresource approves or denies.
pub(super) fn keep_approval(new: &mut ObjectMap, old: &ObjectMap) {
    let decides = |condition: &&Value| {
        matches!(condition.get("type").and_then(Value::as_str), Some("Approved" | "Denied"))
    };
    let path = ["status", "conditions"];
    let sent = fields::items(new, &path);
    let stored: Vec<&Value> = fields::items(old, &path).iter().filter(decides).collect();
    if sent.iter().filter(decides).eq(stored.iter().copied()) {
        return;
    }
    let others = sent.iter().filter(|condition| !decides(condition));
    let conditions: Vec<Value> = stored.into_iter().chain(others).cloned().collect();
    fields::object_mut(new, "status").insert("conditions".to_owned(), conditions.into());
}
