//! Functions with which rules read and set members.

use crate::fields::{self, ObjectMap};
use crate::quantity;
use crate::tree::{Value, json};

/// Whether a pointer is nil.
pub(super) fn is_absent(object: &ObjectMap, name: &str) -> bool {
    object.get(name).is_none_or(Value::is_null)
}

/// Whether a member that is no pointer is zero; absent means zero.
pub(super) fn is_zero(object: &ObjectMap, name: &str) -> bool {
    object.get(name).is_none_or(is_zero_value)
}

pub(super) fn is_zero_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Sets the default of a pointer.
pub(super) fn if_absent(object: &mut ObjectMap, name: &str, value: impl Into<Value>) {
    if is_absent(object, name) {
        object.insert(name, value.into());
    }
}

/// Sets the default of a member that is no pointer.
pub(super) fn if_zero(object: &mut ObjectMap, name: &str, value: impl Into<Value>) {
    if is_zero(object, name) {
        object.insert(name, value.into());
    }
}

/// A pointer to an empty struct.
pub(super) fn empty() -> Value {
    json!({})
}

pub(super) fn text<'a>(object: &'a ObjectMap, name: &str) -> &'a str {
    fields::text(object, &[name])
}

/// The elements of a list of structs.
pub(super) fn structs<'a>(object: &'a mut ObjectMap, name: &str) -> impl Iterator<Item = &'a mut ObjectMap> {
    let items = object.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// The struct in this member, if there is one.
pub(super) fn part<'a>(object: &'a mut ObjectMap, name: &str) -> Option<&'a mut ObjectMap> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

/// Adds the entries of `from` that `into` lacks.
pub(super) fn complete(into: &mut ObjectMap, from: &ObjectMap) {
    for (name, value) in from {
        into.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    into.sort_keys();
}

/// Rounds amounts up to thousandths.
pub(super) fn round_up(amounts: &mut ObjectMap) {
    for (_, amount) in amounts.iter_mut() {
        let rounded = amount.as_str().and_then(|text| quantity::round_up_to_milli(text).ok().flatten());
        if let Some(rounded) = rounded {
            *amount = rounded.into();
        }
    }
}
