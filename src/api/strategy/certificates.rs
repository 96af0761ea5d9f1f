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

/// Only the approval subresource approves or denies: conditions that do are those of the stored object. Where they are
/// more or less, validation finds them.
pub(super) fn keep_approval(new: &mut ObjectMap, old: &ObjectMap) {
    let stored = fields::items(old, &["status", "conditions"]);
    for decision in ["Approved", "Denied"] {
        let decides = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(decision);
        let stored = stored.iter().filter(decides);
        let sent = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
        let Some(sent) = sent.and_then(Value::as_array_mut) else { continue };
        if sent.iter().filter(decides).count() != stored.clone().count() {
            continue;
        }
        for (sent, stored) in sent.iter_mut().filter(|condition| decides(&&**condition)).zip(stored) {
            *sent = stored.clone();
        }
    }
}
