//! The resources that extension servers say they have, as aggregated discovery tells them. An extension server may say
//! anything: what has not the form of an `APIResourceDiscovery` is left out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::schema::names::GroupVersion;
use crate::tree::{Map, Value, json};

/// The resources of the group versions of extension servers.
#[derive(Debug, Default)]
pub struct Discovered {
    pub versions: HashMap<GroupVersion, Arc<Found>>,
    /// Grows with every change.
    pub generation: u64,
}

/// The resources of a group version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Elements of `resources` in aggregated discovery.
    pub resources: Vec<Value>,
    /// Whether the last look was answered.
    pub is_current: bool,
}

/// A namespaced or cluster-scoped resource that an extension server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    pub plural: &'a str,
    pub kind: &'a str,
    pub is_namespaced: bool,
    pub verbs: Vec<&'a str>,
}

impl Found {
    /// The resources, without their subresources.
    pub fn listed(&self) -> impl Iterator<Item = Listed<'_>> {
        self.resources.iter().map(|resource| Listed {
            plural: text(resource, "resource"),
            kind: resource.get("responseKind").map_or("", |kind| text(kind, "kind")),
            is_namespaced: text(resource, "scope") == "Namespaced",
            verbs: texts(resource, "verbs").collect(),
        })
    }
}

/// Reads an `APIGroupDiscoveryList`: the resources of each group version in it.
pub fn of_aggregated(body: &[u8]) -> Result<HashMap<GroupVersion, Vec<Value>>, String> {
    let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut found = HashMap::new();
    for group in items(&document, "items") {
        let name = group.get("metadata").map_or("", |metadata| text(metadata, "name"));
        for version in items(group, "versions") {
            let resources = items(version, "resources").filter_map(resource).collect();
            found.insert(GroupVersion::new(name, text(version, "version")), resources);
        }
    }
    Ok(found)
}

/// Reads an `APIResourceList` (apiserver's `ConvertGroupVersionIntoToDiscovery`).
pub fn of_legacy(body: &[u8]) -> Result<Vec<Value>, String> {
    let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if !document.is_object() {
        return Err("no APIResourceList".to_owned());
    }
    let mut found: Vec<Value> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for listed in items(&document, "resources") {
        let (parent, subresource) = match text(listed, "name").split_once('/') {
            Some((parent, subresource)) => (parent, Some(subresource)),
            None => (text(listed, "name"), None),
        };
        let kind = json!({
            "group": text(listed, "group"), "version": text(listed, "version"), "kind": text(listed, "kind"),
        });
        let is_namespaced = listed.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
        let scope = if is_namespaced { "Namespaced" } else { "Cluster" };
        let verbs: Vec<&str> = texts(listed, "verbs").collect();
        let at = *places.entry(parent).or_insert_with(|| {
            // A subresource may stand before its resource, or alone.
            found.push(json!({"resource": parent, "responseKind": empty_kind(), "scope": scope,
                "singularResource": "", "verbs": []}));
            found.len() - 1
        });
        let Some(resource) = found[at].as_object_mut() else { continue };
        match subresource {
            None => {
                let own = json!({"resource": parent, "responseKind": kind, "scope": scope,
                    "singularResource": text(listed, "singularName"), "verbs": verbs});
                for (name, value) in own.as_object().into_iter().flatten() {
                    resource.insert(name.clone(), value.clone());
                }
                for list in ["shortNames", "categories"] {
                    add_texts(resource, listed, list);
                }
            }
            Some(subresource) => {
                let own = json!({"subresource": subresource, "responseKind": kind, "verbs": verbs});
                match resource.get_mut("subresources").and_then(Value::as_array_mut) {
                    Some(all) => all.push(own),
                    None => _ = resource.insert("subresources", vec![own].into()),
                }
            }
        }
    }
    Ok(found)
}

fn resource(found: &Value) -> Option<Value> {
    let name = Some(text(found, "resource")).filter(|name| !name.is_empty())?;
    let mut made = json!({
        "resource": name,
        "responseKind": kind(found),
        "scope": text(found, "scope"),
        "singularResource": text(found, "singularResource"),
        "verbs": texts(found, "verbs").collect::<Vec<_>>(),
    });
    let own = made.as_object_mut()?;
    for list in ["shortNames", "categories"] {
        add_texts(own, found, list);
    }
    let subresources: Vec<Value> = items(found, "subresources")
        .map(|found| {
            let verbs: Vec<&str> = texts(found, "verbs").collect();
            json!({"subresource": text(found, "subresource"), "responseKind": kind(found), "verbs": verbs})
        })
        .collect();
    if !subresources.is_empty() {
        own.insert("subresources", subresources.into());
    }
    Some(made)
}

/// Clients of v0.26 need one, even if it is empty.
fn kind(found: &Value) -> Value {
    let Some(kind) = found.get("responseKind") else { return empty_kind() };
    json!({"group": text(kind, "group"), "version": text(kind, "version"), "kind": text(kind, "kind")})
}

fn empty_kind() -> Value {
    json!({"group": "", "version": "", "kind": ""})
}

fn add_texts(to: &mut Map, from: &Value, name: &'static str) {
    let all: Vec<&str> = texts(from, name).collect();
    if !all.is_empty() {
        to.insert(name, json!(all));
    }
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn texts<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    items(value, name).filter_map(Value::as_str)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_resource_is_left_out() {
        let lies = json!({"items": [{"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [
            {"resource": "things", "verbs": ["get", 7], "scope": 3, "subresources": [{"subresource": "status"}]},
            {"resource": 5}, "things", null,
        ]}]}, 7]});
        let found = of_aggregated(lies.to_string().as_bytes()).expect("JSON");
        let want = json!([{"resource": "things", "responseKind": empty_kind(), "scope": "",
            "singularResource": "", "verbs": ["get"],
            "subresources": [{"subresource": "status", "responseKind": empty_kind(), "verbs": []}]}]);
        assert_eq!(Value::from(found[&GroupVersion::new("g", "v1")].clone()), want);
        assert!(of_aggregated(b"{").is_err());
        assert_eq!(of_aggregated(b"7"), Ok(HashMap::new()));
    }

    #[test]
    fn a_legacy_list_becomes_resources_with_subresources() {
        let list = json!({"kind": "APIResourceList", "resources": [
            {"name": "things/status", "kind": "Thing", "namespaced": true, "verbs": ["get"]},
            {"name": "things", "singularName": "thing", "kind": "Thing", "namespaced": true, "verbs": ["get", "list"],
                "shortNames": ["th"]},
        ]});
        let found = of_legacy(list.to_string().as_bytes()).expect("a list");
        let kind = json!({"group": "", "version": "", "kind": "Thing"});
        let want = json!([{"resource": "things", "responseKind": kind, "scope": "Namespaced",
            "singularResource": "thing", "verbs": ["get", "list"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get"]}],
            "shortNames": ["th"]}]);
        assert_eq!(Value::from(found.clone()), want);
        let found = Found { resources: found, is_current: true };
        let listed: Vec<_> = found.listed().collect();
        let want =
            Listed { plural: "things", kind: "Thing", is_namespaced: true, verbs: vec!["get", "list"] };
        assert_eq!(listed, [want]);
    }
}
