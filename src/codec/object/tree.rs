//! Objects of kinds without types as JSON: as upstream prints its maps, sorted by name at every level.

use crate::json::text::write_json;
use crate::tree::{Map, Value};

/// `metadata` members that stand before `resourceVersion` in objects that have types, in upstream's declaration order.
pub(super) const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];

/// An object that is open, sorted. It has metadata, for the resourceVersion to go into.
pub(super) fn encode(mut object: Map) -> Vec<u8> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata", Value::Object(Map::new()));
    }
    let mut object = Value::Object(object);
    object.sort_all();
    let mut out = Vec::with_capacity(2048);
    write_json(&mut out, &object);
    out.shrink_to_fit();
    out
}
