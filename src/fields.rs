//! Fields of dynamic objects, as pure rules read and replace them; wrong types count as absent.

use crate::tree::{Map, Text, Value};

/// A JSON object in some version of its kind.
pub type ObjectMap = Map;

pub fn object<'a>(parent: &'a ObjectMap, key: &str) -> Option<&'a ObjectMap> {
    parent.get(key).and_then(Value::as_object)
}

/// Whether two values are the same to the order of members, which needs no search. Most of what is compared is; where
/// it is not, or what differs means the same, a comparison that knows what things mean has to tell.
pub fn identical(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let alike = |((name, value), (other_name, other)): ((&Text, &Value), (&Text, &Value))| {
                name == other_name && identical(value, other)
            };
            one.len() == other.len() && one.iter().zip(other).all(alike)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| identical(one, other))
        }
        _ => one == other,
    }
}

/// The object under `key`, made if there is none.
pub fn object_mut<'a>(parent: &'a mut ObjectMap, key: &str) -> &'a mut ObjectMap {
    let value = parent.entry(key).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("made an object above"),
    }
}

/// A text at a path; empty if absent.
pub fn text<'a>(parent: &'a ObjectMap, path: &[&str]) -> &'a str {
    at(parent, path).and_then(Value::as_str).unwrap_or_default()
}

pub fn at<'a>(parent: &'a ObjectMap, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(parent.get(first)?, |value, key| value.get(*key))
}

pub fn items<'a>(parent: &'a ObjectMap, path: &[&str]) -> &'a [Value] {
    at(parent, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Puts back what the stored object has under `key`, if anything.
pub fn restore(new: &mut ObjectMap, old: &ObjectMap, key: &str) {
    match old.get(key).filter(|value| !value.is_null()) {
        Some(value) => new.insert(key, value.clone()),
        None => new.shift_remove(key),
    };
}

pub fn restore_metadata(new: &mut ObjectMap, old: &ObjectMap, key: &str) {
    let nothing = Map::new();
    restore(object_mut(new, "metadata"), object(old, "metadata").unwrap_or(&nothing), key);
}
