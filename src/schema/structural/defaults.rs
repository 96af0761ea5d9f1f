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

    fn is_misplaced_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}
