//! Objects without what Secrets hold.

use crate::tree::{Map, Value};

/// Empties the values of a Secret, and its annotations: kubectl and other managers keep copies of what they have applied
/// there, in forms of their own.
pub fn redact(object: &mut Map) {
    let is = |name: &str, wanted: &str| object.get(name).and_then(Value::as_str) == Some(wanted);
    if !is("kind", "Secret") || !is("apiVersion", "v1") {
        return;
    }
    for name in ["data", "stringData"] {
        empty(object.get_mut(name));
    }
    empty(object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")));
}

fn empty(values: Option<&mut Value>) {
    for (_, value) in values.and_then(Value::as_object_mut).into_iter().flat_map(Map::iter_mut) {
        *value = "".into();
    }
}
