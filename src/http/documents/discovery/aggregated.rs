//! Aggregated discovery (`apidiscovery.k8s.io/v2`): all resources of `/api` or `/apis` in one answer.

use super::{insert_nonempty, subresources, verbs};
use crate::schema::names::Gvk;
use crate::schema::registry::{Group, ServedVersion};
use crate::schema::resource::Origin;
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

/// The JSON of [`group_list`], from that of [`entry`].
pub fn group_list_text<'a, V>(groups: impl Iterator<Item = (&'a Group, V)>) -> String
where
    V: Iterator<Item = &'a str>,
{
    let mut text = group_list(&[]).to_string();
    text.truncate(text.len() - "]}".len());
    for (index, (group, versions)) in groups.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        text.extend([comma, "{\"metadata\":", &metadata(group).to_string(), ",\"versions\":["]);
        for (index, version) in versions.enumerate() {
            text.extend([if index == 0 { "" } else { "," }, version]);
        }
        text.push_str("]}");
    }
    text.push_str("]}\n");
    text
}

fn metadata(group: &Group) -> Value {
    if group.name.is_empty() { json!({}) } else { json!({"name": &*group.name}) }
}

fn item(group: &Group) -> Value {
    let metadata = metadata(group);
    let versions: Vec<Value> = group.versions.iter().map(|version| entry(group.origin, version)).collect();
    json!({"metadata": metadata, "versions": versions})
}

/// A version of a group.
pub fn entry(origin: Origin, version: &ServedVersion) -> Value {
    let resources: Vec<Value> = version.resources.iter().map(|d| resource(origin, d)).collect();
    json!({"version": version.version(), "resources": resources, "freshness": "Current"})
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
        "verbs": verbs(origin, &definition.verbs),
    });
    insert_nonempty(&mut entry, "shortNames", &definition.short_names);
    insert_nonempty(&mut entry, "categories", &definition.categories);
    if !definition.subresources.is_empty() {
        entry["subresources"] =
            subresources(definition).map(|sub| subresource(origin, definition, sub)).collect();
    }
    entry
}

fn subresource(origin: Origin, parent: &ResourceDefinition, sub: &Subresource) -> Value {
    let kind = match &sub.kind {
        Some(foreign) if foreign.gvk.group_version == *parent.group_version() => bare_kind(&foreign.gvk),
        Some(foreign) => full_kind(&foreign.gvk),
        None => own_kind(origin, parent),
    };
    json!({"subresource": &*sub.name, "responseKind": kind, "verbs": verbs(Origin::BuiltIn, &sub.verbs)})
}

/// Built-in kinds leave out the group and version of the list they stand in; custom ones repeat them.
fn own_kind(origin: Origin, definition: &ResourceDefinition) -> Value {
    match origin {
        Origin::BuiltIn => bare_kind(definition.gvk()),
        Origin::Custom => full_kind(definition.gvk()),
    }
}

fn bare_kind(gvk: &Gvk) -> Value {
    json!({"group": "", "version": "", "kind": gvk.kind.as_str()})
}

fn full_kind(gvk: &Gvk) -> Value {
    json!({"group": gvk.group().as_str(), "version": gvk.version(), "kind": gvk.kind.as_str()})
}
