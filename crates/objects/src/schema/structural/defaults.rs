//! Nulls that stand for nothing, and values for what is missing.

use super::SchemaNode;
use crate::tree::{Map, Value};

/// Bytes of memory for the defaults of one object. A list may have a million items, and each may get a default.
const MOST: usize = 64 << 20;

/// The bytes that are left for the defaults of an object.
pub(super) struct DefaultRoom(usize);

/// The defaults of an object take more memory than objects do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of the object take more than {MOST} bytes")]
pub struct DefaultsTooLarge;

impl Default for DefaultRoom {
    fn default() -> Self {
        Self(MOST)
    }
}

impl DefaultRoom {
    fn copy(&mut self, default: &Value) -> Result<Value, DefaultsTooLarge> {
        self.0 = self.0.checked_sub(weight(default)).ok_or(DefaultsTooLarge)?;
        Ok(default.clone())
    }
}

/// About the bytes that a copy takes. No schema is so deep that this is.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
            Value::String(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

impl SchemaNode {
    /// Drops the nulls of members that may not be null and have no default.
    pub(super) fn drop_nulls(&self, object: &mut Map) {
        object.retain(|name, value| {
            let stands_for_nothing = |schema: &Self| !schema.nullable && schema.default.is_none();
            !(value.is_null() && self.member(name).is_some_and(stands_for_nothing))
        });
        for (name, value) in object.iter_mut() {
            if let Some(schema) = self.member(name) {
                schema.drop_nulls_below(value);
            }
        }
    }

    fn drop_nulls_below(&self, value: &mut Value) {
        match value {
            Value::Object(members) => self.drop_nulls(members),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.drop_nulls_below(item));
                }
            }
            _ => {}
        }
    }

    /// First the members of the object itself, so that defaults apply within defaults.
    pub(super) fn default_members(
        &self,
        object: &mut Map,
        room: &mut DefaultRoom,
    ) -> Result<(), DefaultsTooLarge> {
        for (name, schema) in self.properties.iter() {
            let Some(default) = &schema.default else { continue };
            if object.get(name).is_none_or(|value| schema.is_misplaced_null(value)) {
                object.insert(name.clone(), room.copy(default)?);
            }
        }
        for (name, value) in object.iter_mut() {
            let Some(schema) = self.member(name) else { continue };
            schema.default_value(value, room)?;
        }
        Ok(())
    }

    fn default_value(&self, value: &mut Value, room: &mut DefaultRoom) -> Result<(), DefaultsTooLarge> {
        if self.is_misplaced_null(value)
            && let Some(default) = &self.default
        {
            *value = room.copy(default)?;
        }
        match (value, &self.items) {
            (Value::Object(members), _) => self.default_members(members, room),
            (Value::Array(items), Some(schema)) => {
                items.iter_mut().try_for_each(|item| schema.default_value(item, room))
            }
            _ => Ok(()),
        }
    }

    /// Whether [`Self::drop_nulls`] and [`Self::default_members`] would change nothing, and no embedded resource fails
    /// `is_resource`.
    pub(super) fn leaves_as_is(&self, object: &Map, is_resource: &impl Fn(&Map) -> bool) -> bool {
        let mut defaults = self.properties.iter().filter(|(_, schema)| schema.default.is_some());
        defaults.all(|(name, _)| object.contains_key(name))
            && object.iter().all(|(name, value)| {
                self.member(name).is_none_or(|schema| schema.leaves_value_as_is(value, is_resource))
            })
    }

    fn leaves_value_as_is(&self, value: &Value, is_resource: &impl Fn(&Map) -> bool) -> bool {
        match value {
            Value::Null => self.nullable,
            Value::Object(members) => {
                (!self.embedded || is_resource(members)) && self.leaves_as_is(members, is_resource)
            }
            Value::Array(items) => {
                let mut items = items.iter();
                self.items
                    .as_ref()
                    .is_none_or(|schema| items.all(|item| schema.leaves_item_as_is(item, is_resource)))
            }
            _ => true,
        }
    }

    /// Nulls in lists stay, unless there is a default for them.
    fn leaves_item_as_is(&self, item: &Value, is_resource: &impl Fn(&Map) -> bool) -> bool {
        match item {
            Value::Null => self.nullable || self.default.is_none(),
            item => self.leaves_value_as_is(item, is_resource),
        }
    }

    fn is_misplaced_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}
