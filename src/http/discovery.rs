//! Discovery documents, `/version` and the path index, all derived from a [`Registry`].
//!
//! Field order and optional fields follow `docs/spec/wire.md`, section 5.

use std::collections::HashMap;

use bytes::Bytes;

use super::document::Document;
use super::encode::enveloped;
use crate::codec::yaml;
use crate::schema::names::GroupVersion;
use crate::schema::registry::Registry;
use crate::tree::{Value, json};

pub mod aggregated;
pub mod index;
pub mod legacy;
pub mod version;

/// What the content type of an aggregated answer has behind the media type; clients compare the values.
pub const AGGREGATED_PARAMETERS: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// `Cache-Control` of an aggregated answer; the others have the general one.
pub const AGGREGATED_CACHE_CONTROL: &str = "public";
/// Value of `Vary` on an aggregated answer.
pub const AGGREGATED_VARY: &str = "Accept";

/// Every document a client can ask for, encoded once per registry, so that legacy and aggregated discovery
/// change together.
#[derive(Debug)]
pub struct Documents {
    pub api: Discovery,
    pub apis: Discovery,
    pub version: Document,
    /// `/` and `/index.html`.
    pub index: Document,
    groups: HashMap<String, Encodings>,
    resources: HashMap<GroupVersion, Encodings>,
}

/// A path with a legacy and an aggregated form.
#[derive(Debug)]
pub struct Discovery {
    pub legacy: Encodings,
    pub aggregated: Encodings,
}

/// A document in every encoding.
#[derive(Clone, Debug)]
pub struct Encodings {
    pub json: Document,
    pub yaml: Bytes,
    pub protobuf: Bytes,
}

impl Encodings {
    fn new(value: &Value) -> Self {
        let protobuf = enveloped(value).expect("discovery documents are made of the types they name");
        Self { json: Document::compact(value), yaml: yaml::write(value).into(), protobuf: protobuf.into() }
    }
}

impl Documents {
    /// `server_address` is `host:port`, which `/api` recommends to clients.
    pub fn build(registry: &Registry, server_address: &str) -> Self {
        let (core, named) = registry.groups().iter().partition::<Vec<_>, _>(|g| g.name.is_empty());
        let groups = named
            .iter()
            .map(|group| (group.name.to_string(), Encodings::new(&legacy::group(group))))
            .collect();
        let resources = registry
            .groups()
            .iter()
            .flat_map(|group| &group.versions)
            .map(|version| (version.name.clone(), Encodings::new(&legacy::resource_list(version))))
            .collect();
        Self {
            api: Discovery {
                legacy: Encodings::new(&legacy::versions(registry, server_address)),
                aggregated: Encodings::new(&aggregated::group_list(&core)),
            },
            apis: Discovery {
                legacy: Encodings::new(&legacy::group_list(&named)),
                aggregated: Encodings::new(&aggregated::group_list(&named)),
            },
            version: Document::indented(&version::document()),
            index: Document::indented(&index::document(registry)),
            groups,
            resources,
        }
    }

    /// `/apis/<group>`.
    pub fn group(&self, group: &str) -> Option<&Encodings> {
        self.groups.get(group)
    }

    /// `/api/v1` and `/apis/<group>/<version>`.
    pub fn resources(&self, version: &GroupVersion) -> Option<&Encodings> {
        self.resources.get(version)
    }
}

/// Adds `key` unless the list is empty, as Go's `omitempty` would.
fn insert_nonempty(object: &mut Value, key: &str, list: &[crate::tree::Text]) {
    if !list.is_empty() {
        object[key] = json!(list.iter().map(|item| &**item).collect::<Vec<&str>>());
    }
}

fn verbs(verbs: &[crate::schema::resource::Verb]) -> Value {
    json!(verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
