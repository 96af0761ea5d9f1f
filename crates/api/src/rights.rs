//! Rights that writes need beyond their verb, as plugins and concerns ask for them.

pub mod aggregation;

use crate::auth::authorizer::{Attributes, Decision};
use crate::request::Request;
use crate::tree::Value;
use crate::{ObjectMap, metadata};

/// The fields that garbage collection changes, and what follows from any change.
const COLLECTED: [&str; 3] = ["ownerReferences", "finalizers", "managedFields"];

/// Whether the user may do this for a signer of certificates: by a right to it, or to all signers of its domain.
pub(super) async fn may_sign(request: &Request<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let path = Attributes::of_path(request.user, verb, "");
        let attributes =
            Attributes { group: "certificates.k8s.io", version: "*", resource: "signers", name, ..path };
        if matches!(request.authorizer.decide(&attributes).decided().await, Decision::Allow(_)) {
            return true;
        }
    }
    false
}

/// Whether a value says as much as none.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

/// Whether an update changes nothing but what garbage collection changes.
pub(super) fn only_collected(new: &ObjectMap, old: Option<&ObjectMap>) -> bool {
    let Some(old) = old else { return false };
    let empty = ObjectMap::new();
    let of_metadata = |object: &ObjectMap| metadata(object).cloned().unwrap_or_default();
    let (new_metadata, old_metadata) = (of_metadata(new), of_metadata(old));
    same(&new_metadata, &old_metadata, &COLLECTED) && {
        let strip = |object: &ObjectMap| {
            let mut object = object.clone();
            object.insert("metadata", Value::Object(empty.clone()));
            object
        };
        same(&strip(new), &strip(old), &[])
    }
}

/// Whether two objects have the same members but for some. Absent, null and empty mean the same.
fn same(one: &ObjectMap, other: &ObjectMap, but: &[&str]) -> bool {
    let is_empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    };
    one.keys().chain(other.keys()).filter(|name| !but.contains(&name.as_str())).all(|name| {
        let (one, other) = (one.get(name), other.get(name));
        one == other || is_empty(one) && is_empty(other)
    })
}
