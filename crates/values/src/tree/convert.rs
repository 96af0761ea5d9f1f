//! Conversions of Rust's types into values, and comparisons with them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Map, Number, Text, Value};

/// A type that can be used in [`json!`](crate::tree::json!).
pub trait ToTree {
    fn to_tree(&self) -> Value;
}

impl<T: ToTree + ?Sized> ToTree for &T {
    fn to_tree(&self) -> Value {
        (**self).to_tree()
    }
}

impl ToTree for Value {
    fn to_tree(&self) -> Value {
        self.clone()
    }
}

impl ToTree for Map {
    fn to_tree(&self) -> Value {
        Value::Object(self.clone())
    }
}

impl<T: ToTree> ToTree for Option<T> {
    fn to_tree(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_tree)
    }
}

impl<T: ToTree> ToTree for [T] {
    fn to_tree(&self) -> Value {
        self.iter().map(T::to_tree).collect()
    }
}

impl<T: ToTree> ToTree for Vec<T> {
    fn to_tree(&self) -> Value {
        self.as_slice().to_tree()
    }
}

impl<T: ToTree, const N: usize> ToTree for [T; N] {
    fn to_tree(&self) -> Value {
        self.as_slice().to_tree()
    }
}

impl<T: ToTree> ToTree for BTreeSet<T> {
    fn to_tree(&self) -> Value {
        self.iter().map(T::to_tree).collect()
    }
}

impl<K: AsRef<str>, T: ToTree> ToTree for BTreeMap<K, T> {
    fn to_tree(&self) -> Value {
        Value::Object(self.iter().map(|(name, value)| (name.as_ref(), value.to_tree())).collect())
    }
}

impl ToTree for Text {
    fn to_tree(&self) -> Value {
        Value::String(self.clone())
    }
}

macro_rules! texts {
    ($($text:ty),*) => { $(
        impl ToTree for $text {
            fn to_tree(&self) -> Value {
                Value::String(Text::new(self))
            }
        }
    )* };
}

texts!(str, String, Box<str>, Arc<str>, Cow<'_, str>);

macro_rules! scalars {
    ($($scalar:ty),*) => { $(
        impl ToTree for $scalar {
            fn to_tree(&self) -> Value {
                (*self).into()
            }
        }
    )* };
}

scalars!(bool, i32, i64, u16, u32, u64, usize, f64);

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl From<$number> for Value {
            fn from(number: $number) -> Self {
                Self::Number(number.into())
            }
        }
    )* };
}

numbers!(u8, i32, i64, u16, u32, u64, usize);

/// Null for numbers that JSON does not have.
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Number::from_f64(number).map_or(Self::Null, Self::Number)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(text: Cow<'_, str>) -> Self {
        Self::String(Text::new(&text))
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<Map> for Value {
    fn from(members: Map) -> Self {
        Self::Object(members)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<Text>> FromIterator<(K, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        Self::Object(members.into_iter().collect())
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialEq<String> for Value {
    fn eq(&self, other: &String) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Value> for &str {
    fn eq(&self, other: &Value) -> bool {
        other == *self
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

macro_rules! equals {
    ($($number:ty),*) => { $(
        impl PartialEq<$number> for Value {
            fn eq(&self, other: &$number) -> bool {
                i64::try_from(*other).is_ok_and(|number| self.as_i64() == Some(number))
            }
        }

        impl PartialEq<$number> for &Value {
            fn eq(&self, other: &$number) -> bool {
                **self == *other
            }
        }

        impl PartialEq<$number> for &mut Value {
            fn eq(&self, other: &$number) -> bool {
                **self == *other
            }
        }
    )* };
}

equals!(i32, i64, usize);
