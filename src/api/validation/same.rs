//! Whether two values mean the same (apimachinery `equality.Semantic`): nothing, null and empty lists are one, and so
//! are different spellings of an amount.

use serde_json::{Map, Value};

use super::at::At;
use super::errors::Errors;
use crate::quantity;

/// Members that hold amounts.
const AMOUNTS: [&str; 8] =
    ["requests", "limits", "capacity", "hard", "storage", "sizeLimit", "overhead", "divisor"];

pub fn same(left: &Value, right: &Value) -> bool {
    equal(Some(left), Some(right), Amounts::No)
}

/// Refuses a change.
pub fn immutable(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if !same(new.value(), old.value()) {
        errors.invalid(new, new.value(), IMMUTABLE);
    }
}

pub const IMMUTABLE: &str = "field is immutable";

#[derive(Clone, Copy, PartialEq)]
enum Amounts {
    Yes,
    No,
}

fn equal(left: Option<&Value>, right: Option<&Value>, amounts: Amounts) -> bool {
    match (present(left), present(right)) {
        (None, None) => true,
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

fn equal_objects(left: &Map<String, Value>, right: &Map<String, Value>, amounts: Amounts) -> bool {
    let kind = |key: &str| if AMOUNTS.contains(&key) { Amounts::Yes } else { amounts };
    left.iter().all(|(key, value)| equal(Some(value), right.get(key), kind(key)))
        && right.keys().all(|key| left.contains_key(key) || equal(None, right.get(key), kind(key)))
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}
