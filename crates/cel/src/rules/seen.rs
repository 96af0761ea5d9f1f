//! JSON that rules look at.

use rowplane_values::tree::{Map, Value};

use crate::decl::Decl;
use crate::value::{Error, Value as CelValue, view, view_object};

/// A value where it stands. That of a whole object is a map, so that whoever holds one need not copy it into a value.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    Object(&'a Map),
    Other(&'a Value),
}

impl<'a> From<&'a Value> for Seen<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_object().map_or(Self::Other(value), Self::Object)
    }
}

impl<'a> Seen<'a> {
    pub fn is_null(self) -> bool {
        matches!(self, Self::Other(Value::Null))
    }

    pub fn member(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Object(members) => members.get(name),
            Self::Other(_) => None,
        }
    }

    /// Nothing, if it is no list.
    pub fn items(self) -> &'a [Value] {
        match self {
            Self::Other(Value::Array(items)) => items,
            _ => &[],
        }
    }

    pub fn view(self, decl: &'a Decl) -> Result<CelValue<'a>, Error> {
        match self {
            Self::Object(members) => view_object(members, decl),
            Self::Other(value) => view(value, decl),
        }
    }
}
