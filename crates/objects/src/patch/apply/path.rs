//! One step of a path in an object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::gotext;
use crate::tree::{Map, Text, Value};

/// A step, ordered as in FieldsV1. Steps are cheap to clone, since sets are copied often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A member of an object.
    Field(Arc<str>),
    /// A list element, identified by some of its fields, sorted by name.
    Key(Arc<[(Arc<str>, Plain)]>),
    /// A list element that is its own key.
    Value(Arc<Plain>),
    Index(i64),
}

/// A value with an order. Numbers compare by value, whether they are integers or floats.
#[derive(Clone, Debug)]
pub struct Plain(pub Value);

impl Ord for Plain {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Plain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Plain {}

/// The order of [`Plain`].
pub(super) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default()),
        },
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).map(|(one, other)| compare(one, other));
            pairs.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let sorted = |object: &Map| {
                let mut members: Vec<_> =
                    object.iter().map(|(key, value)| (key.clone(), Plain(value.clone()))).collect();
                members.sort();
                members
            };
            sorted(one).cmp(&sorted(other))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values are equal. Numbers compare by value; the order of members does not matter.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => compare(one, other) == Ordering::Equal,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_members(one, other),
        _ => one == other,
    }
}

/// Like [`same`], for two objects.
pub fn same_members(one: &Map, other: &Map) -> bool {
    let has = |(key, value): (&Text, &Value)| other.get(key).is_some_and(|other| same(value, other));
    one.len() == other.len() && one.iter().all(has)
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", text(&value.0))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", text(&value.0)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(string) => gotext::quote(string),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(object) => {
            object.iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
        }
        other => gotext::json(other),
    }
}

/// A path in the form that messages use.
pub fn display(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}
