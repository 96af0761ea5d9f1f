//! Atomic lists, maps and structs of a configuration: an apply replaces them as a whole.

use super::path::PathElement;
use super::schema::{Relation, Schema, TypeId};
use crate::tree::{Map, Value};

/// The paths of a configuration's atomic lists, maps and structs. Recurses as deep as the configuration nests.
pub fn atomics(schema: &Schema, config: &Map) -> Vec<String> {
    let mut walk = Walk { schema, path: Vec::new(), found: Vec::new() };
    walk.members(schema.root(), config);
    walk.found
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    found: Vec<String>,
}

impl Walk<'_> {
    fn node(&mut self, id: TypeId, value: &Value) {
        match value {
            Value::Object(members) => self.members(id, members),
            Value::Array(items) => self.elements(id, items),
            _ => {}
        }
    }

    /// Upstream looks only into declared members.
    fn members(&mut self, id: TypeId, members: &Map) {
        let schema = self.schema;
        let Some(map) = &schema.atom(id).map else { return };
        if map.atomic {
            self.tell();
        }
        for (name, value) in members {
            if map.declares(name) {
                let (step, below) = map.step(name);
                self.below(step, below, value);
            }
        }
    }

    fn elements(&mut self, id: TypeId, items: &[Value]) {
        let schema = self.schema;
        let Some(list) = &schema.atom(id).list else { return };
        if list.relation == Relation::Atomic {
            self.tell();
        }
        for (at, item) in (0..).zip(items) {
            self.below(PathElement::Index(at), list.element, item);
        }
    }

    fn below(&mut self, step: PathElement, id: TypeId, value: &Value) {
        self.path.push(step);
        self.node(id, value);
        self.path.pop();
    }

    fn tell(&mut self) {
        self.found.push(super::path::display(&self.path));
    }
}
