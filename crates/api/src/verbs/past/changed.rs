//! The difference between two versions of an object: the paths that a reader wants to see, and a JSON patch.

use crate::ObjectMap;
use crate::patch::apply::compare::compare;
use crate::patch::apply::fields::{FieldSet, field_paths};
use crate::patch::apply::path::PathElement;
use crate::patch::apply::schema::Schema;
use crate::tree::{Value, json};

/// Paths that the server changes by itself with every write.
const OF_THE_SERVER: [&[&str]; 3] =
    [&["metadata", "managedFields"], &["metadata", "resourceVersion"], &["metadata", "generation"]];

/// The highest paths that were added or removed, and those of the leaves that have another value, in the order of fields.
/// Elements of lists with keys are named by their keys: `spec.containers[name=app].image`.
pub fn changed_paths(schema: &Schema, old: &ObjectMap, new: &ObjectMap) -> Vec<String> {
    let server = field_paths(&OF_THE_SERVER);
    let found = compare(schema, old, new).mapped(|set: FieldSet| set.recursive_difference(&server));
    let mut paths: Vec<Vec<PathElement>> =
        [found.added, found.removed, found.modified].iter().flat_map(|set| set.paths()).collect();
    paths.sort();
    paths.dedup();
    let mut highest: Vec<Vec<PathElement>> = Vec::new();
    for path in paths {
        if highest.last().is_none_or(|above| !path.starts_with(above)) {
            highest.push(path);
        }
    }
    highest.iter().map(|path| path_text(path)).collect()
}

/// A path as people read it: `spec.containers[name=app].image`.
pub fn path_text(path: &[PathElement]) -> String {
    let mut text = String::new();
    for element in path {
        match element {
            PathElement::Field(name) if name.contains(['.', '/', '[']) => {
                text.push_str(&format!("[{}]", crate::gotext::quote(name)));
            }
            PathElement::Field(name) if text.is_empty() => text.push_str(name),
            PathElement::Field(name) => text.push_str(&format!(".{name}")),
            PathElement::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", plain(&value.0))).collect();
                text.push_str(&format!("[{}]", fields.join(",")));
            }
            PathElement::Value(value) => text.push_str(&format!("[={}]", plain(&value.0))),
            PathElement::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => crate::gotext::json(other),
    }
}

/// A JSON patch (RFC 6902) that makes the new version of the old one. Lists that differ are replaced.
pub fn json_patch(old: &ObjectMap, new: &ObjectMap) -> Value {
    let mut operations = Vec::new();
    diff(&mut operations, "", old, new);
    Value::Array(operations)
}

fn diff(operations: &mut Vec<Value>, at: &str, old: &ObjectMap, new: &ObjectMap) {
    let pointer = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    for (name, _) in old.iter().filter(|(name, _)| !new.contains_key(name.as_str())) {
        operations.push(json!({"op": "remove", "path": pointer(name)}));
    }
    for (name, value) in new {
        let path = pointer(name);
        match (old.get(name.as_str()), value) {
            (Some(before), _) if before == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => diff(operations, &path, before, after),
            (Some(_), _) => operations.push(json!({"op": "replace", "path": path, "value": value.clone()})),
            (None, _) => operations.push(json!({"op": "add", "path": path, "value": value.clone()})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::samples;
    use crate::schema::names::Gvr;

    #[test]
    fn paths_name_elements_by_their_keys() {
        let served = samples::first();
        let pods = served.get(&Gvr::fixed("v1", "pods")).expect("pods");
        let schema = pods.schema("v1").expect("a schema");
        let pod = |image: &str, more: Value| {
            let mut pod = json!({
                "metadata": {"name": "p", "generation": image.len(), "managedFields": [{"manager": image}]},
                "spec": {"containers": [{"name": "app", "image": image}, {"name": "log"}]},
            });
            if let (Some(pod), Some(more)) = (pod["metadata"].as_object_mut(), more.as_object()) {
                pod.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            pod.as_object().expect("an object").clone()
        };
        let (old, new) = (pod("a:1", json!({})), pod("a:22", json!({"labels": {"x": "1", "a.b/c": "2"}})));
        let changed = changed_paths(schema, &old, &new);
        assert_eq!(changed, ["metadata.labels", "spec.containers[name=app].image"]);
        assert_eq!(changed_paths(schema, &new, &old), changed);
        let other = pod("a:22", json!({"labels": {"x": "1", "a.b/c": "3"}}));
        assert_eq!(changed_paths(schema, &new, &other), ["metadata.labels[\"a.b/c\"]"]);
        let mut touched = old.clone();
        touched.insert("metadata", json!({"name": "p", "managedFields": []}));
        assert_eq!(changed_paths(schema, &old, &touched), Vec::<String>::new());
    }

    #[test]
    fn a_patch_escapes_names() {
        let map = |value: Value| value.as_object().expect("an object").clone();
        let old = map(json!({"a": {"b/c": 1, "same": 1}, "gone": 1, "list": [1]}));
        let new = map(json!({"a": {"b/c": 2, "same": 1}, "list": [1, 2], "new~": 1}));
        let expected = json!([
            {"op": "remove", "path": "/gone"},
            {"op": "replace", "path": "/a/b~1c", "value": 2},
            {"op": "replace", "path": "/list", "value": [1, 2]},
            {"op": "add", "path": "/new~0", "value": 1},
        ]);
        assert_eq!(json_patch(&old, &new), expected);
    }
}
