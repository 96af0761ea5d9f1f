//! The names of list elements in paths.

use std::cmp::Ordering;
use std::sync::Arc;

use super::path::{PathElement, Plain, compare};
use super::schema::{ListType, Relation, Schema};
use crate::tree::Value;

/// The step to a list element, which borrows from the element: there are many of these, and few are turned into paths.
#[derive(Clone, Debug)]
pub enum Step<'v> {
    /// An element that is identified by the only field of its key.
    Key([KeyField<'v>; 1]),
    /// An element that is identified by several fields, sorted by name.
    Keys(Vec<KeyField<'v>>),
    Value(&'v Value),
}

/// Name and value of a key field.
pub type KeyField<'v> = (&'v Arc<str>, &'v Value);

impl Step<'_> {
    pub fn element(&self) -> PathElement {
        match self {
            Self::Value(value) => PathElement::Value(Arc::new(Plain((*value).clone()))),
            keyed => {
                let field = |(name, value): &KeyField<'_>| ((*name).clone(), Plain((*value).clone()));
                PathElement::Key(keyed.fields().iter().map(field).collect())
            }
        }
    }

    /// The fields of the key, sorted by name; none if the element is its own key.
    pub fn fields(&self) -> &[KeyField<'_>] {
        match self {
            Self::Key(field) => field,
            Self::Keys(fields) => fields,
            Self::Value(_) => &[],
        }
    }
}

impl Ord for Step<'_> {
    /// The order of [`super::path::PathElement`]. The steps of one list are all of the same variant.
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Self::Value(one), Self::Value(other)) = (self, other) {
            return compare(one, other);
        }
        let (one, other) = (self.fields(), other.fields());
        let pairs = one.iter().zip(other);
        pairs
            .map(|((name, value), (other_name, other))| {
                // Most names are shared with the schema.
                let names =
                    if Arc::ptr_eq(name, other_name) { Ordering::Equal } else { name.cmp(other_name) };
                names.then_with(|| compare(value, other))
            })
            .find(|order| order.is_ne())
            .unwrap_or_else(|| one.len().cmp(&other.len()))
    }
}

impl PartialOrd for Step<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Step<'_> {}

/// The step to an element of a list that is not atomic. The error is upstream's text.
pub fn step<'v>(schema: &'v Schema, list: &'v ListType, item: &'v Value) -> Result<Step<'v>, String> {
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
            scalar => Ok(Step::Value(scalar)),
        },
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
    }
}

fn keyed<'v>(
    schema: &'v Schema,
    list: &'v ListType,
    keys: &'v [Arc<str>],
    item: &'v Value,
) -> Result<Step<'v>, String> {
    let item = match item {
        Value::Object(item) => item,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let defaults = schema.atom(list.element).map.as_ref().map(|map| &map.fields);
    let default = |key: &str| defaults?.get(key)?.default.as_ref();
    let field = |key: &'v Arc<str>| Some((key, item.get(key).or_else(|| default(key))?));
    if let [key] = keys
        && let Some(field) = field(key)
    {
        return Ok(Step::Key([field]));
    }
    let mut fields: Vec<KeyField<'v>> = keys.iter().filter_map(field).collect();
    if fields.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by_key(|(one, _)| *one);
    Ok(Step::Keys(fields))
}

/// The elements of a list that have the same step.
pub enum Group<'v> {
    One(&'v Value),
    /// Several elements, so duplicates.
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

/// Whether the index lacks some element since it has no step.
pub fn leaves_out(index: &[(Step<'_>, Group<'_>)], items: &[Value]) -> bool {
    index.iter().map(|(_, group)| group.as_slice().len()).sum::<usize>() < items.len()
}

/// Groups the elements of a list by their steps, sorted by step. Elements without a step are left out: nobody can own
/// them.
pub fn index<'v>(schema: &'v Schema, list: &'v ListType, items: &'v [Value]) -> Vec<(Step<'v>, Group<'v>)> {
    let with_step = |item| Some((step(schema, list, item).ok()?, item));
    let mut found: Vec<(Step<'v>, &Value)> = items.iter().filter_map(with_step).collect();
    // The sort is stable, so duplicates keep their order.
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut groups: Vec<(Step<'v>, Group<'_>)> = Vec::with_capacity(found.len());
    for (step, item) in found {
        match groups.last_mut() {
            Some((last, group)) if *last == step => group.push(item),
            _ => groups.push((step, Group::One(item))),
        }
    }
    groups
}
