//! OpenAPI 3.0: an index, and a document per group version.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::dialect::Dialect;
use super::entries::Entries;
use super::operation::{Operation, PathItem};
use super::parameters::{Parameter, Place};
use super::schemas::{GVK, Library, Schemas, gvk};
use super::{operations, overview};
use crate::http::documents::discovery::version;
use crate::schema::registry::{Registry, ServedVersion};
use crate::schema::resource::Origin;
use crate::tree::{Map, Value, json};

/// URLs by path without leading slash.
pub(super) fn index<'a>(urls: impl Iterator<Item = (&'a String, String)>) -> Value {
    let paths: Map = urls.map(|(path, url)| (path.clone(), json!({"serverRelativeURL": url}))).collect();
    json!({"paths": paths})
}

/// A document that is written part by part.
pub(super) struct Document<'a> {
    library: &'a Library,
    origin: Origin,
    /// Sorted by path.
    items: Vec<PathItem>,
    schemas: Schemas<'a>,
}

/// The documents of everything built in, by path without leading slash.
pub(super) fn documents<'a>(
    registry: &'a Registry,
    library: &'a Library,
) -> impl Iterator<Item = (String, Document<'a>)> {
    let built_in = registry.groups().iter().filter(|group| group.origin == Origin::BuiltIn);
    let versions = built_in.flat_map(|group| &group.versions);
    let versions = versions.map(move |version| (version.path(), Document::of_version(library, version)));
    let overview = overview::all(registry).into_iter();
    let document = move |item| Document::new(library, Origin::BuiltIn, Vec::new(), vec![item]);
    versions.chain(overview.map(move |(path, item)| (path, document(item))))
}

impl<'a> Document<'a> {
    pub fn of_version(library: &'a Library, version: &'a ServedVersion) -> Self {
        let origin = version.resources.first().map_or(Origin::BuiltIn, |definition| definition.origin);
        let mut items = operations::paths(version);
        items.extend((origin == Origin::BuiltIn).then(|| overview::resources(version)));
        Self::new(library, origin, vec![version], items)
    }

    fn new(
        library: &'a Library,
        origin: Origin,
        versions: Vec<&'a ServedVersion>,
        mut items: Vec<PathItem>,
    ) -> Self {
        items.sort_by(|one, other| one.path.cmp(&other.path));
        let schemas = Schemas::new(Dialect::V3, library, versions, &items);
        Self { library, origin, items, schemas }
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
        let info = match self.origin {
            Origin::BuiltIn => json!({"title": "Kubernetes", "version": version::emulated()}),
            Origin::Custom => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        };
        document.serialize_entry("info", &info)?;
        document.serialize_entry("paths", &Entries(|| self.paths()))?;
        document.serialize_entry("components", &Components(self))?;
        document.end()
    }
}

struct Components<'a>(&'a Document<'a>);

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = json!({"type": "apiKey", "in": "header", "name": "authorization"});
        let mut components = serializer.serialize_map(None)?;
        components.serialize_entry("schemas", &Entries(|| self.0.schemas.all()))?;
        if self.0.origin == Origin::BuiltIn {
            components.serialize_entry("securitySchemes", &json!({"BearerToken": token}))?;
        }
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
    let mut rendered = json!({"content": content(op.consumes, schema)});
    if op.body.required() {
        rendered["required"] = json!(true);
    }
    Some(rendered)
}

fn response(description: &str, op: &Operation) -> Value {
    let schema = json!({"schema": op.returned(Dialect::V3)});
    json!({"description": description, "content": content(op.produces, schema)})
}

/// The schema by media type; these are sorted, as all names are in v3.
fn content(types: &[&str], schema: Value) -> Value {
    let mut types: Vec<&str> = types.to_vec();
    types.sort_unstable();
    types.into_iter().map(|media| (media.to_owned(), schema.clone())).collect()
}
