//! What the defaults in a schema have to be: values that the schema takes, and that it knows whole.

use std::sync::Arc;

use super::coerce::coerce_resource;
use super::outcome::shown;
use super::place::Place;
use super::prune::Pruner;
use super::{OBJECT_MEMBERS, SchemaNode, Schemas, Structural};
use crate::causes::{Cause, Causes, aggregate};
use crate::schema::types::Types;
use crate::tree::{Map, Text, Value, work};

/// What the owner of a definition is held to.
pub struct DefaultRules<'a> {
    pub types: &'a Arc<Types>,
    /// Whether defaults may hold what their schema does not know, as those of the stored definition do.
    pub may_be_unpruned: bool,
    /// What is wrong with an object within an object, at a path.
    pub resource: fn(&str, &Map, &mut Causes),
}

impl DefaultRules<'_> {
    /// What is wrong with the defaults in a structural schema that stands at a path. Those of additional properties are
    /// nobody's business, upstream's neither.
    pub fn causes(&self, schema: &Map, path: &str) -> Causes {
        let mut causes = Causes::default();
        if !schema.iter().any(holds_default) {
            return causes;
        }
        // What cannot be read is told by the rules of schemas.
        let Ok(shape) = Schemas::new(self.types.clone()).read(schema) else { return causes };
        let walk = DefaultWalk { rules: self, shape: &shape };
        let place = Surroundings { resource: &shape.root, steps: &[], in_metadata: false };
        walk.node(schema, &shape.root, place, &Place::root(path), &mut causes);
        causes
    }

    /// Whether a default holds what its schema does not know.
    pub fn are_unpruned(types: &Arc<Types>, schema: &Map) -> bool {
        let of_none = |_: &str, _: &Map, _: &mut Causes| {};
        let rules = DefaultRules { types, may_be_unpruned: false, resource: of_none };
        let told = rules.causes(schema, "").into_vec();
        told.iter().any(|cause| cause.message.ends_with(UNPRUNED))
    }
}

const UNPRUNED: &str = "must not have unknown fields";

fn holds_default((name, value): (&Text, &Value)) -> bool {
    match value {
        Value::Null => false,
        _ if name == "default" => true,
        Value::Object(members) => members.iter().any(holds_default),
        Value::Array(items) => items.iter().any(|item| holds_default((name, item))),
        _ => false,
    }
}

/// Where a schema stands in the innermost object that has metadata.
#[derive(Clone, Copy)]
struct Surroundings<'s> {
    resource: &'s SchemaNode,
    steps: &'s [Step<'s>],
    /// Whether the schema is that of metadata, of a kind or of an apiVersion, or stands in one.
    in_metadata: bool,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Member(&'s str),
    Item,
}

struct DefaultWalk<'w> {
    rules: &'w DefaultRules<'w>,
    shape: &'w Structural,
}

impl DefaultWalk<'_> {
    fn node(
        &self,
        schema: &Map,
        node: &SchemaNode,
        around: Surroundings<'_>,
        at: &Place<'_>,
        causes: &mut Causes,
    ) {
        work::count(1);
        let around = match node.embedded {
            true => Surroundings { resource: node, steps: &[], in_metadata: false },
            false => around,
        };
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            let path = at.property("default").to_string();
            match around.in_metadata {
                true => self.in_metadata(node, default, around, &path, causes),
                false => self.plain(node, default, &path, causes),
            }
        }
        if let (Some(items), Some(of_item)) = (schema.get("items").and_then(Value::as_object), &node.items) {
            let steps = [around.steps, &[Step::Item]].concat();
            self.node(
                items,
                of_item,
                Surroundings { steps: &steps, ..around },
                &at.property("items"),
                causes,
            );
        }
        let properties = at.property("properties");
        for (name, of_property) in node.properties.iter() {
            let property = schema.get("properties").and_then(|properties| properties.get(name));
            let Some(property) = property.and_then(Value::as_object) else { continue };
            let steps = [around.steps, &[Step::Member(name)]].concat();
            let in_metadata = around.in_metadata || node.embedded && OBJECT_MEMBERS.contains(&name.as_str());
            let around = Surroundings { steps: &steps, in_metadata, ..around };
            self.node(property, of_property, around, &properties.key(name), causes);
        }
    }

    fn plain(&self, node: &SchemaNode, default: &Value, path: &str, causes: &mut Causes) {
        if !self.rules.may_be_unpruned {
            let mut pruned = default.clone();
            Pruner::default().value(Some(node), &mut pruned, node.unknown_members());
            if pruned != *default {
                causes.push(Cause::invalid(path, shown(default), UNPRUNED));
            }
        }
        let mut coerced = default.clone();
        if let Err(cause) = coerce_resource(node, &mut coerced, &Place::root(path), &self.shape.metadata) {
            return causes.push(cause);
        }
        let mut found = Causes::default();
        node.embedded_in(&coerced, &Place::root(path), &mut |place, object| {
            (self.rules.resource)(&place.to_string(), object, &mut found);
        });
        if found.is_empty() {
            found = node.validate_default(&coerced, path);
        }
        causes.append(found);
    }

    /// A default of metadata is looked at in an object that has nothing else.
    fn in_metadata(
        &self,
        node: &SchemaNode,
        default: &Value,
        around: Surroundings<'_>,
        path: &str,
        causes: &mut Causes,
    ) {
        let mut object = surrounded(default, around.steps);
        let refuse = |why: String, causes: &mut Causes| {
            let why = format!("must result in valid metadata: {why}");
            causes.push(Cause::invalid(path, shown(default), &why));
        };
        if let Err(cause) = coerce_resource(around.resource, &mut object, &Place::ROOT, &self.shape.metadata)
        {
            return refuse(format!("{}: {}", cause.field, cause.message), causes);
        }
        let mut found = Causes::default();
        around.resource.embedded_in(&object, &Place::ROOT, &mut |place, object| {
            (self.rules.resource)(&place.to_string(), object, &mut found);
        });
        match found.is_empty() {
            true => causes.append(node.validate_default(default, path)),
            false => refuse(aggregate(&found.into_vec()), causes),
        }
    }
}

/// An object in which a value stands.
fn surrounded(value: &Value, steps: &[Step<'_>]) -> Value {
    let mut object = steps.iter().rev().fold(value.clone(), |value, step| match step {
        Step::Item => Value::Array(vec![value]),
        Step::Member(name) => {
            let mut object = Map::with_capacity(3);
            object.push((*name).into(), value);
            object.into()
        }
    });
    if let Some(object) = object.as_object_mut() {
        object.entry("kind").or_insert("Validation".into());
        object.entry("apiVersion").or_insert("validation/v1".into());
    }
    object
}
