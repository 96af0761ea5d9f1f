//! Comparison of values in filters, as Go's templates compare them.

use std::cmp::Ordering;

use super::Found;
use crate::tree::Value;

/// A value that Go's templates can compare.
enum Basic<'a> {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(&'a str),
}

fn basic(found: Found<'_>) -> Option<Basic<'_>> {
    Some(match found {
        Found::Value(Value::Bool(flag)) => Basic::Bool(*flag),
        Found::Value(Value::String(text)) => Basic::Text(text),
        Found::Value(Value::Number(number)) => match number.as_i64() {
            Some(integer) => Basic::Integer(integer.into()),
            None => Basic::Float(number.as_f64()?),
        },
        Found::Value(Value::Null | Value::Array(_) | Value::Object(_)) => return None,
        Found::Text(text) => Basic::Text(text),
        Found::Integer(integer) => Basic::Integer(integer.into()),
        Found::Float(float) => Basic::Float(float),
        Found::Bool(flag) => Basic::Bool(flag),
        Found::Byte(byte) => Basic::Integer(byte.into()),
    })
}

/// `None` for values of different types, for flags that are to be ordered, and for operators that do not exist.
pub(super) fn compare(operator: &str, left: Found<'_>, right: Found<'_>) -> Option<bool> {
    let (order, is_ordered) = match (basic(left)?, basic(right)?) {
        (Basic::Bool(left), Basic::Bool(right)) => (left.cmp(&right), false),
        (Basic::Integer(left), Basic::Integer(right)) => (left.cmp(&right), true),
        (Basic::Float(left), Basic::Float(right)) => (left.partial_cmp(&right)?, true),
        (Basic::Text(left), Basic::Text(right)) => (left.cmp(right), true),
        _ => return None,
    };
    match operator {
        "==" => Some(order == Ordering::Equal),
        "!=" => Some(order != Ordering::Equal),
        _ if !is_ordered => None,
        "<" => Some(order == Ordering::Less),
        ">" => Some(order == Ordering::Greater),
        "<=" => Some(order != Ordering::Greater),
        ">=" => Some(order != Ordering::Less),
        _ => None,
    }
}
