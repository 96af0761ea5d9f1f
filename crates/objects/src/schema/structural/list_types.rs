//! Lists that are sets or maps: no item twice.

use std::collections::HashMap;

use super::outcome::{shown, sorted_json};
use super::place::ValuePath;
use super::{ListType, SchemaNode, Structural};
use crate::causes::{Cause, Causes};
use crate::tree::{Map, Text, Value, work};

impl Structural {
    /// The errors of an object's sets and map-like lists. Upstream looks for them after a change only if there were none
    /// before.
    pub fn list_type_causes(&self, object: &Map) -> Causes {
        let mut causes = Causes::default();
        members(&self.root, object, &ValuePath::ROOT, &mut causes);
        causes
    }
}

fn members(schema: &SchemaNode, object: &Map, at: &ValuePath<'_>, causes: &mut Causes) {
    super::validate::each_member(schema, object, &mut |of_member, name, value, step| {
        below(of_member, value, &step.from(at, name), causes);
    });
}

fn below(schema: &SchemaNode, value: &Value, at: &ValuePath<'_>, causes: &mut Causes) {
    work::count(1);
    match value {
        Value::Object(object) => members(schema, object, at, causes),
        Value::Array(items) => {
            match &schema.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    let items: Vec<Item<'_>> = items.iter().map(Item::of).collect();
                    repeated(&items, at, causes, |item| item.shown());
                }
                ListType::Map(keys) => map(keys, items, at, causes),
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(schema, item, &at.item(index), causes);
                }
            }
        }
        _ => {}
    }
}

/// The identity of an item: a scalar, the JSON of a list or object, or that there is nothing.
#[derive(PartialEq, Eq, Hash)]
enum Item<'v> {
    Scalar(&'v Value),
    Compound(String),
    Absent,
}

impl<'v> Item<'v> {
    fn of(value: &'v Value) -> Self {
        match value {
            Value::Array(_) | Value::Object(_) => Self::Compound(sorted_json(value)),
            scalar => Self::Scalar(scalar),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Scalar(value) => shown(value),
            Self::Compound(json) => json.clone(),
            Self::Absent => "{}".to_owned(),
        }
    }
}

/// Tells of each item that is there more than once at its second place.
fn repeated(items: &[Item<'_>], at: &ValuePath<'_>, causes: &mut Causes, show: impl Fn(&Item<'_>) -> String) {
    if items.len() < 2 {
        return;
    }
    let mut times: HashMap<&Item<'_>, usize> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let times = times.entry(item).or_default();
        *times += 1;
        if *times == 2 {
            causes.add(|| Cause::duplicate(at.item(index).to_string(), show(item)));
        }
    }
}

fn map(keys: &[Text], items: &[Value], at: &ValuePath<'_>, causes: &mut Causes) {
    let stray = items.iter().enumerate().find(|(_, item)| !(item.is_object() || item.is_null()));
    if let Some((index, item)) = stray {
        let why = "must be an object for an array of list-type map";
        return causes.add(|| Cause::invalid(at.item(index).to_string(), shown(item), why));
    }
    if let [key] = keys {
        let items: Vec<Item<'_>> =
            items.iter().map(|item| item.get(key.as_str()).map_or(Item::Absent, Item::of)).collect();
        return repeated(&items, at, causes, |item| match item {
            Item::Scalar(value) => sorted_json(&single(key, (*value).clone())),
            Item::Compound(json) => format!("{{{}:{json}}}", crate::gotext::json_string(key)),
            Item::Absent => "{}".to_owned(),
        });
    }
    let items: Vec<Item<'_>> = items.iter().map(|item| Item::Compound(keys_of(keys, item))).collect();
    repeated(&items, at, causes, |item| item.shown());
}

fn single(key: &Text, value: Value) -> Value {
    let mut object = Map::with_capacity(1);
    object.push(key.clone(), value);
    object.into()
}

/// The keys that an item has, as JSON.
fn keys_of(keys: &[Text], item: &Value) -> String {
    let mut object = Map::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = item.get(key.as_str()) {
            object.insert(key.clone(), value.clone());
        }
    }
    sorted_json(&object.into())
}
