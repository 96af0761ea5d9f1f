//! A value that is looked at; an object as a whole is no [`Value`], but its members.

use crate::tree::{Map, Number, Value};

#[derive(Clone, Copy, Debug)]
pub enum View<'v> {
    Null,
    Bool(bool),
    Number(&'v Number),
    String(&'v str),
    Array(&'v [Value]),
    Object(&'v Map),
}

impl<'v> From<&'v Value> for View<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::Array(items),
            Value::Object(members) => Self::Object(members),
        }
    }
}

impl View<'_> {
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => flag.into(),
            Self::Number(number) => number.clone().into(),
            Self::String(text) => text.into(),
            Self::Array(items) => Value::Array(items.to_vec()),
            Self::Object(members) => members.clone().into(),
        }
    }

    /// Whether both are the same scalar, or null.
    pub fn is_scalar(self, other: View<'_>) -> bool {
        match (self, other) {
            (Self::Null, View::Null) => true,
            (Self::Bool(one), View::Bool(other)) => one == other,
            (Self::Number(one), View::Number(other)) => one == other,
            (Self::String(one), View::String(other)) => one == other,
            _ => false,
        }
    }

    pub fn is(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(one), Value::Bool(other)) => one == *other,
            (Self::Number(one), Value::Number(other)) => one == other,
            (Self::String(one), Value::String(other)) => one == other,
            (Self::Array(one), Value::Array(other)) => one == other,
            (Self::Object(one), Value::Object(other)) => one == other,
            _ => false,
        }
    }
}
