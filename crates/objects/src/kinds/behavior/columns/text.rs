//! Cell texts that several kinds share: labels, selectors, containers, shortened lists.

use crate::kinds::behavior::columns::Column;
use crate::kinds::behavior::columns::cell::{count, list, text, text_column};
use crate::tree::Value;

/// A list is cut after this many entries.
const SHOWN: usize = 3;

pub const CONTAINERS: Column = text_column("Containers", "Names of the containers in the pod template.")
    .of(|object, _| containers(&object["spec"]["template"]["spec"]).0.into());

pub const IMAGES: Column = text_column("Images", "Images of the containers in the pod template.")
    .of(|object, _| containers(&object["spec"]["template"]["spec"]).1.into());

/// A selector that upstream refuses to read.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidSelector;

/// `a=b,c=d` in the order of the keys, `<none>` without labels.
pub fn labels(labels: &Value) -> String {
    let mut pairs = pairs(labels);
    if pairs.is_empty() {
        return "<none>".to_owned();
    }
    pairs.sort_unstable();
    join(pairs.iter().map(|(key, value)| format!("{key}={value}")), ",")
}

/// The text of a LabelSelector, `<none>` where it is empty.
pub fn selector(value: &Value) -> String {
    match selector_requirements(value) {
        Err(InvalidSelector) => "<error>".to_owned(),
        Ok(text) if text.is_empty() => "<none>".to_owned(),
        Ok(text) => text,
    }
}

/// The requirements of a LabelSelector in the order of their keys; empty where there are none.
pub fn selector_requirements(selector: &Value) -> Result<String, InvalidSelector> {
    let mut requirements: Vec<(&str, String)> = pairs(&selector["matchLabels"])
        .into_iter()
        .map(|(key, value)| (key, format!("{key}={value}")))
        .collect();
    for expression in list(&selector["matchExpressions"]) {
        requirements.push((text(&expression["key"]), requirement(expression)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Ok(join(requirements.into_iter().map(|(_, text)| text), ","))
}

fn requirement(expression: &Value) -> Result<String, InvalidSelector> {
    let key = text(&expression["key"]);
    let mut values: Vec<&str> = list(&expression["values"]).iter().map(text).collect();
    values.sort_unstable();
    match (text(&expression["operator"]), values.is_empty()) {
        _ if key.is_empty() => Err(InvalidSelector),
        ("In", false) => Ok(format!("{key} in ({})", values.join(","))),
        ("NotIn", false) => Ok(format!("{key} notin ({})", values.join(","))),
        ("Exists", true) => Ok(key.to_owned()),
        ("DoesNotExist", true) => Ok(format!("!{key}")),
        _ => Err(InvalidSelector),
    }
}

/// A LabelSelector as Go prints the protobuf type, which upstream shows where a parameter is selected.
pub fn selector_dump(selector: &Value) -> String {
    let mut pairs = pairs(&selector["matchLabels"]);
    pairs.sort_unstable();
    let labels: String = pairs.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions: String = list(&selector["matchExpressions"]).iter().map(requirement_dump).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn requirement_dump(expression: &Value) -> String {
    let values = join(list(&expression["values"]).iter().map(text), " ");
    let (key, operator) = (text(&expression["key"]), text(&expression["operator"]));
    format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
}

/// The names and the images of the containers of a pod spec.
pub fn containers(pod_spec: &Value) -> (String, String) {
    let containers = list(&pod_spec["containers"]);
    (
        join(containers.iter().map(|container| text(&container["name"])), ","),
        join(containers.iter().map(|container| text(&container["image"])), ","),
    )
}

/// The first three entries and how many more there are; `empty` where the text would be.
pub fn shortened<S: AsRef<str>>(entries: impl IntoIterator<Item = S>, empty: &str) -> String {
    let mut entries = entries.into_iter();
    let shown = join(entries.by_ref().take(SHOWN), ",");
    match entries.count() {
        0 if shown.is_empty() => empty.to_owned(),
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// `True`, `False`, or `<unset>`.
pub fn optional_flag(value: &Value) -> &'static str {
    match value.as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
}

pub fn join<S: AsRef<str>>(parts: impl IntoIterator<Item = S>, separator: &str) -> String {
    let mut joined = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(part.as_ref());
    }
    joined
}

/// The entries of a string map; a value that is no string reads as empty.
fn pairs(map: &Value) -> Vec<(&str, &str)> {
    let mut pairs = Vec::with_capacity(count(map));
    if let Some(map) = map.as_object() {
        pairs.extend(map.iter().map(|(key, value)| (key.as_str(), text(value))));
    }
    pairs
}
