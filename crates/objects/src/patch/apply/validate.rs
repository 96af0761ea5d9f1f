//! Checks a configuration against the schema.

use std::collections::BTreeSet;
use std::fmt;

use super::items::{self, Step};
use super::schema::{DEDUCED, Form, ListType, MapType, Relation, Schema, TypeId, check_scalar, shown};
use crate::tree::{Map, Value};

/// Validates a configuration. The error is upstream's text: `.path: text`, several on lines of their own.
pub fn validate(schema: &Schema, config: &Map) -> Result<(), String> {
    let mut walk = Walk { schema, errors: Vec::new(), bytes: 0, untold: 0 };
    if let Some(map) = &schema.atom(schema.root()).map {
        walk.members(map, config, &Path::Root);
    }
    if walk.untold > 0 {
        walk.errors.push(format!("and {} more", walk.untold));
    }
    match &walk.errors[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// How many errors are reported at most, and after how many bytes of text no more are. All errors are counted.
const TOLD_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;

struct Walk<'a> {
    schema: &'a Schema,
    errors: Vec<String>,
    bytes: usize,
    untold: usize,
}

/// The path to a value. Its text is made only if there is an error.
enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
    Element(&'p Path<'p>, &'p Step<'p>),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, at) => write!(f, "{parent}[{at}]"),
            Self::Element(parent, step) => write!(f, "{parent}{}", step.element()),
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
                // Upstream stops at the first unknown field.
                None => return self.refuse(&below, "field not declared in schema"),
            }
        }
    }

    fn elements(&mut self, list: &ListType, items: &[Value], path: &Path<'_>) {
        if list.relation == Relation::Atomic {
            for (at, item) in items.iter().enumerate() {
                self.node(list.element, item, &Path::Index(path, at));
            }
            return;
        }
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            match items::step(self.schema, list, item) {
                Ok(step) => {
                    if seen.contains(&step) {
                        self.refuse(path, &format!("duplicate entries for key {}", step.element()));
                    }
                    self.node(list.element, item, &Path::Element(path, &step));
                    seen.insert(step);
                }
                // Upstream stops here, too.
                Err(why) => return self.refuse(path, &format!("element {at}: {why}")),
            }
        }
    }

    fn refuse(&mut self, path: &Path<'_>, why: &str) {
        if self.errors.len() >= TOLD_MAX || self.bytes >= BYTES_MAX {
            self.untold += 1;
            return;
        }
        let text = format!("{path}: {why}");
        self.bytes += text.len();
        self.errors.push(text);
    }
}
