//! Whether a configuration fits the schema.

use std::collections::BTreeSet;
use std::fmt;

use crate::tree::{Map, Value};

use super::items;
use super::path::PathElement;
use super::schema::{DEDUCED, Form, ListType, MapType, Relation, Schema, TypeId, check_scalar, shown};

/// What is wrong with a configuration, as upstream says it: `.path: text`, and several on lines of their own.
pub fn validate(schema: &Schema, config: &Map) -> Result<(), String> {
    let mut walk = Walk { schema, errors: Vec::new() };
    if let Some(map) = &schema.atom(schema.root()).map {
        walk.members(map, config, &Path::Root);
    }
    match &walk.errors[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    errors: Vec<String>,
}

/// The way to a value; text only where something is wrong.
enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    Element(&'p Path<'p>, &'p PathElement),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Element(parent, element) => write!(f, "{parent}{element}"),
        }
    }
}

impl Walk<'_> {
    fn node(&mut self, id: TypeId, value: &Value, path: &Path<'_>) {
        let form = if id == DEDUCED { return } else { self.schema.form(id, value) };
        match (form, value) {
            (_, Value::Null) => {}
            (Form::Scalar(scalar), value) => {
                if let Err(why) = check_scalar(scalar, value) {
                    self.refuse(path, &why);
                }
            }
            (Form::Map(map), Value::Object(object)) => self.members(map, object, path),
            (Form::Map(_), other) => self.refuse(path, &format!("expected map, got {}", shown(other))),
            (Form::List(list), Value::Array(items)) => self.elements(list, items, path),
            (Form::List(_), other) => self.refuse(path, &format!("expected list, got {}", shown(other))),
        }
    }

    fn members(&mut self, map: &MapType, object: &Map, path: &Path<'_>) {
        for (name, value) in object {
            let below = Path::Member(path, name);
            match map.fields.get(name.as_str()).map(|field| field.id).or(map.element) {
                Some(id) => self.node(id, value, &below),
                // Upstream looks no further than the first.
                None => return self.refuse(&below, "field not declared in schema"),
            }
        }
    }

    fn elements(&mut self, list: &ListType, items: &[Value], path: &Path<'_>) {
        let mut steps = Vec::with_capacity(items.len());
        let mut unnamed = None;
        for (at, item) in items.iter().enumerate() {
            match &list.relation {
                Relation::Atomic => steps.push(PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))),
                _ => match items::step(self.schema, list, item) {
                    Ok(step) => steps.push(step),
                    Err(why) => {
                        unnamed = Some(format!("element {at}: {why}"));
                        break;
                    }
                },
            }
        }
        let mut seen = BTreeSet::new();
        for (step, item) in steps.iter().zip(items) {
            if !seen.insert(step) {
                self.refuse(path, &format!("duplicate entries for key {step}"));
            }
            self.node(list.element, item, &Path::Element(path, step));
        }
        if let Some(why) = unnamed {
            self.refuse(path, &why);
        }
    }

    fn refuse(&mut self, path: &Path<'_>, why: &str) {
        self.errors.push(format!("{path}: {why}"));
    }
}
