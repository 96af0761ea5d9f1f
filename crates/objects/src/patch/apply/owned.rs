//! The fields that a configuration claims.

use super::fields::FieldSet;
use super::items::{self, Group, Step};
use super::path::PathElement;
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};
use crate::tree::{Map, Text, Value};

/// The paths of the object's leaves, of the elements of its lists, and of map keys that are not declared fields.
pub fn owned(schema: &Schema, object: &Map) -> FieldSet {
    match &schema.atom(schema.root()).map {
        Some(map) => members(schema, map, object),
        None => FieldSet::default(),
    }
}

/// Whether the node itself is a leaf, and the paths below it.
fn node(schema: &Schema, id: TypeId, value: &Value) -> (bool, FieldSet) {
    match schema.form(id, value) {
        Form::Scalar(_) => (true, FieldSet::default()),
        Form::Map(map) if map.atomic => (true, FieldSet::default()),
        Form::List(list) if list.relation == Relation::Atomic => (true, FieldSet::default()),
        Form::Map(map) => match value {
            Value::Object(object) => (false, members(schema, map, object)),
            _ => (false, FieldSet::default()),
        },
        Form::List(list) => match value {
            Value::Array(items) => (false, elements(schema, list, items)),
            _ => (false, FieldSet::default()),
        },
    }
}

fn members(schema: &Schema, map: &MapType, object: &Map) -> FieldSet {
    let member = |(name, value): (&Text, &Value)| {
        let (step, id) = map.step(name);
        let (leaf, below) = node(schema, id, value);
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        (step, leaf || empty || !map.declares(name), below)
    };
    object.iter().map(member).collect()
}

fn elements(schema: &Schema, list: &ListType, items: &[Value]) -> FieldSet {
    let element = |(step, group): (Step<'_>, Group<'_>)| {
        let below = match group {
            Group::One(item) => node(schema, list.element, item).1,
            Group::Many(_) => FieldSet::default(),
        };
        (step.element(), true, below)
    };
    let groups = items::index(schema, list, items);
    // Pruning can leave a null in place of an element. It has no name, but keeps the list alive (upstream's empty path
    // element).
    let named: usize = groups.iter().map(|(_, group)| group.as_slice().len()).sum();
    let nameless = (named < items.len()).then(|| (PathElement::Index(0), true, FieldSet::default()));
    groups.into_iter().map(element).chain(nameless).collect()
}
