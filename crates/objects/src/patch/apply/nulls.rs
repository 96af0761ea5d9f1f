//! Nulls in a configuration, which typed kinds treat as absent fields.

use super::schema::{DEDUCED, Form, MapType, Schema, TypeId};
use crate::tree::{Map, Value};

/// `object` without those declared fields that are null.
pub fn without_nulls(schema: &Schema, object: Map) -> Map {
    match &schema.atom(schema.root()).map {
        Some(map) => members(schema, map, object),
        None => object,
    }
}

fn members(schema: &Schema, map: &MapType, object: Map) -> Map {
    let kept = object.into_iter().filter(|(name, value)| !(value.is_null() && map.declares(name)));
    kept.map(|(name, value)| {
        let value = node(schema, map.member(&name), value);
        (name, value)
    })
    .collect()
}

fn node(schema: &Schema, id: TypeId, value: Value) -> Value {
    if id == DEDUCED {
        return value;
    }
    match (schema.form(id, &value), value) {
        (Form::Map(map), Value::Object(object)) => Value::Object(members(schema, map, object)),
        (Form::List(list), Value::Array(items)) => {
            Value::Array(items.into_iter().map(|item| node(schema, list.element, item)).collect())
        }
        (_, other) => other,
    }
}
