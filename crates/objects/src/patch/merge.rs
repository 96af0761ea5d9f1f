//! Merge patch (RFC 7386) with the deviations of evanphx/json-patch v4, which upstream uses.

use super::{Decoding, PatchError};
use crate::gotext;
use crate::tree::{Map, Value};

/// Applies `patch` to `document`. With [`Decoding::Unchecked`], an array replaces the document, whose decoding fails
/// later.
pub fn apply(mut document: Value, patch: Value, decoding: Decoding) -> Result<Value, PatchError> {
    match (patch, decoding) {
        (Value::Object(patch), _) => {
            match &mut document {
                Value::Object(object) => merge_objects(object, patch),
                other => *other = without_nulls(Value::Object(patch)),
            }
            Ok(document)
        }
        (patch @ Value::Array(_), Decoding::Unchecked) => Ok(without_nulls(patch)),
        (Value::Null, _) | (_, Decoding::Unchecked) => {
            Err(PatchError::Malformed("Invalid JSON Patch".to_owned()))
        }
        (other, Decoding::Checked) => Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            gotext::json_kind(&other)
        ))),
    }
}

/// Whether `patch` touches the member at `place`, one of its ancestors, or one of its descendants.
pub fn concerns(patch: &Value, place: &[&str]) -> bool {
    let Some((first, rest)) = place.split_first() else { return true };
    let Value::Object(members) = patch else { return true };
    members.get(first).is_some_and(|below| concerns(below, rest))
}

fn merge_objects(object: &mut Map, patch: Map) {
    let mut object = object.edit();
    for (key, value) in patch {
        if value.is_null() {
            object.remove(&key);
            continue;
        }
        match object.get_mut(&key) {
            Some(current) => merge(current, value),
            None => object.insert(key, without_nulls(value)),
        }
    }
}

fn merge(current: &mut Value, patch: Value) {
    match (current, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_objects(object, patch),
        // Upstream's library does not prune in this case: an array that replaces an object keeps its nulls.
        (current @ Value::Object(_), patch) => *current = patch,
        (current, patch) => *current = without_nulls(patch),
    }
}

/// Drops null members at every depth. Nulls in arrays stay.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// Sorts those objects of a result that upstream's library decodes, since Go prints maps sorted: the objects on the
/// patch's paths, and everything new. A value that replaces an object stays as it was sent.
pub fn sort_touched(result: &mut Value, patch: &Value, before: Option<&Value>) {
    match (result, patch, before) {
        (Value::Object(result), Value::Object(patch), Some(Value::Object(before))) => {
            result.sort_keys();
            for (name, patch) in patch {
                if let Some(value) = result.get_mut(name) {
                    sort_touched(value, patch, before.get(name));
                }
            }
        }
        (_, _, Some(Value::Object(_))) => {}
        (result, ..) => result.sort_all(),
    }
}
