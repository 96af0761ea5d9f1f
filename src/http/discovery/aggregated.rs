//! Aggregated discovery (`apidiscovery.k8s.io/v2`): all resources of `/api` or `/apis` in one answer.

use super::{insert_nonempty, verbs};
use crate::schema::registry::{Group, GroupVersion, Origin};
use crate::schema::resource::{ResourceDefinition, Scope, Subresource};
use crate::tree::{Value, json};

pub fn group_list(groups: &[&Group]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups.iter().map(|group| item(group)).collect::<Vec<_>>(),
    })
}

fn item(group: &Group) -> Value {
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": &*group.name}) };
    let versions: Vec<Value> = group.versions.iter().map(|version| entry(group.origin, version)).collect();
    json!({"metadata": metadata, "versions": versions})
}

fn entry(origin: Origin, version: &GroupVersion) -> Value {
    let resources: Vec<Value> = version.resources.iter().map(|d| resource(origin, d)).collect();
    json!({"version": &*version.version, "resources": resources, "freshness": "Current"})
}

fn resource(origin: Origin, definition: &ResourceDefinition) -> Value {
    let mut entry = json!({
        "resource": &*definition.plural,
        "responseKind": own_kind(origin, definition),
        "scope": match definition.scope {
            Scope::Cluster => "Cluster",
            Scope::Namespaced => "Namespaced",
        },
        "singularResource": &*definition.singular,
        "verbs": verbs(&definition.verbs),
    });
    insert_nonempty(&mut entry, "shortNames", &definition.short_names);
    insert_nonempty(&mut entry, "categories", &definition.categories);
    if !definition.subresources.is_empty() {
        entry["subresources"] =
            definition.subresources.iter().map(|sub| subresource(origin, definition, sub)).collect();
    }
    entry
}

fn subresource(origin: Origin, parent: &ResourceDefinition, sub: &Subresource) -> Value {
    let kind = match &sub.kind {
        Some(foreign) if (&foreign.group, &foreign.version) == (&parent.group, &parent.version) => {
            response_kind("", "", &foreign.kind)
        }
        Some(foreign) => response_kind(&foreign.group, &foreign.version, &foreign.kind),
        None => own_kind(origin, parent),
    };
    json!({"subresource": &*sub.name, "responseKind": kind, "verbs": verbs(&sub.verbs)})
}

/// Built-in kinds leave out the group and version of the list they stand in; custom ones repeat them.
fn own_kind(origin: Origin, definition: &ResourceDefinition) -> Value {
    match origin {
        Origin::BuiltIn => response_kind("", "", &definition.kind),
        Origin::Custom => response_kind(&definition.group, &definition.version, &definition.kind),
    }
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}
