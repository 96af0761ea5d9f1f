//! Whether two values mean the same (apimachinery `equality.Semantic`): nothing, null and empty lists are one, and so
//! are different spellings of an amount.

use crate::fields::identical;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::quantity;
use crate::tree::{Map, Value};

/// Members that hold amounts.
const AMOUNTS: [&str; 8] =
    ["requests", "limits", "capacity", "hard", "storage", "sizeLimit", "overhead", "divisor"];

pub fn same(left: &Value, right: &Value) -> bool {
    identical(left, right) || equal(Some(left), Some(right), Amounts::No)
}

/// Members that hold JSON as it is (those of drivers of devices), or texts by name.
const RAW: &str = "parameters";

/// Members that are structs without a pointer in upstream's types: an empty one equals an absent one.
const ALWAYS_THERE: [&str; 5] = ["metadata", "resources", "securityContext", "strategy", "updateStrategy"];

/// Refuses a change.
pub fn immutable(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if !same(new.value(), old.value()) {
        errors.invalid(new, new.value(), IMMUTABLE);
    }
}

/// Refuses a change of JSON that is kept as it is, in which an empty list is not the same as none.
pub fn immutable_raw(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if new.value() != old.value() {
        errors.invalid(new, new.value(), IMMUTABLE);
    }
}

/// Refuses a change of a text that upstream never leaves out.
pub fn immutable_text(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if new.text() != old.text() {
        errors.invalid(new, new.text(), IMMUTABLE);
    }
}

/// Refuses a change without telling the new value, as upstream's declared rules do.
pub fn immutable_unshown(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if !same(new.value(), old.value()) {
        errors.invalid(new, UNSHOWN, IMMUTABLE);
    }
}

/// A value that stays untold.
pub const UNSHOWN: &Value = &Value::Null;

pub const IMMUTABLE: &str = "field is immutable";

#[derive(Clone, Copy, PartialEq)]
enum Amounts {
    Yes,
    No,
}

fn equal(left: Option<&Value>, right: Option<&Value>, amounts: Amounts) -> bool {
    match (present(left), present(right)) {
        (None, None) => true,
        // Of what differs, most does not: all but a few of a list's elements.
        (Some(left), Some(right)) if identical(left, right) => true,
        (Some(Value::Object(left)), Some(Value::Object(right))) => equal_objects(left, right, amounts),
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(Some(l), Some(r), amounts))
        }
        (Some(left), Some(right)) if left == right => true,
        (Some(left), Some(right)) if amounts == Amounts::Yes => {
            let amount = |value: &Value| match value {
                Value::String(text) => quantity::nanos(text),
                other => quantity::nanos(&other.to_string()),
            };
            amount(left).is_some_and(|left| Some(left) == amount(right))
        }
        _ => false,
    }
}

fn equal_objects(left: &Map, right: &Map, amounts: Amounts) -> bool {
    let kind = |key: &str| if AMOUNTS.contains(&key) { Amounts::Yes } else { amounts };
    let member = |key: &str| {
        if key == RAW {
            return left.get(key) == right.get(key);
        }
        let value = |map: &'_ Map| -> bool { nothing(key, map.get(key)) };
        (value(left) && value(right)) || equal(left.get(key), right.get(key), kind(key))
    };
    left.keys().all(|key| member(key)) && right.keys().all(|key| left.contains_key(key) || member(key))
}

/// Whether a member says nothing.
fn nothing(key: &str, value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty() && ALWAYS_THERE.contains(&key),
        Some(Value::Array(items)) => items.is_empty(),
        // The name of a service to probe.
        Some(Value::String(text)) => text.is_empty() && key == "service",
        Some(_) => false,
    }
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}
