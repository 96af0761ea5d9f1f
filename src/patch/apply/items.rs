//! How elements of lists are called in paths.

use std::sync::Arc;

use crate::tree::Value;

use super::path::{PathElement, Plain};
use super::schema::{ListType, Relation, Schema};

/// The step to an element of a list that is not atomic; the error is upstream's text.
pub fn step(schema: &Schema, list: &ListType, item: &Value) -> Result<PathElement, String> {
    match &list.relation {
        Relation::Keyed(keys) => keyed(schema, list, keys, item),
        Relation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(PathElement::Value(Arc::new(Plain(scalar.clone())))),
        },
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
    }
}

fn keyed(schema: &Schema, list: &ListType, keys: &[Arc<str>], item: &Value) -> Result<PathElement, String> {
    let item = match item {
        Value::Object(item) => item,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let defaults = schema.atom(list.element).map.as_ref().map(|map| &map.fields);
    let default = |key: &str| defaults?.get(key)?.default.clone();
    let value = |key: &str| item.get(key).cloned().or_else(|| default(key));
    let field = |key: &Arc<str>| Some((key.clone(), Plain(value(key)?)));
    if let [key] = keys
        && let Some(field) = field(key)
    {
        return Ok(PathElement::Key(Arc::new([field])));
    }
    let mut fields: Vec<(Arc<str>, Plain)> = keys.iter().filter_map(field).collect();
    if fields.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort();
    Ok(PathElement::Key(fields.into()))
}

/// The elements of a list that have the same step.
pub enum Group<'v> {
    One(&'v Value),
    /// Duplicates.
    Many(Vec<&'v Value>),
}

impl<'v> Group<'v> {
    pub fn as_slice(&self) -> &[&'v Value] {
        match self {
            Self::One(item) => std::slice::from_ref(item),
            Self::Many(items) => items,
        }
    }

    fn push(&mut self, item: &'v Value) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, item]),
            Self::Many(items) => items.push(item),
        }
    }
}

/// The elements of a list by their steps, in the order of these. What has no step is left out: nobody can own it.
pub fn index<'v>(schema: &Schema, list: &ListType, items: &'v [Value]) -> Vec<(PathElement, Group<'v>)> {
    let with_step = |item| Some((step(schema, list, item).ok()?, item));
    let mut found: Vec<(PathElement, &Value)> = items.iter().filter_map(with_step).collect();
    // Stable: duplicates keep their order.
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut groups: Vec<(PathElement, Group<'_>)> = Vec::with_capacity(found.len());
    for (step, item) in found {
        match groups.last_mut() {
            Some((last, group)) if *last == step => group.push(item),
            _ => groups.push((step, Group::One(item))),
        }
    }
    groups
}
