//! Values of expressions. Those of an object borrow it: lists and maps are views, whose elements become values when
//! somebody looks at them.

mod display;
mod equal;
mod json;
mod key;
mod list;
mod map;
mod structure;
mod text;
mod view;

pub use json::{LargeIntegers, Room, to_json};
pub use key::{Entries, Key};
pub use list::List;
pub use map::Map;
pub use structure::{JSON_PATCH, Struct, check_type_names};
pub use text::Text;
pub use view::{view, view_object};

use std::sync::Arc;

use crate::library::opaque::Opaque;
use crate::time::Timestamp;
use crate::types::Type;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<str>);

impl Error {
    pub fn new(message: impl Into<Box<str>>) -> Self {
        Self(message.into())
    }

    pub fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    pub fn message(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Struct(Arc<Struct<'a>>),
    Type(Arc<Type>),
    Optional(Option<Arc<Value<'a>>>),
    Opaque(Arc<Opaque>),
}

impl<'a> Value<'a> {
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(Text::Shared(text.into().into()))
    }

    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub fn none() -> Self {
        Self::Optional(None)
    }

    pub fn owned(items: Vec<Self>) -> Self {
        Self::List(List::Owned(Arc::new(items)))
    }

    pub fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::owned(texts.into_iter().map(Self::string).collect())
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(is) = self { Some(*is) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The size of a value in cel-go's costs: the number of letters, bytes or elements; 1 for a value that has none.
    pub fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.letters() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }

    /// The same; the size of an optional is that of the value within.
    pub fn inner_size(&self) -> u64 {
        let mut at = self;
        while let Self::Optional(Some(inner)) = at {
            at = inner;
        }
        at.size()
    }

    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::parse("list(dyn)"),
            Self::Map(_) => Type::parse("map(dyn, dyn)"),
            Self::Struct(object) => Type::Struct(object.name.clone()),
            Self::Type(_) => Type::parse("type"),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Opaque(opaque) => Type::parse(opaque.type_name()),
        }
    }

    /// The name of its type in messages.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Struct(object) => &object.name,
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Opaque(opaque) => opaque.type_name(),
        }
    }

    /// Go's own name of the value's type, for messages.
    pub fn go_name(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::List(_) => "*types.baseList",
            Self::Map(_) => "*types.baseMap",
            Self::Struct(object) if object.name == JSON_PATCH => "*mutation.JSONPatchVal",
            Self::Struct(_) => "*dynamic.ObjectVal",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_name(),
        }
    }

    /// Whether it is the zero of its type; some types have none.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(is) => !is,
            Self::Int(number) => *number == 0,
            Self::Uint(number) => *number == 0,
            Self::Double(number) => *number == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(at) => at.is_zero(),
            Self::Duration(span) => *span == 0,
            Self::List(list) => list.is_zero(),
            Self::Map(map) => map.is_zero(),
            Self::Struct(object) => object.name != JSON_PATCH && object.fields.is_empty(),
            Self::Type(_) | Self::Optional(_) | Self::Opaque(_) => false,
        }
    }
}
