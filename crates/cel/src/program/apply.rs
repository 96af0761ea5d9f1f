//! Operators on values, and functions that only macros call.

use std::sync::Arc;

use super::Operator;
use crate::arithmetic;
use crate::library::lists;
use crate::value::{Entries, Error, Key, Map, Value};

pub(super) fn apply<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match operator {
        Operator::Add => arithmetic::add(left, right),
        Operator::Subtract => arithmetic::subtract(left, right),
        Operator::Multiply => arithmetic::multiply(left, right),
        Operator::Divide => arithmetic::divide(left, right),
        Operator::Modulo => arithmetic::modulo(left, right),
        _ => compare(operator, left, right).map(Value::Bool),
    }
}

/// The result of an operator that compares: equality, order, or `in`.
pub(super) fn compare(operator: Operator, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    let name = match operator {
        Operator::Equal => return left.equals(right),
        // What cannot be compared is not equal.
        Operator::NotEqual => return Ok(!left.equals(right).unwrap_or(false)),
        Operator::In => return contains(left, right),
        Operator::Less => "_<_",
        Operator::LessEqual => "_<=_",
        Operator::Greater => "_>_",
        _ => "_>=_",
    };
    if !left.is_ordered() {
        return Err(Error::new(format!("no such overload: {name}")));
    }
    let order = left.compare(right)?;
    Ok(match operator {
        Operator::Less => order.is_lt(),
        Operator::LessEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn contains(item: &Value<'_>, of: &Value<'_>) -> Result<bool, Error> {
    match of {
        Value::List(list) => lists::has(list, item),
        Value::Map(map) => Ok(map.find(item, 0)?.is_some()),
        _ => Err(Error::no_such_overload()),
    }
}

pub(super) fn is_member(item: &Value<'_>, of: &[Key<'static>]) -> bool {
    if let Value::String(text) = item {
        return of.iter().any(|key| matches!(key, Key::String(known) if **known == **text));
    }
    of.iter().any(|key| key.value().equals(item).unwrap_or(false))
}

/// A map with one more entry, or with those of another.
pub(super) fn insert<'a>(arguments: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let mut arguments = arguments.iter_mut().map(|argument| std::mem::replace(argument, Value::Null));
    let Some(Value::Map(map)) = arguments.next() else { return Err(Error::no_such_overload()) };
    let mut made = match map {
        Map::Owned(entries) => entries,
        other => Arc::new(pairs(&other)?.into_iter().fold(Entries::default(), |mut copy, (key, value)| {
            copy.put(key, value);
            copy
        })),
    };
    let added = match (arguments.next(), arguments.next()) {
        (Some(key), Some(value)) => vec![(Key::of(&key).ok_or_else(Error::no_such_overload)?, value)],
        (Some(Value::Map(other)), None) => pairs(&other)?,
        _ => return Err(Error::no_such_overload()),
    };
    let entries = Arc::make_mut(&mut made);
    for (key, value) in added {
        if entries.find(&key).is_some() {
            return Err(Error::new(format!("insert failed: key {} already exists", key.value().shown())));
        }
        entries.put(key, value);
    }
    Ok(Value::Map(Map::Owned(made)))
}

fn pairs<'a>(map: &Map<'a>) -> Result<Vec<(Key<'a>, Value<'a>)>, Error> {
    let mut pairs = Vec::new();
    for key in map.keys() {
        if let (Some(known), Some(value)) = (Key::of(&key), map.find(&key, 0)?) {
            pairs.push((known, value));
        }
    }
    Ok(pairs)
}
