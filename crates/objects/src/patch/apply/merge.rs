//! Merges a configuration into an object. Fields that the configuration does not have stay; [`super::remove`] takes
//! them out.

use std::collections::BTreeMap;

use super::items::{self, Step};
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};
use crate::tree::{Map, Value};

/// `live` with the values of `config`.
pub fn merge(schema: &Schema, live: &Map, config: &Map) -> Map {
    match &schema.atom(schema.root()).map {
        Some(map) => members(schema, map, live, config),
        None => config.clone(),
    }
}

fn node(schema: &Schema, id: TypeId, live: &Value, config: &Value) -> Value {
    match schema.form(id, config) {
        Form::Scalar(_) => config.clone(),
        Form::Map(map) => match (live, config) {
            _ if map.atomic => config.clone(),
            (Value::Object(live), Value::Object(config)) if !(live.is_empty() && config.is_empty()) => {
                Value::Object(members(schema, map, live, config))
            }
            // A null does not replace an existing value.
            (Value::Object(object), Value::Null) if !object.is_empty() => live.clone(),
            _ => config.clone(),
        },
        Form::List(list) => match (live, config) {
            _ if list.relation == Relation::Atomic => config.clone(),
            (Value::Array(live), Value::Array(config)) if !(live.is_empty() && config.is_empty()) => {
                Value::Array(elements(schema, list, live, config))
            }
            (Value::Array(items), Value::Null) if !items.is_empty() => live.clone(),
            _ => config.clone(),
        },
    }
}

fn members(schema: &Schema, map: &MapType, live: &Map, config: &Map) -> Map {
    let mut merged = Map::with_capacity(live.len() + config.len());
    for (name, value) in live {
        let value = match config.get(name) {
            Some(config) => node(schema, map.member(name), value, config),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    for (name, value) in config.iter().filter(|(name, _)| !live.contains_key(name)) {
        merged.insert(name.clone(), value.clone());
    }
    merged
}

/// The elements of both lists. Shared elements are in the configuration's order; the other elements of the live list
/// stay near their neighbours.
fn elements(schema: &Schema, list: &ListType, live: &[Value], config: &[Value]) -> Vec<Value> {
    let steps = |items| -> Vec<Option<Step<'_>>> {
        <[Value]>::iter(items).map(|item| items::step(schema, list, item).ok()).collect()
    };
    let (left, right) = (steps(live), steps(config));
    let Numbered { left, right, count } = numbered(&left, &right);
    let mut in_config = vec![false; count];
    right.iter().flatten().for_each(|step| in_config[*step] = true);
    let mut twins = vec![Twin::None; count];
    for (step, item) in left.iter().zip(live) {
        if let Some(step) = *step {
            // If the live list has duplicates of an element, they are replaced instead of merged.
            twins[step] = if let Twin::None = twins[step] { Twin::One(item) } else { Twin::Many };
        }
    }
    let merged = |at: usize| match right[at].map(|step| twins[step]) {
        Some(Twin::One(twin)) => node(schema, list.element, twin, &config[at]),
        _ => config[at].clone(),
    };
    let is_shared = |step: &usize| !matches!(twins[*step], Twin::None);
    let mut shared = right.iter().flatten().copied().filter(is_shared).peekable();
    let mut emitted = vec![false; count];
    let mut out = Vec::with_capacity(live.len() + config.len());
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        let head = left.get(l).copied().flatten();
        let known = head.filter(|head| in_config[*head]);
        if l < left.len() && known.is_none() {
            out.push(live[l].clone());
            l += 1;
            continue;
        }
        let config_head = right.get(r).copied().flatten();
        let together = known.is_some() && known == config_head;
        // A shared element of the live list waits until the configuration reaches it.
        let waits = !together && r < right.len() && shared.peek().is_some_and(|next| Some(*next) != known);
        if known.is_some() && waits {
            l += 1;
            continue;
        }
        if together || known.is_some_and(|known| emitted[known]) {
            l += 1;
        }
        if r < right.len() {
            out.push(merged(r));
            if let Some(step) = config_head {
                emitted[step] = true;
            }
            if shared.peek().copied() == config_head {
                shared.next();
            }
            r += 1;
        }
    }
    out
}

/// The element of the live list that has a given step.
#[derive(Clone, Copy)]
enum Twin<'v> {
    None,
    One(&'v Value),
    Many,
}

/// The steps of both lists as numbers, equal for equal steps, since they are compared many times.
struct Numbered {
    left: Vec<Option<usize>>,
    right: Vec<Option<usize>>,
    /// The number of different steps.
    count: usize,
}

fn numbered(left: &[Option<Step<'_>>], right: &[Option<Step<'_>>]) -> Numbered {
    let mut known: BTreeMap<&Step<'_>, usize> = BTreeMap::new();
    let left: Vec<Option<usize>> = left.iter().map(|step| Some(number(&mut known, step.as_ref()?))).collect();
    let right = right.iter().map(|step| Some(number(&mut known, step.as_ref()?))).collect();
    Numbered { left, right, count: known.len() }
}

fn number<'s>(known: &mut BTreeMap<&'s Step<'s>, usize>, step: &'s Step<'s>) -> usize {
    let next = known.len();
    *known.entry(step).or_insert(next)
}
