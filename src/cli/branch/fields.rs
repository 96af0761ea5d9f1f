//! Differences of objects, field by field, and who has made them.

use std::fmt;

use crate::tree::{Map, Value};

/// The fields of metadata that a server sets.
const OF_SERVER: [&str; 6] =
    ["resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink"];

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub path: Path,
    /// `None` if the field was not there.
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// The way to a field from the top of its object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    /// The item of a list with this name. Its other texts and numbers may be its key in sets of fields.
    Named {
        name: String,
        item: Map,
    },
    Item(usize),
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(name) if name.contains(['.', '/']) => write!(f, "[{name}]")?,
                Step::Member(name) if index == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Named { name, .. } => write!(f, "[name={name}]")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The fields that differ, without those that a server sets by itself.
pub fn differences(before: &Map, after: &Map) -> Vec<Difference> {
    let mut found = Vec::new();
    members(&own(before), &own(after), &Path::default(), &mut found);
    found
}

/// The object without what a server sets by itself.
fn own(object: &Map) -> Map {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        OF_SERVER.iter().for_each(|field| drop(metadata.shift_remove(field)));
    }
    object
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: Path, found: &mut Vec<Difference>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => members(before, after, &path, found),
        (Some(Value::Array(before)), Some(Value::Array(after))) => items(before, after, path, found),
        _ => found.push(Difference { path, before: before.cloned(), after: after.cloned() }),
    }
}

fn members(before: &Map, after: &Map, path: &Path, found: &mut Vec<Difference>) {
    let new = after.keys().filter(|name| !before.contains_key(name));
    for name in before.keys().chain(new) {
        compare(before.get(name), after.get(name), path.then(Step::Member(name.to_string())), found);
    }
}

/// Items with names are compared by name, others by place if there are as many.
fn items(before: &[Value], after: &[Value], path: Path, found: &mut Vec<Difference>) {
    if let (Some(old), Some(new)) = (by_name(before), by_name(after)) {
        let added = new.iter().filter(|(name, _)| !old.iter().any(|(known, _)| known == name));
        for (name, item) in &old {
            let other = new.iter().find(|(known, _)| known == name).map(|(_, item)| *item);
            compare(Some(item), other, path.then(Step::named(name, other.unwrap_or(item))), found);
        }
        for (name, item) in added {
            compare(None, Some(item), path.then(Step::named(name, item)), found);
        }
    } else if before.len() == after.len() {
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            compare(Some(before), Some(after), path.then(Step::Item(index)), found);
        }
    } else {
        let (before, after) = (Value::from(before.to_vec()), Value::from(after.to_vec()));
        found.push(Difference { path, before: Some(before), after: Some(after) });
    }
}

/// The items with their names, if all have one of their own.
fn by_name(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let named: Vec<(&str, &Value)> =
        items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect::<Option<_>>()?;
    let mut names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() == named.len()).then_some(named)
}

impl Step {
    fn named(name: &str, item: &Value) -> Self {
        Self::Named { name: name.to_owned(), item: item.as_object().cloned().unwrap_or_default() }
    }
}

impl Path {
    /// Whether the way begins with this member of the object.
    pub fn is_below(&self, member: &str) -> bool {
        matches!(self.0.first(), Some(Step::Member(first)) if first == member)
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The manager to whom `managedFields` say that the field belongs; of several the one who has written last.
    pub fn manager<'a>(&self, object: &'a Map) -> Option<&'a str> {
        let managed = object.get("metadata")?.get("managedFields")?.as_array()?;
        let owners = managed.iter().filter_map(|entry| {
            let depth = depth(entry.get("fieldsV1")?, &self.0)?;
            let time = entry.get("time").and_then(Value::as_str).unwrap_or_default();
            Some(((depth, time), entry.get("manager")?.as_str()?))
        });
        owners.max_by_key(|(rank, _)| *rank).map(|(_, manager)| manager)
    }
}

/// How many steps lead to the node of a set of fields that owns a path; `None` if none does.
fn depth(fields: &Value, path: &[Step]) -> Option<usize> {
    let mut node = fields.as_object()?;
    for (index, step) in path.iter().enumerate() {
        let next = match step {
            Step::Member(name) => node.get(&format!("f:{name}")),
            Step::Named { item, .. } => node.iter().find(|(key, _)| is_of(key, item)).map(|(_, node)| node),
            Step::Item(_) => None,
        };
        match next.and_then(Value::as_object) {
            Some(next) => node = next,
            // A node without members owns all that is below it.
            None => return (index > 0 && node.is_empty()).then_some(index),
        }
    }
    Some(path.len())
}

/// Whether a key of a set of fields is that of an item of a list.
fn is_of(key: &str, item: &Map) -> bool {
    let key = key.strip_prefix("k:").and_then(|key| serde_json::from_str::<Map>(key).ok());
    key.is_some_and(|key| key.iter().all(|(name, value)| item.get(name) == Some(value)))
}

/// The merge patch (RFC 7386) that makes one object's own fields those of another, but for `status`.
pub fn merge_patch(before: &Map, after: &Map) -> Map {
    let stripped = |object: &Map| {
        let mut object = own(object);
        ["status", "apiVersion", "kind"].iter().for_each(|field| drop(object.shift_remove(field)));
        object
    };
    patch(&stripped(before), &stripped(after))
}

fn patch(before: &Map, after: &Map) -> Map {
    let mut patched = Map::default();
    for name in before.keys().filter(|name| !after.contains_key(name)) {
        patched.insert(name.to_string(), Value::Null);
    }
    for (name, value) in after.iter() {
        match (before.get(name), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patched.insert(name.to_string(), Value::Object(patch(old, new)));
            }
            (_, new) => {
                patched.insert(name.to_string(), new.clone());
            }
        }
    }
    patched
}

/// Whether a merge patch would change nothing in an object.
pub fn is_applied(patch: &Map, object: &Map) -> bool {
    patch.iter().all(|(name, wanted)| match (wanted, object.get(name)) {
        (Value::Null, found) => found.is_none(),
        (Value::Object(wanted), Some(Value::Object(found))) => is_applied(wanted, found),
        (wanted, found) => found == Some(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    fn map(value: Value) -> Map {
        value.as_object().expect("an object").clone()
    }

    fn sample(image: &str, replicas: i64, labels: Value) -> Map {
        map(json!({
            "metadata": {"name": "web", "resourceVersion": image, "labels": labels, "managedFields": [
                {"manager": "helm", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {},
                    "f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:image": {}}}}}},
                {"manager": "anna", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}},
                    "f:metadata": {"f:labels": {}}}},
            ]},
            "spec": {"replicas": replicas, "containers": [{"name": "app", "image": image}, {"name": "side"}]},
        }))
    }

    #[test]
    fn fields_differ_by_name_and_have_managers() {
        let before = sample("a", 1, json!({"x": "1", "app.io/y": "2"}));
        let after = sample("b", 3, json!({"x": "1", "z": "3"}));
        let shown: Vec<String> = differences(&before, &after)
            .iter()
            .map(|difference| {
                let value = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
                let manager = difference.path.manager(&after).unwrap_or_default();
                format!(
                    "{} {}>{} {manager}",
                    difference.path,
                    value(&difference.before),
                    value(&difference.after)
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "metadata.labels[app.io/y] \"2\"> anna",
                "metadata.labels.z >\"3\" anna",
                "spec.replicas 1>3 anna",
                "spec.containers[name=app].image \"a\">\"b\" helm",
            ]
        );
    }

    #[test]
    fn a_patch_makes_one_object_of_another_and_knows_that_it_has() {
        let (before, after) =
            (sample("a", 1, json!({"x": "1", "y": "2"})), sample("b", 3, json!({"x": "1"})));
        let patch = merge_patch(&before, &after);
        assert_eq!(
            Value::Object(patch.clone()),
            json!({
                "metadata": {"labels": {"y": null}},
                "spec": {"replicas": 3, "containers": [{"name": "app", "image": "b"}, {"name": "side"}]},
            })
        );
        assert!(is_applied(&patch, &after) && !is_applied(&patch, &before));
    }
}
