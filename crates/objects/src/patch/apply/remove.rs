//! Removes paths from an object.

use super::fields::FieldSet;
use super::items;
use super::path::PathElement;
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};
use crate::tree::{Map, Value};

/// `object` without the members of `paths` and everything below them.
pub fn remove(schema: &Schema, object: &Map, paths: &FieldSet) -> Map {
    match &schema.atom(schema.root()).map {
        Some(map) => members(schema, map, object, paths),
        None => object.clone(),
    }
}

/// Removes paths below a value. Null if nothing is left: its container still exists, and may be owned.
fn node(schema: &Schema, id: TypeId, value: &Value, paths: &FieldSet) -> Value {
    match (schema.form(id, value), value) {
        (Form::Scalar(_), scalar) => scalar.clone(),
        (Form::Map(map), Value::Object(object)) if !map.atomic => {
            let left = members(schema, map, object, paths);
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        (Form::List(list), Value::Array(items)) if list.relation != Relation::Atomic => {
            let left = elements(schema, list, items, paths);
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (Form::Map(_) | Form::List(_), _) => Value::Null,
    }
}

fn members(schema: &Schema, map: &MapType, object: &Map, paths: &FieldSet) -> Map {
    let mut left = Map::with_capacity(object.len());
    for (name, value) in object {
        let element = PathElement::Field(name.as_str().into());
        if paths.has(&element) {
            continue;
        }
        let value = match paths.below(&element) {
            Some(below) => node(schema, map.member(name), value, below),
            None => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    left
}

fn elements(schema: &Schema, list: &ListType, items: &[Value], paths: &FieldSet) -> Vec<Value> {
    let keep = |item: &Value| match items::step(schema, list, item).map(|step| step.element()) {
        Ok(element) if paths.has(&element) => None,
        Ok(element) => match paths.below(&element) {
            Some(below) => Some(node(schema, list.element, item, below)),
            None => Some(item.clone()),
        },
        Err(_) => Some(item.clone()),
    };
    items.iter().filter_map(keep).collect()
}
