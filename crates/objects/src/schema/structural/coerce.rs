//! Members that embedded resources have in common with all objects: kind and apiVersion, which are strings, and metadata.

use super::outcome::shown;
use super::place::ValuePath;
use super::{SchemaNode, Structural};
use crate::causes::Cause;
use crate::schema::types;
use crate::schema::types::GoShape;
use crate::tree::{Map, Value};

impl Structural {
    /// Brings the metadata of embedded resources into its type's form. Whether something was unknown; the error is
    /// upstream's about the first value of the wrong type.
    pub(super) fn coerce_embedded(&self, object: &mut Map) -> Result<bool, String> {
        let mut coercer = Coercer { metadata: &self.metadata, unknown: false, drops_misfits: false };
        let coerced = coercer.members(&self.root, object, &ValuePath::ROOT);
        coerced.map_err(|cause| format!("{}: {}", cause.field, cause.message))?;
        Ok(coercer.unknown)
    }
}

impl Structural {
    /// Takes away what is of the wrong type in the metadata of an object and of embedded resources. Only what was written
    /// to the store by others can have such.
    pub(super) fn drop_misfits(&self, object: &mut Map) {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            drop_misfits(&self.metadata, metadata);
        }
        let mut coercer = Coercer { metadata: &self.metadata, unknown: false, drops_misfits: true };
        _ = coercer.members(&self.root, object, &ValuePath::ROOT);
    }
}

fn drop_misfits(shape: &GoShape, metadata: &mut Map) {
    metadata.retain(|name, value| {
        let mut alone: Map = [(name.clone(), value.clone())].into_iter().collect();
        types::conform(shape, None, &mut alone).is_ok()
    });
}

/// Brings the metadata of a value, which may be a resource itself, into its type's form.
pub fn coerce_resource(
    schema: &SchemaNode,
    value: &mut Value,
    at: &ValuePath<'_>,
    metadata: &GoShape,
) -> Result<(), Cause> {
    Coercer { metadata, unknown: false, drops_misfits: false }.value(schema, value, at)
}

/// Brings metadata in a default into its type's form; what is wrong with it is for validation to say.
pub fn coerce_default(schema: &SchemaNode, default: &mut Value, metadata: &GoShape) {
    _ = coerce_resource(schema, default, &ValuePath::ROOT, metadata);
}

struct Coercer<'a> {
    metadata: &'a GoShape,
    unknown: bool,
    /// Whether what is of the wrong type is taken away instead of told.
    drops_misfits: bool,
}

impl Coercer<'_> {
    fn members(&mut self, schema: &SchemaNode, object: &mut Map, at: &ValuePath<'_>) -> Result<(), Cause> {
        for (name, value) in object.iter_mut() {
            let (below, place) = match (schema.properties.get(name), schema.additional.schema()) {
                (Some(property), _) => (property, at.property(name)),
                (None, Some(additional)) => (additional, at.key(name)),
                (None, None) => continue,
            };
            self.value(below, value, &place)?;
        }
        Ok(())
    }

    fn value(&mut self, schema: &SchemaNode, value: &mut Value, at: &ValuePath<'_>) -> Result<(), Cause> {
        match value {
            Value::Object(object) => {
                if schema.embedded {
                    self.resource(object, at)?;
                }
                self.members(schema, object, at)
            }
            Value::Array(items) => {
                let Some(schema) = schema.items.as_deref() else { return Ok(()) };
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(index, item)| self.value(schema, item, &at.item(index)))
            }
            _ => Ok(()),
        }
    }

    fn resource(&mut self, object: &mut Map, at: &ValuePath<'_>) -> Result<(), Cause> {
        if self.drops_misfits {
            object.retain(|name, value| !matches!(name.as_str(), "apiVersion" | "kind") || value.is_string());
            match object.get_mut("metadata") {
                Some(Value::Object(metadata)) => drop_misfits(self.metadata, metadata),
                Some(value) if !value.is_null() => return Ok(()),
                _ => {}
            }
        }
        for name in ["apiVersion", "kind"] {
            if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
                return Err(misfit(at, name, value, "must be a string"));
            }
        }
        match object.get_mut("metadata") {
            None => {}
            Some(Value::Object(metadata)) => {
                let mut conformed = metadata.clone();
                match types::conform(self.metadata, None, &mut conformed) {
                    Ok(fit) => self.unknown |= fit.unknown,
                    Err(why) => return Err(misfit(at, "metadata", &metadata.clone().into(), &why)),
                }
                *metadata = conformed;
            }
            Some(null @ Value::Null) => *null = Map::new().into(),
            Some(value) => {
                let kind = crate::gotext::json_kind(value);
                let why = format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta");
                return Err(misfit(at, "metadata", value, &why));
            }
        }
        Ok(())
    }
}

fn misfit(at: &ValuePath<'_>, name: &str, value: &Value, why: &str) -> Cause {
    Cause::invalid(at.property(name).to_string(), shown(value), why)
}
