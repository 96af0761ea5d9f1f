//! The changes of a branch as text.

use super::fields::{Difference, differences};
use crate::api::fields::text;
use crate::cli::table::aligned;
use crate::tree::{Map, Value};

/// The longest value that is shown whole, in characters.
const LONGEST: usize = 100;
/// Resources whose objects only tell of others.
const TELLING: [&str; 2] = ["events", "events.events.k8s.io"];

/// The changed objects that are not only told of others.
pub fn items(changes: &Map) -> impl Iterator<Item = &Map> {
    let items = changes.get("items").and_then(Value::as_array).into_iter().flatten();
    let objects = items.filter_map(Value::as_object);
    objects.filter(|change| !TELLING.contains(&text(change, &["resource"])))
}

/// All changes: an object a line, and below it the fields that differ, with the manager of each.
pub fn changes(changes: &Map) -> String {
    let mut out = String::new();
    for change in items(changes) {
        out.push_str(&format!("{:<8} {}\n", text(change, &["event"]), name(change)));
        out.push_str(&fields(change));
    }
    let counted = |event: &str| items(changes).filter(|change| text(change, &["event"]) == event).count();
    let (came, changed, went) = (counted("ADDED"), counted("MODIFIED"), counted("DELETED"));
    out.push_str(&format!("{came} came, {changed} changed, {went} went\n"));
    match changes.get("hidden").and_then(Value::as_u64).unwrap_or_default() {
        0 => {}
        hidden => out.push_str(&format!("{hidden} more may not be read by this user\n")),
    }
    out
}

/// The resource, namespace and name of a changed object.
pub fn name(change: &Map) -> String {
    let (resource, name) = (text(change, &["resource"]), text(change, &["name"]));
    match text(change, &["namespace"]) {
        "" => format!("{resource} {name}"),
        namespace => format!("{resource} {namespace}/{name}"),
    }
}

fn fields(change: &Map) -> String {
    let object = |side: &str| change.get(side).and_then(Value::as_object);
    let (Some(before), Some(after)) = (object("before"), object("after")) else { return String::new() };
    let is_secret = text(change, &["resource"]) == "secrets";
    let rows: Vec<[String; 3]> = differences(before, after)
        .into_iter()
        .map(|Difference { path, before: old, after: new }| {
            let is_value = is_secret && (path.is_below("data") || path.is_below("stringData"));
            let shown = |value: &Option<Value>| match value {
                None => "-".to_owned(),
                Some(_) if is_value => "(secret)".to_owned(),
                Some(value) => short(&value.to_string()),
            };
            // The manager of a field that is gone stands in the object before.
            let manager = path.manager(after).or_else(|| path.manager(before));
            let manager = manager.map(|manager| format!("({manager})")).unwrap_or_default();
            [format!("  {path}:"), format!("{} -> {}", shown(&old), shown(&new)), manager]
        })
        .collect();
    aligned(&rows)
}

fn short(text: &str) -> String {
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
