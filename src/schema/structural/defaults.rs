//! Nulls that stand for nothing, and values for what is missing.

use super::SchemaNode;
use crate::tree::{Map, Value};

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
    pub(super) fn default_members(&self, object: &mut Map) {
        for (name, schema) in self.properties.iter() {
            let Some(default) = &schema.default else { continue };
            if object.get(name).is_none_or(|value| schema.is_misplaced_null(value)) {
                object.insert(name.clone(), (**default).clone());
            }
        }
        for (name, value) in object.iter_mut() {
            let Some(schema) = self.member(name) else { continue };
            schema.default_value(value);
        }
    }

    fn default_value(&self, value: &mut Value) {
        if self.is_misplaced_null(value)
            && let Some(default) = &self.default
        {
            *value = (**default).clone();
        }
        match value {
            Value::Object(members) => self.default_members(members),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.default_value(item));
                }
            }
            _ => {}
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
