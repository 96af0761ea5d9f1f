//! Discovery documents, `/version` and the path index, all derived from a [`Registry`].
//!
//! Field order and optional fields follow `docs/spec/wire.md`, section 5.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::document::Document;
use crate::api::followers::api_services::ApiServices;
use crate::api::followers::api_services::discovered::Discovered;
use crate::api::followers::api_services::openapi::OpenApiParts;
use crate::codec::yaml;
use crate::http::response::encode::enveloped;
use crate::schema::names::GroupVersion;
use crate::schema::registry::{Group, Registry, ServedVersion};
use crate::schema::resource::{Origin, ResourceDefinition, Subresource, Verb};
use crate::tree::{Value, json};

pub mod aggregated;
mod extended;
pub mod index;
pub mod legacy;
mod listed;
mod parts;
pub mod version;

use listed::ListedGroup;
use parts::Part;

/// The parameters behind the media type in the content type of an aggregated answer; clients compare the values.
pub const AGGREGATED_PARAMETERS: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// `Cache-Control` of an aggregated answer; the others have the general one.
pub const AGGREGATED_CACHE_CONTROL: &str = "public";
/// Value of `Vary` on an aggregated answer.
pub const AGGREGATED_VARY: &str = "Accept";

/// Every document a client can ask for, of one generation, so that legacy and aggregated discovery change together. A
/// document is made when somebody asks for it.
pub struct Documents {
    registry: Arc<Registry>,
    /// The APIServices that the documents show.
    services: Arc<ApiServices>,
    pub api: Discovery,
    pub apis: Discovery,
    pub version: Document,
    /// `/` and `/index.html`.
    index: OnceLock<Document>,
    groups: HashMap<String, Encodings>,
    parts: HashMap<GroupVersion, Arc<Part>>,
}

/// The APIServices, and what extension servers have said of themselves.
#[derive(Clone, Default)]
pub struct Extensions {
    pub services: Arc<ApiServices>,
    pub discovered: Arc<Discovered>,
    pub openapi: Arc<OpenApiParts>,
}

/// A path with a legacy and an aggregated form.
pub struct Discovery {
    pub legacy: Encodings,
    pub aggregated: Encodings,
}

type Make<T> = Box<dyn Fn() -> T + Send + Sync>;

/// A document in every encoding.
pub struct Encodings {
    value: Make<Value>,
    /// The JSON, where it is not printed from the value.
    text: Option<Make<String>>,
    json: OnceLock<Document>,
    yaml: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl Encodings {
    fn new(value: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self {
            value: Box::new(value),
            text: None,
            json: OnceLock::new(),
            yaml: OnceLock::new(),
            protobuf: OnceLock::new(),
        }
    }

    fn with_text(self, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { text: Some(Box::new(text)), ..self }
    }

    pub fn json(&self) -> &Document {
        self.json.get_or_init(|| match &self.text {
            Some(text) => Document::new(text()),
            None => Document::compact(&(self.value)()),
        })
    }

    pub fn yaml(&self) -> Bytes {
        self.yaml.get_or_init(|| yaml::write(&(self.value)()).into()).clone()
    }

    pub fn protobuf(&self) -> Bytes {
        let encode =
            || enveloped(&(self.value)()).expect("discovery documents are made of the types they name");
        self.protobuf.get_or_init(|| encode().into()).clone()
    }
}

impl Documents {
    /// `server_address` is `host:port`, which `/api` recommends to clients. `before` are the documents of an earlier
    /// generation.
    pub fn build(
        registry: &Arc<Registry>,
        extensions: &Extensions,
        server_address: &str,
        before: Option<&Self>,
    ) -> Self {
        let parts = parts_of(registry, before);
        let services = &extensions.services;
        let listed = Arc::new(listed::groups(registry, services));
        let of_registry = named(registry).map(|group| ListedGroup {
            name: group.name.to_string(),
            versions: group.versions.iter().map(|version| version.name.clone()).collect(),
        });
        // What is listed replaces what the registry has alone: a group without an APIService still answers for itself.
        let groups = of_registry
            .chain(listed.iter().cloned())
            .map(|group| (group.name.clone(), Encodings::new(move || legacy::group(&group))))
            .collect();
        let (all, address) = (registry.clone(), server_address.to_owned());
        let documents = Self {
            api: Discovery {
                legacy: Encodings::new(move || legacy::versions(&all, &address)),
                aggregated: aggregated_of(registry, extensions, &parts, str::is_empty),
            },
            apis: Discovery {
                legacy: Encodings::new(move || legacy::group_list(&listed)),
                aggregated: aggregated_of(registry, extensions, &parts, |group| !group.is_empty()),
            },
            version: Document::indented(&version::document()),
            index: OnceLock::new(),
            groups,
            parts,
            registry: registry.clone(),
            services: services.clone(),
        };
        // What most clients ask for.
        documents.apis.aggregated.json();
        documents
    }

    pub fn index(&self) -> &Document {
        self.index.get_or_init(|| Document::indented(&index::document(&self.registry, &self.services)))
    }

    /// `/apis/<group>`.
    pub fn group(&self, group: &str) -> Option<&Encodings> {
        self.groups.get(group)
    }

    /// `/api/v1` and `/apis/<group>/<version>`.
    pub fn resources(&self, version: &GroupVersion) -> Option<&Encodings> {
        self.parts.get(version).map(|part| &part.legacy)
    }
}

fn named(registry: &Registry) -> impl Iterator<Item = &Arc<Group>> {
    registry.groups().iter().filter(|group| !group.name.is_empty())
}

fn parts_of(registry: &Registry, before: Option<&Documents>) -> HashMap<GroupVersion, Arc<Part>> {
    let versions = registry.groups().iter().flat_map(|group| group.versions.iter().map(move |v| (group, v)));
    let part = |(group, version): (&Arc<Group>, &ServedVersion)| {
        let known = before.and_then(|before| before.parts.get(&version.name));
        let known = known.filter(|part| part.is_of(group.origin, version)).cloned();
        (version.name.clone(), known.unwrap_or_else(|| Arc::new(Part::new(registry, group, version))))
    };
    versions.map(part).collect()
}

/// The aggregated document of some groups, whose JSON is put together from that of their parts.
fn aggregated_of(
    registry: &Arc<Registry>,
    Extensions { services, discovered, .. }: &Extensions,
    parts: &HashMap<GroupVersion, Arc<Part>>,
    shows: fn(&str) -> bool,
) -> Encodings {
    if services.remote().next().is_some() {
        let (registry, services, discovered) = (registry.clone(), services.clone(), discovered.clone());
        return Encodings::new(move || extended::group_list(&registry, &services, &discovered, shows));
    }
    let shown: Vec<(Arc<Group>, Vec<Arc<Part>>)> = registry
        .groups()
        .iter()
        .filter(|group| shows(&group.name))
        .map(|group| {
            let parts = group.versions.iter().filter_map(|version| parts.get(&version.name).cloned());
            (group.clone(), parts.collect())
        })
        .collect();
    let all = registry.clone();
    let value = move || {
        let groups: Vec<&Group> =
            all.groups().iter().map(|group| &**group).filter(|group| shows(&group.name)).collect();
        aggregated::group_list(&groups)
    };
    let text = move || {
        let groups =
            shown.iter().map(|(group, parts)| (&**group, parts.iter().map(|part| part.aggregated())));
        aggregated::group_list_text(groups)
    };
    Encodings::new(value).with_text(text)
}

/// Adds `key` unless the list is empty, as Go's `omitempty` would.
fn insert_nonempty(object: &mut Value, key: &str, list: &[crate::tree::Text]) {
    if !list.is_empty() {
        object[key] = json!(list.iter().map(|item| &**item).collect::<Vec<&str>>());
    }
}

/// Upstream sorts the verbs of its own kinds, and has an order of its own for custom resources.
fn verbs(origin: Origin, verbs: &[Verb]) -> Value {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    const CUSTOM: [Verb; 8] = [Delete, DeleteCollection, Get, List, Patch, Create, Update, Watch];
    let names = |verbs: &[Verb]| json!(verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>());
    match origin {
        Origin::BuiltIn => names(verbs),
        Origin::Custom => names(&CUSTOM.into_iter().filter(|verb| verbs.contains(verb)).collect::<Vec<_>>()),
    }
}

/// A resource's subresources in the order in which upstream tells them.
fn subresources(definition: &ResourceDefinition) -> impl Iterator<Item = &Subresource> {
    let (first, rest): (Vec<_>, Vec<_>) = definition
        .subresources
        .iter()
        .partition(|sub| definition.origin == Origin::Custom && &*sub.name == "status");
    first.into_iter().chain(rest)
}

#[cfg(test)]
mod tests;
