//! From an `openAPIV3Schema` to a [`SchemaNode`].

use std::collections::BTreeMap;

use super::{Additional, ListType, MAX_DEPTH, NotStructural, SchemaNode, ValueType};
use crate::tree::{Map, Text, Value};

/// A schema and all below it.
pub fn node(schema: &Map) -> Result<SchemaNode, NotStructural> {
    Reader { path: Vec::new() }.node(schema)
}

/// The path to the schema that is being read.
struct Reader {
    path: Vec<String>,
}

impl Reader {
    fn node(&mut self, schema: &Map) -> Result<SchemaNode, NotStructural> {
        if self.path.len() > MAX_DEPTH {
            return Err(NotStructural::TooDeep);
        }
        Ok(SchemaNode {
            value_type: self.value_type(schema)?,
            format: self.text(schema, "format")?.into(),
            properties: self.properties(schema)?,
            additional: self.additional(schema)?,
            items: self.schema(schema, "items")?.map(Box::new),
            // A null is no default.
            default: schema.get("default").filter(|default| !default.is_null()).cloned(),
            nullable: self.flag(schema, "nullable")?,
            preserves_unknown: self.flag(schema, "x-kubernetes-preserve-unknown-fields")?,
            embedded: self.flag(schema, "x-kubernetes-embedded-resource")?,
            list_type: self.list_type(schema)?,
            is_atomic_map: self.text(schema, "x-kubernetes-map-type")? == "atomic",
        })
    }

    fn value_type(&self, schema: &Map) -> Result<ValueType, NotStructural> {
        Ok(match self.text(schema, "type")? {
            "" => ValueType::Any,
            "object" => ValueType::Object,
            "array" => ValueType::Array,
            "integer" | "number" => ValueType::Number,
            "string" => ValueType::String,
            "boolean" => ValueType::Boolean,
            _ => return Err(self.misfit("type", "a type of JSON")),
        })
    }

    fn properties(&mut self, schema: &Map) -> Result<BTreeMap<Text, SchemaNode>, NotStructural> {
        let Some(properties) = schema.get("properties") else { return Ok(Default::default()) };
        let properties = properties.as_object().ok_or_else(|| self.misfit("properties", "an object"))?;
        let mut read = |(name, property): (&Text, &Value)| {
            let property = property.as_object().ok_or_else(|| self.misfit("properties", "schemas"))?;
            Ok((name.clone(), self.below(name, property)?))
        };
        properties.iter().map(&mut read).collect()
    }

    fn additional(&mut self, schema: &Map) -> Result<Additional, NotStructural> {
        Ok(match schema.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unsaid,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(_) => match self.schema(schema, "additionalProperties")? {
                Some(schema) => Additional::Schema(Box::new(schema)),
                None => Additional::Unsaid,
            },
        })
    }

    fn schema(&mut self, schema: &Map, member: &'static str) -> Result<Option<SchemaNode>, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(below)) => self.below(member, below).map(Some),
            Some(_) => Err(self.misfit(member, "a schema")),
        }
    }

    fn below(&mut self, name: &str, schema: &Map) -> Result<SchemaNode, NotStructural> {
        self.path.push(name.to_owned());
        let read = self.node(schema)?;
        self.path.pop();
        Ok(read)
    }

    fn list_type(&self, schema: &Map) -> Result<ListType, NotStructural> {
        Ok(match self.text(schema, "x-kubernetes-list-type")? {
            "set" => ListType::Set,
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                ListType::Map(keys.map(Into::into).collect())
            }
            _ => ListType::Atomic,
        })
    }

    fn text<'s>(&self, schema: &'s Map, member: &'static str) -> Result<&'s str, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(""),
            Some(value) => value.as_str().ok_or_else(|| self.misfit(member, "a string")),
        }
    }

    fn flag(&self, schema: &Map, member: &'static str) -> Result<bool, NotStructural> {
        match schema.get(member) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.misfit(member, "a boolean")),
        }
    }

    fn misfit(&self, member: &'static str, want: &'static str) -> NotStructural {
        NotStructural::Misfit { path: self.path.join("."), member, want }
    }
}
