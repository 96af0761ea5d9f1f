//! An object with a configuration laid over it. Nothing is lost: what the configuration no longer says is for
//! [`super::remove`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::items;
use super::path::PathElement;
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};

/// `live` with what `config` says.
pub fn merge(schema: &Schema, live: &Map<String, Value>, config: &Map<String, Value>) -> Map<String, Value> {
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
            // Null says nothing about what is there.
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

fn members(
    schema: &Schema,
    map: &MapType,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = Map::with_capacity(live.len() + config.len());
    for (name, value) in live {
        let value = match config.get(name) {
            Some(config) => node(schema, map.member(name), value, config),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    for (name, value) in config.iter().filter(|(name, _)| !live.contains_key(*name)) {
        merged.insert(name.clone(), value.clone());
    }
    merged
}

/// Elements of both lists: shared ones in the order of the configuration, those of the live list near their places.
fn elements(schema: &Schema, list: &ListType, live: &[Value], config: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<Option<PathElement>> {
        items.iter().map(|item| items::step(schema, list, item).ok()).collect()
    };
    let (left, right) = (steps(live), steps(config));
    let in_config: BTreeSet<&PathElement> = right.iter().flatten().collect();
    let mut twins: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (step, item) in left.iter().zip(live) {
        if let Some(step) = step {
            // Duplicates are not merged with what replaces them all.
            twins.entry(step).and_modify(|twin| *twin = None).or_insert(Some(item));
        }
    }
    let merged = |at: usize| match right[at].as_ref().and_then(|step| twins.get(step)) {
        Some(Some(twin)) => node(schema, list.element, twin, &config[at]),
        _ => config[at].clone(),
    };
    let mut shared = right.iter().flatten().filter(|step| twins.contains_key(step)).peekable();
    let mut emitted: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len() + config.len());
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        let head = left.get(l).and_then(Option::as_ref);
        let known = head.filter(|head| in_config.contains(head));
        if l < left.len() && known.is_none() {
            out.push(live[l].clone());
            l += 1;
            continue;
        }
        let config_head = right.get(r).and_then(Option::as_ref);
        let together = known.is_some() && known == config_head;
        // A shared element waits for its turn in the configuration.
        let waits = !together && r < right.len() && shared.peek().is_some_and(|next| Some(*next) != known);
        if known.is_some() && waits {
            l += 1;
            continue;
        }
        if together || known.is_some_and(|known| emitted.contains(known)) {
            l += 1;
        }
        if r < right.len() {
            out.push(merged(r));
            emitted.extend(config_head);
            if shared.peek().copied() == config_head {
                shared.next();
            }
            r += 1;
        }
    }
    out
}
