//! JSON values as trees: the form of an object while a request works on it.
//!
//! The trees are like `serde_json`'s with other costs: names of members and texts of up to 23 bytes are stored inline,
//! longer texts are shared by clones, and the members of an object are one block of memory that keeps their order.

mod convert;
mod macros;
mod map;
mod text;
pub mod work;

use std::fmt;

pub use convert::ToTree;
pub use map::{Edit, Entry, Map};
pub use serde_json::Number;
pub use smol_str::SmolStr as Text;
pub use text::{Reader, Repetition};

pub use crate::tree_json as json;

/// A JSON value. Numbers are never NaN, so equality is total.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(Text),
    Array(Vec<Value>),
    Object(Map),
}

impl Value {
    /// Sorts the members of all objects by their names.
    pub fn sort_all(&mut self) {
        match self {
            Self::Object(members) => {
                members.sort_keys();
                members.values_mut().for_each(Self::sort_all);
            }
            Self::Array(items) => items.iter_mut().for_each(Self::sort_all),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
        }
    }

    /// Whether a number anywhere has a fraction or an exponent.
    pub fn has_floats(&self) -> bool {
        match self {
            Self::Object(members) => members.values().any(Self::has_floats),
            Self::Array(items) => items.iter().any(Self::has_floats),
            Self::Number(number) => number.is_f64(),
            Self::Null | Self::Bool(_) | Self::String(_) => false,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }

    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self { number.as_u64() } else { None }
    }

    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self { number.as_f64() } else { None }
    }

    pub fn as_array(&self) -> Option<&Vec<Value>> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    pub fn as_object(&self) -> Option<&Map> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn is_boolean(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    pub fn is_i64(&self) -> bool {
        matches!(self, Self::Number(number) if number.is_i64())
    }

    pub fn is_f64(&self) -> bool {
        matches!(self, Self::Number(number) if number.is_f64())
    }

    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Takes the value out and leaves null.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// A member of an object, or an element of a list.
    pub fn get(&self, at: impl At) -> Option<&Value> {
        at.of(self)
    }

    pub fn get_mut(&mut self, at: impl At) -> Option<&mut Value> {
        at.of_mut(self)
    }

    /// The value to which a JSON pointer (RFC 6901) leads.
    pub fn pointer(&self, path: &str) -> Option<&Value> {
        path.split('/').skip(1).map(unescaped).try_fold(self, |value, step| match value {
            Self::Array(items) => items.get(step.parse::<usize>().ok()?),
            value => value.get(&step),
        })
    }

    /// Like [`Value::pointer`], mutable.
    pub fn pointer_mut(&mut self, path: &str) -> Option<&mut Value> {
        path.split('/').skip(1).map(unescaped).try_fold(self, |value, step| match value {
            Self::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            value => value.get_mut(&step),
        })
    }
}

/// The value as compact JSON with only the necessary escapes; `{:#}` indents it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            if f.alternate() { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A key of a value: a member's name, or an element's index.
pub trait At {
    fn of(self, value: &Value) -> Option<&Value>;
    fn of_mut(self, value: &mut Value) -> Option<&mut Value>;
    fn place_in(self, value: &mut Value) -> &mut Value;
}

impl<T: AsRef<str> + ?Sized> At for &T {
    fn of(self, value: &Value) -> Option<&Value> {
        value.as_object()?.get(self.as_ref())
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        value.as_object_mut()?.get_mut(self.as_ref())
    }

    fn place_in(self, value: &mut Value) -> &mut Value {
        if value.is_null() {
            *value = Map::new().into();
        }
        &mut value.as_object_mut().expect("an object")[self.as_ref()]
    }
}

impl At for usize {
    fn of(self, value: &Value) -> Option<&Value> {
        value.as_array()?.get(self)
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        value.as_array_mut()?.get_mut(self)
    }

    fn place_in(self, value: &mut Value) -> &mut Value {
        &mut value.as_array_mut().expect("a list")[self]
    }
}

/// The value at a key; null if there is none.
impl<A: At> std::ops::Index<A> for Value {
    type Output = Value;

    fn index(&self, at: A) -> &Value {
        static NOTHING: Value = Value::Null;
        at.of(self).unwrap_or(&NOTHING)
    }
}

/// The mutable value at a key. A missing member is inserted as null, and null becomes an object.
///
/// # Panics
///
/// Panics if the value is neither an object nor null, or a list without that index: callers must know what they have.
impl<A: At> std::ops::IndexMut<A> for Value {
    fn index_mut(&mut self, at: A) -> &mut Value {
        at.place_in(self)
    }
}
