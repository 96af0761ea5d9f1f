//! OpenAPI 3.0: an index, and a document per group version.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::entries::Entries;
use super::operation::{Operation, PathItem};
use super::operations;
use super::parameters::{Parameter, Place};
use super::schemas::{Dialect, GVK, Library, Schemas, gvk};
use super::{OpenApi, overview};
use crate::http::discovery::version;
use crate::schema::registry::{Registry, ServedVersion};
use crate::schema::resource::Origin;
use crate::tree::{Map, Value, json};

/// The forms that the PATCH of a built-in kind takes.
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// `hashes` by path without leading slash.
pub(super) fn index<'a>(hashes: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    let paths: Map = hashes
        .map(|(path, hash)| (path.clone(), json!({"serverRelativeURL": OpenApi::v3_url(path, hash)})))
        .collect();
    json!({"paths": paths})
}

/// A document that is written part by part.
pub(super) struct Document<'a> {
    library: &'a Library,
    /// Sorted by path.
    items: Vec<PathItem>,
    schemas: Schemas<'a>,
}

/// All documents, by path without leading slash.
pub(super) fn documents<'a>(
    registry: &'a Registry,
    library: &'a Library,
) -> impl Iterator<Item = (String, Document<'a>)> {
    let versions =
        registry.groups().iter().flat_map(|group| group.versions.iter().map(|v| (group.origin, v)));
    let versions = versions
        .map(move |(origin, version)| (version.path(), Document::of_version(library, origin, version)));
    let overview = overview::all(registry).into_iter();
    versions.chain(overview.map(move |(path, item)| (path, Document::new(library, Vec::new(), vec![item]))))
}

impl<'a> Document<'a> {
    fn of_version(library: &'a Library, origin: Origin, version: &'a ServedVersion) -> Self {
        let mut items = operations::paths(origin, version);
        items.push(overview::resources(version));
        Self::new(library, vec![version], items)
    }

    fn new(library: &'a Library, versions: Vec<&'a ServedVersion>, mut items: Vec<PathItem>) -> Self {
        items.sort_by(|one, other| one.path.cmp(&other.path));
        let schemas = Schemas::new(Dialect::V3, library, versions, &items);
        Self { library, items, schemas }
    }

    fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        let operation = |each: &Operation| operation(self.library, each);
        let parameter = |each: &Parameter| parameter(self.library, each);
        self.items.iter().map(move |item| (item.path.as_str(), item.render(operation, parameter)))
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("openapi", "3.0.0")?;
        document.serialize_entry("info", &json!({"title": "Kubernetes", "version": version::emulated()}))?;
        document.serialize_entry("paths", &Entries(|| self.paths()))?;
        document.serialize_entry("components", &Components(&self.schemas))?;
        document.end()
    }
}

struct Components<'a>(&'a Schemas<'a>);

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = json!({"type": "apiKey", "in": "header", "name": "authorization"});
        let mut components = serializer.serialize_map(None)?;
        components.serialize_entry("schemas", &Entries(|| self.0.all()))?;
        components.serialize_entry("securitySchemes", &json!({"BearerToken": token}))?;
        components.end()
    }
}

fn operation(library: &Library, op: &Operation) -> Value {
    let mut rendered = json!({"tags": [op.tag], "description": op.description, "operationId": op.id});
    if !op.query.is_empty() {
        rendered["parameters"] = op.query.iter().map(|each| parameter(library, each)).collect();
    }
    if let Some(body) = request_body(op) {
        rendered["requestBody"] = body;
    }
    let mut responses: Map =
        op.codes.iter().map(|(code, text)| (code.to_string(), response(text, op))).collect();
    responses.insert("401", json!({"description": "Unauthorized"}));
    rendered["responses"] = responses.into();
    if let Some(subject) = &op.subject {
        rendered["x-kubernetes-action"] = json!(subject.action);
        rendered[GVK] = gvk(&subject.kind);
    }
    rendered
}

fn parameter(library: &Library, parameter: &Parameter) -> Value {
    let mut rendered = json!({"name": parameter.name, "in": parameter.place.as_str()});
    if let Some(description) = parameter.description(&library.texts) {
        rendered["description"] = description.into();
    }
    if parameter.place == Place::Path {
        rendered["required"] = json!(true);
    }
    rendered["schema"] = json!({"type": parameter.kind, "uniqueItems": true});
    rendered
}

fn request_body(op: &Operation) -> Option<Value> {
    let schema = json!({"schema": Dialect::V3.reference(op.body.schema()?)});
    let types = if op.method == "patch" { PATCH_TYPES } else { &["*/*"] };
    let mut rendered = json!({"content": content(types, schema)});
    if op.body.required() {
        rendered["required"] = json!(true);
    }
    Some(rendered)
}

fn response(description: &str, op: &Operation) -> Value {
    let schema = json!({"schema": Dialect::V3.reference(&op.returns)});
    json!({"description": description, "content": content(op.produces, schema)})
}

/// The schema by media type; these are sorted, as all names are in v3.
fn content(types: &[&str], schema: Value) -> Value {
    let mut types: Vec<&str> = types.to_vec();
    types.sort_unstable();
    types.into_iter().map(|media| (media.to_owned(), schema.clone())).collect()
}
