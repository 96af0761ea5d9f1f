//! Maps and objects.

use std::sync::Arc;

use rowplane_values::tree;

use super::view::{untyped, view};
use super::{Entries, Error, Key, Text, Value};
use crate::decl::{Decl, ObjectDecl};

#[derive(Clone, Debug)]
pub enum Map<'a> {
    Object(&'a tree::Map, &'a ObjectDecl),
    Values(&'a tree::Map, &'a Decl),
    Dyn(&'a tree::Map),
    Constant(&'a Entries<'a>),
    Owned(Arc<Entries<'a>>),
}

impl<'a> Map<'a> {
    /// The number of entries; in an object, fields that are not declared count too.
    pub fn len(&self) -> usize {
        match self {
            Self::Object(members, _) | Self::Values(members, _) | Self::Dyn(members) => members.len(),
            Self::Constant(entries) => entries.len(),
            Self::Owned(entries) => entries.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is an object's, of a declared type.
    pub fn is_declared(&self) -> bool {
        matches!(self, Self::Object(..) | Self::Values(..))
    }

    /// Objects are never taken for the zero of their type.
    pub fn is_zero(&self) -> bool {
        !self.is_declared() && self.is_empty()
    }

    /// The value of a key. Objects and their maps have keys that are text, and nothing else may be asked for.
    pub fn find(&self, key: &Value<'_>, hint: usize) -> Result<Option<Value<'a>>, Error> {
        if let Value::String(text) = key {
            return self.find_text(text, hint);
        }
        let entries = match self {
            Self::Object(..) | Self::Values(..) => return Err(Error::no_such_overload()),
            Self::Dyn(_) => return Ok(None),
            Self::Constant(entries) => entries,
            Self::Owned(entries) => &**entries,
        };
        Ok(Key::of(key).and_then(|key| entries.find(&key)).cloned())
    }

    pub fn find_text(&self, key: &str, hint: usize) -> Result<Option<Value<'a>>, Error> {
        let entries = match self {
            Self::Object(members, decl) => {
                let Some(field) = decl.field(key, hint) else { return Ok(None) };
                // A null is as good as nothing.
                let found = members.get(&field.name).filter(|value| !value.is_null());
                return found.map(|value| view(value, &field.decl)).transpose();
            }
            Self::Values(members, decl) => {
                return members.get(key).map(|value| view(value, decl)).transpose();
            }
            Self::Dyn(members) => return Ok(members.get(key).map(untyped)),
            Self::Constant(entries) => entries,
            Self::Owned(entries) => &**entries,
        };
        Ok(entries.find(&Key::String(Text::Borrowed(key))).cloned())
    }

    /// The keys, in order.
    pub fn keys(&self) -> Vec<Value<'a>> {
        let text = |text: &'a str| Value::String(Text::Borrowed(text));
        match self {
            Self::Object(members, decl) => {
                let fields = members.keys().filter_map(|name| decl.named(name));
                fields.map(|field| text(field.escaped.as_deref().unwrap_or(&field.name))).collect()
            }
            Self::Values(members, _) | Self::Dyn(members) => members.keys().map(|name| text(name)).collect(),
            Self::Constant(entries) => entries.iter().map(|(key, _)| key.value()).collect(),
            Self::Owned(entries) => entries.iter().map(|(key, _)| key.value()).collect(),
        }
    }

    /// The JSON of a member; `None` if there is none, or if the map was made by the expression.
    pub fn raw(&self, name: &str) -> Option<&'a tree::Value> {
        match self {
            Self::Object(members, _) | Self::Values(members, _) | Self::Dyn(members) => members.get(name),
            _ => None,
        }
    }

    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let (Self::Object(ours, decl), Self::Object(theirs, _)) = (self, other) {
            return Self::equal_objects(ours, theirs, decl, self, other);
        }
        for key in self.keys() {
            match (self.find(&key, 0)?, other.find(&key, 0)?) {
                (Some(one), Some(other)) if one.equals(&other)? => {}
                (None, None) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Equality of two objects. Fields that are not declared count only where both objects have them.
    fn equal_objects(
        ours: &tree::Map,
        theirs: &tree::Map,
        decl: &ObjectDecl,
        one: &Self,
        other: &Self,
    ) -> Result<bool, Error> {
        for (name, value) in ours {
            let Some(field) = decl.named(name) else {
                if theirs.get(name).is_some_and(|theirs| theirs != value) {
                    return Ok(false);
                }
                continue;
            };
            let Some(key) = &field.escaped else {
                if theirs.get(name) != Some(value) {
                    return Ok(false);
                }
                continue;
            };
            match (one.find_text(key, 0)?, other.find_text(key, 0)?) {
                (Some(one), Some(other)) if one.equals(&other)? => {}
                (None, None) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}
