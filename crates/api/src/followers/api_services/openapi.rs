//! The OpenAPI documents of extension servers, as far as this server serves them with its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::schema::names::GroupVersion;
use crate::tree::{Map, Value, json};

/// The documents of all extension servers.
#[derive(Debug, Default)]
pub struct OpenApiParts {
    /// The URL of each group version's document of v3, by its path without leading slash: `apis/<group>/<version>`.
    pub v3: BTreeMap<String, Arc<str>>,
    /// The documents of v2 of group versions whose servers have no v3, by the same paths.
    pub converted: BTreeMap<String, Arc<V2Part>>,
    /// The documents of v2 in the order in which they are merged.
    pub v2: Vec<Arc<V2Part>>,
    /// Grows with every change.
    pub generation: u64,
}

/// The part of a document of v2 that is about one group version.
#[derive(Debug, PartialEq)]
pub struct V2Part {
    pub info: Value,
    pub paths: Map,
    /// The definitions that the paths need.
    pub definitions: Map,
}

impl V2Part {
    /// Reads a document of v2, and leaves out what is not below the paths of the group version.
    pub fn of(version: &GroupVersion, body: &[u8]) -> Result<Self, String> {
        let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let prefix = match version.group().as_str() {
            "" => format!("/api/{}/", version.version()),
            group => format!("/apis/{group}/{}/", version.version()),
        };
        let member = |name: &str| document.get(name).and_then(Value::as_object);
        let below = |(path, item): (&_, &Value)| -> Option<(_, Value)> {
            let path: &crate::tree::Text = path;
            let is_below = path.starts_with(&prefix) || format!("{path}/") == prefix;
            (is_below && item.is_object()).then(|| (path.clone(), item.clone()))
        };
        let mut paths: Map = member("paths").into_iter().flatten().filter_map(below).collect();
        if let Some(parameters) = member("parameters") {
            paths.iter_mut().for_each(|(_, item)| inline(item, parameters));
        }
        let all = member("definitions");
        let mut needed = BTreeSet::new();
        paths.iter().for_each(|(_, item)| references(item, &mut needed));
        let mut definitions = Map::new();
        while let Some(name) = needed.pop_first() {
            let Some(found) = all.and_then(|all| all.get(&name)).filter(|_| !definitions.contains_key(&name))
            else {
                continue;
            };
            references(found, &mut needed);
            definitions.insert(crate::tree::Text::from(name), found.clone());
        }
        definitions.sort_keys();
        paths.sort_keys();
        let info = document.get("info").cloned().unwrap_or_else(|| json!({"title": "", "version": ""}));
        Ok(Self { info, paths, definitions })
    }
}

/// The beginning of references to definitions.
pub const DEFINITION: &str = "#/definitions/";
const PARAMETER: &str = "#/parameters/";

/// Adds the names of the definitions to which a value refers.
pub fn references(value: &Value, names: &mut BTreeSet<String>) {
    if let Some(name) = value.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(DEFINITION)) {
        names.insert(name.to_owned());
    }
    match value {
        Value::Object(object) => object.iter().for_each(|(_, member)| references(member, names)),
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// Lets references lead to the new names of definitions.
pub fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    let renamed = value.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(DEFINITION));
    let renamed = renamed.and_then(|name| names.get(name)).map(|name| format!("{DEFINITION}{name}"));
    match value {
        Value::Object(object) => {
            if let Some(renamed) = renamed {
                object.insert("$ref", renamed.into());
            }
            object.iter_mut().for_each(|(_, member)| rename(member, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// Replaces references to shared parameters by the parameters themselves: their names are those of another document.
fn inline(value: &mut Value, parameters: &Map) {
    let found = value.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(PARAMETER));
    if let Some(found) = found.and_then(|name| parameters.get(name)).cloned() {
        *value = found;
        return;
    }
    match value {
        Value::Object(object) => object.iter_mut().for_each(|(_, member)| inline(member, parameters)),
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, parameters)),
        _ => {}
    }
}
