//! Reads and sets fields of dynamic objects. Values of the wrong type count as absent.

use crate::tree::{Map, Text, Value};

/// A JSON object in some version of its kind.
pub type ObjectMap = Map;

pub fn object<'a>(parent: &'a ObjectMap, key: &str) -> Option<&'a ObjectMap> {
    parent.get(key).and_then(Value::as_object)
}

/// Whether two values are equal including the order of members, which is fast to find out. If they are not, they may
/// still be equal in meaning, which a slower comparison must decide.
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

/// The object in this member. Inserted if it is missing.
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

/// The text at a path; empty if absent.
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

/// The objects of a list.
pub fn objects<'a>(parent: &'a ObjectMap, path: &[&str]) -> impl Iterator<Item = &'a ObjectMap> + use<'a> {
    items(parent, path).iter().filter_map(Value::as_object)
}

/// Sets a member to the value that the stored object has; removes it if that has none.
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
