//! Objects within objects: where they stand.

use super::place::ValuePath;
use super::{SchemaNode, Structural};
use crate::tree::{Map, Value};

impl Structural {
    /// Visits the embedded resources of an object, outer ones first; not the object itself.
    pub fn embedded(&self, object: &Map, visit: &mut dyn FnMut(&ValuePath<'_>, &Map)) {
        members(&self.root, object, &ValuePath::ROOT, visit);
    }
}

impl SchemaNode {
    /// The variant of [`Structural::embedded`] for a value that may be an embedded resource itself.
    pub fn embedded_in(
        &self,
        value: &Value,
        at: &ValuePath<'_>,
        visit: &mut dyn FnMut(&ValuePath<'_>, &Map),
    ) {
        match value {
            Value::Object(object) => {
                if self.embedded {
                    visit(at, object);
                }
                members(self, object, at, visit);
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        schema.embedded_in(item, &at.item(index), visit);
                    }
                }
            }
            _ => {}
        }
    }
}

fn members(
    schema: &SchemaNode,
    object: &Map,
    at: &ValuePath<'_>,
    visit: &mut dyn FnMut(&ValuePath<'_>, &Map),
) {
    super::validate::each_member(schema, object, &mut |of_member, name, value, step| {
        of_member.embedded_in(value, &step.from(at, name), visit);
    });
}
