//! Fields of dynamic objects, as the strategies read and replace them.

use serde_json::{Map, Value};

use super::Object;

pub(super) fn object<'a>(parent: &'a Object, key: &str) -> Option<&'a Object> {
    parent.get(key).and_then(Value::as_object)
}

/// The object under `key`, made if there is none.
pub(super) fn object_mut<'a>(parent: &'a mut Object, key: &str) -> &'a mut Object {
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
pub(super) fn text<'a>(parent: &'a Object, path: &[&str]) -> &'a str {
    at(parent, path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn at<'a>(parent: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(parent.get(*first)?, |value, key| value.get(*key))
}

pub(super) fn items<'a>(parent: &'a Object, path: &[&str]) -> &'a [Value] {
    at(parent, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Puts back what the stored object has under `key`, if anything.
pub(super) fn restore(new: &mut Object, old: &Object, key: &str) {
    match old.get(key).filter(|value| !value.is_null()) {
        Some(value) => new.insert(key.to_owned(), value.clone()),
        None => new.shift_remove(key),
    };
}

pub(super) fn restore_metadata(new: &mut Object, old: &Object, key: &str) {
    let nothing = Map::new();
    restore(object_mut(new, "metadata"), object(old, "metadata").unwrap_or(&nothing), key);
}
