//! `[?(…)]`: the items of lists that have something, or compare so with something.

use std::cmp::Ordering;

use super::evaluate::{Step, walk};
use super::{Budget, Filter, Found};
use crate::tree::Value;

pub(super) fn apply<'a>(filter: &'a Filter, input: Vec<Found<'a>>, budget: &mut Budget) -> Option<Step<'a>> {
    let mut found = Vec::new();
    for value in &input {
        let Found::Value(Value::Array(items)) = value else { return Some(Step::failed(input)) };
        for item in items {
            match verdict(filter, item, budget)? {
                FilterResult::Passes => found.push(Found::Value(item)),
                FilterResult::Fails => {}
                FilterResult::Broken => return Some(Step::failed(input)),
                FilterResult::Incomparable => return Some(Step::failed(found)),
            }
        }
    }
    Some(Step::found(found))
}

enum FilterResult {
    Passes,
    Fails,
    /// One side is no single value; the filter hands on what it was given.
    Broken,
    /// The values cannot be compared; the filter hands on what it has found so far.
    Incomparable,
}

fn verdict<'a>(filter: &'a Filter, item: &'a Value, budget: &mut Budget) -> Option<FilterResult> {
    let left = walk(&filter.left, vec![Found::Value(item)], budget)?;
    let Some((operator, right)) = &filter.compared else {
        return Some(if left.found.is_empty() { FilterResult::Fails } else { FilterResult::Passes });
    };
    let left = match (left.failed, &left.found[..]) {
        (false, []) => return Some(FilterResult::Fails),
        (false, [left]) => *left,
        _ => return Some(FilterResult::Broken),
    };
    let right = walk(right, vec![Found::Value(item)], budget)?;
    let right = match (right.failed, &right.found[..]) {
        (false, []) => return Some(FilterResult::Fails),
        (false, [right]) => *right,
        _ => return Some(FilterResult::Broken),
    };
    Some(match compare(operator, left, right) {
        Some(true) => FilterResult::Passes,
        Some(false) => FilterResult::Fails,
        None => FilterResult::Incomparable,
    })
}

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
fn compare(operator: &str, left: Found<'_>, right: Found<'_>) -> Option<bool> {
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
