//! The schemas within a schema.

use crate::tree::Value;

/// The keywords that hold schemas by name, and those that hold one or a list.
const MAPS: [&str; 4] = ["properties", "definitions", "patternProperties", "dependencies"];
const LISTS: [&str; 7] =
    ["items", "additionalProperties", "additionalItems", "not", "allOf", "anyOf", "oneOf"];

/// The schemas that stand in a schema, under any keyword.
pub fn schemas_below(schema: &Value) -> impl Iterator<Item = &Value> {
    let maps = MAPS.iter().filter_map(|name| schema.get(*name)?.as_object()).flat_map(|map| map.values());
    let lists = LISTS.iter().filter_map(|name| schema.get(*name));
    maps.chain(lists).flat_map(one_or_many).filter(|schema| schema.is_object())
}

fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}
