//! The leaves of an object by their paths, without its schema: elements of a list are told apart by their names, or else
//! by their positions.

use std::collections::BTreeMap;

use crate::tree::{Map, Value};

/// Paths that tell nothing of what somebody wanted.
const UNTOLD: [&str; 3] = ["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"];

/// The leaves: paths like `spec.containers[name=app].image`. Empty objects and lists are leaves.
pub type Leaves = BTreeMap<String, Value>;

/// The leaves of an object.
pub fn leaves(object: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    walk(&mut leaves, String::new(), object);
    leaves
}

fn walk(leaves: &mut Leaves, path: String, value: &Value) {
    if UNTOLD.contains(&path.as_str()) {
        return;
    }
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                walk(leaves, member(&path, name), value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let names = names(items);
            for (index, item) in items.iter().enumerate() {
                let element = match names.get(index) {
                    Some(name) => format!("{path}[name={name}]"),
                    None => format!("{path}[{index}]"),
                };
                walk(leaves, element, item);
            }
        }
        leaf => _ = leaves.insert(path, leaf.clone()),
    }
}

fn member(path: &str, name: &str) -> String {
    match name.contains(['.', '/', '[']) {
        true => format!("{path}[{name:?}]"),
        false if path.is_empty() => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

/// The names of a list's elements, if each has one of its own.
fn names(items: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = items.iter().filter_map(|item| item.get("name")?.as_str()).collect();
    let shown = names.clone();
    names.sort_unstable();
    names.dedup();
    if names.len() == items.len() { shown } else { Vec::new() }
}

/// The paths at which two objects differ, with the values of both.
pub fn differences(old: &Leaves, new: &Leaves) -> Vec<(String, Option<Value>, Option<Value>)> {
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let pairs = paths.into_iter().map(|path| (path.clone(), old.get(path).cloned(), new.get(path).cloned()));
    pairs.filter(|(_, old, new)| old != new).collect()
}

/// A value in a line.
pub fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        Value::String(text) => text.to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => text,
    }
}

/// An object without what the server alone writes, for people to compare.
pub fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        forget(metadata, &["managedFields", "resourceVersion", "generation"]);
    }
    object
}

/// Removes members of an object.
pub fn forget(members: &mut Map, names: &[&str]) {
    names.iter().for_each(|name| _ = members.shift_remove(name));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn leaves_by_names_and_positions() {
        let object = json!({"metadata": {"managedFields": [1], "labels": {"a.b/c": "x"}, "finalizers": []},
            "spec": {"containers": [{"name": "app", "args": ["1", "2"]}]}});
        let found: Vec<String> = leaves(&object).into_keys().collect();
        let expected = [
            "metadata.finalizers",
            "metadata.labels[\"a.b/c\"]",
            "spec.containers[name=app].args[0]",
            "spec.containers[name=app].args[1]",
            "spec.containers[name=app].name",
        ];
        assert_eq!(found, expected);
    }
}
