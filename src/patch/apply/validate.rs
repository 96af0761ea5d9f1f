//! Whether a configuration fits the schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::items;
use super::path::PathElement;
use super::schema::{DEDUCED, Form, ListType, MapType, Relation, Schema, TypeId, check_scalar, shown};

/// What is wrong with a configuration, as upstream says it: `.path: text`, and several on lines of their own.
pub fn validate(schema: &Schema, config: &Map<String, Value>) -> Result<(), String> {
    let mut walk = Walk { schema, path: String::new(), errors: Vec::new() };
    if let Some(map) = &schema.atom(schema.root()).map {
        walk.members(map, config);
    }
    match &walk.errors[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    path: String,
    errors: Vec<String>,
}

impl Walk<'_> {
    fn node(&mut self, id: TypeId, value: &Value) {
        let form = if id == DEDUCED { return } else { self.schema.form(id, value) };
        match (form, value) {
            (_, Value::Null) => {}
            (Form::Scalar(scalar), value) => {
                if let Err(why) = check_scalar(scalar, value) {
                    self.refuse(&why);
                }
            }
            (Form::Map(map), Value::Object(object)) => self.members(map, object),
            (Form::Map(_), other) => self.refuse(&format!("expected map, got {}", shown(other))),
            (Form::List(list), Value::Array(items)) => self.elements(list, items),
            (Form::List(_), other) => self.refuse(&format!("expected list, got {}", shown(other))),
        }
    }

    fn members(&mut self, map: &MapType, object: &Map<String, Value>) {
        for (name, value) in object {
            let known = map.fields.get(name.as_str()).map(|field| field.id).or(map.element);
            self.below(&PathElement::Field(name.as_str().into()), |walk| match known {
                Some(id) => walk.node(id, value),
                None => walk.refuse("field not declared in schema"),
            });
            // Upstream looks no further than the first.
            if known.is_none() {
                return;
            }
        }
    }

    fn elements(&mut self, list: &ListType, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = if list.relation == Relation::Atomic {
                PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))
            } else {
                match items::step(self.schema, list, item) {
                    Ok(element) => element,
                    Err(why) => return self.refuse(&format!("element {at}: {why}")),
                }
            };
            if !seen.insert(element.clone()) {
                self.refuse(&format!("duplicate entries for key {element}"));
            }
            self.below(&element, |walk| walk.node(list.element, item));
        }
    }

    fn below(&mut self, element: &PathElement, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&element.to_string());
        check(self);
        self.path.truncate(length);
    }

    fn refuse(&mut self, why: &str) {
        self.errors.push(format!("{}: {why}", self.path));
    }
}
