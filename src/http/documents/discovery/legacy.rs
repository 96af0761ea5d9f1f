//! The documents of one path each: APIVersions, APIGroupList, APIGroup, APIResourceList.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};

use super::listed::ListedGroup;
use super::{insert_nonempty, subresources, verbs};
use crate::schema::kind::Kind;
use crate::schema::names::GroupVersion;
use crate::schema::registry::{Registry, ServedVersion};
use crate::schema::resource::{Origin, ResourceDefinition, Storage, Subresource};
use crate::tree::{Value, json};

/// `/api`: the versions of the core group.
pub fn versions(registry: &Registry, server_address: &str) -> Value {
    let versions = registry.group("").map(|core| &core.versions[..]).unwrap_or_default();
    json!({
        "kind": "APIVersions",
        "versions": versions.iter().map(ServedVersion::version).collect::<Vec<_>>(),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// `/apis`: all groups but the core group.
pub fn group_list(groups: &[ListedGroup]) -> Value {
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| {
            json!({
                "name": group.name.as_str(),
                "versions": group.versions.iter().map(group_version).collect::<Vec<_>>(),
                "preferredVersion": group_version(&group.versions[0]),
            })
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`.
pub fn group(group: &ListedGroup) -> Value {
    json!({
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group.name.as_str(),
        "versions": group.versions.iter().map(group_version).collect::<Vec<_>>(),
        "preferredVersion": group_version(&group.versions[0]),
    })
}

fn group_version(version: &GroupVersion) -> Value {
    json!({"groupVersion": version.api_version().as_str(), "version": version.version()})
}

/// `/api/v1`, `/apis/<group>/<version>`. The core group alone has no apiVersion in it, for old clients' sake.
/// `hashed` says of each resource whether the hash of its storage version is told.
pub fn resource_list(version: &ServedVersion, hashed: &[bool]) -> Value {
    let mut list = json!({"kind": "APIResourceList"});
    if !version.group().is_empty() {
        list["apiVersion"] = json!("v1");
    }
    list["groupVersion"] = json!(version.name.api_version().as_str());
    list["resources"] =
        version.resources.iter().zip(hashed).flat_map(|(d, hashed)| entries(d, *hashed)).collect();
    list
}

fn entries(definition: &ResourceDefinition, hashed: bool) -> impl Iterator<Item = Value> {
    let subresources = subresources(definition).map(|sub| subresource(definition, sub));
    std::iter::once(resource(definition, hashed)).chain(subresources)
}

fn resource(definition: &ResourceDefinition, hashed: bool) -> Value {
    let mut entry = json!({
        "name": &*definition.plural,
        "singularName": &*definition.singular,
        "namespaced": definition.namespaced(),
        "kind": definition.kind_name().as_str(),
        "verbs": verbs(definition.origin, &definition.verbs),
    });
    insert_nonempty(&mut entry, "shortNames", &definition.short_names);
    insert_nonempty(&mut entry, "categories", &definition.categories);
    if let Some(hash) = storage_version_hash(definition).filter(|_| hashed) {
        entry["storageVersionHash"] = json!(hash);
    }
    entry
}

fn subresource(parent: &ResourceDefinition, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", parent.plural, sub.name),
        "singularName": "",
        "namespaced": parent.namespaced(),
    });
    let elsewhere = |foreign: &&Kind| foreign.gvk.group_version != *parent.group_version();
    if let Some(foreign) = sub.kind.as_ref().filter(elsewhere) {
        entry["group"] = json!(foreign.gvk.group().as_str());
        entry["version"] = json!(foreign.gvk.version());
    }
    entry["kind"] = json!(sub.kind.as_ref().unwrap_or(&parent.kind).gvk.kind.as_str());
    entry["verbs"] = verbs(Origin::BuiltIn, &sub.verbs);
    entry
}

/// The hash that tells clients when the stored version has changed: the first 8 bytes of SHA-256 over `group/version/kind` of
/// the storage version, in base64. The core group's name stays empty: `/v1/Pod`.
pub fn storage_version_hash(definition: &ResourceDefinition) -> Option<String> {
    let Storage::Table { version, .. } = &definition.storage else { return None };
    let slash = if version.group().is_empty() { "/" } else { "" };
    let digest = Sha256::digest(format!("{slash}{version}/{}", definition.kind_name()));
    Some(BASE64.encode(&digest[..8]))
}
