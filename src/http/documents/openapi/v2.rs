//! OpenAPI 2.0 (Swagger): one document for all group versions.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::dialect::Dialect;
use super::entries::Entries;
use super::extended::Added;
use super::operation::{Operation, PathItem};
use super::parameters::{Parameter, Place};
use super::schemas::{GVK, Library, Schemas, gvk};
use super::shared::Shared;
use super::{operations, overview};
use crate::api::followers::api_services::openapi::V2Part;
use crate::http::documents::discovery::version;
use crate::schema::registry::Registry;
use crate::schema::resource::Origin;
use crate::tree::{Map, Value, json};

/// A document that is written part by part.
pub(super) struct Swagger<'a> {
    library: &'a Library,
    /// Sorted by path.
    items: Vec<PathItem>,
    schemas: Schemas<'a>,
    shared: Shared,
    /// The parts of extension servers.
    added: Added,
}

impl<'a> Swagger<'a> {
    pub fn new(registry: &'a Registry, library: &'a Library, parts: &[Arc<V2Part>]) -> Self {
        let mut items: Vec<PathItem> = overview::all(registry).into_iter().map(|(_, item)| item).collect();
        let mut versions = Vec::new();
        for group in registry.groups() {
            for group_version in &group.versions {
                items.extend((group.origin == Origin::BuiltIn).then(|| overview::resources(group_version)));
                items.extend(operations::paths(group_version));
                versions.push(group_version);
            }
        }
        items.sort_by(|one, other| one.path.cmp(&other.path));
        let schemas = Schemas::new(Dialect::V2, library, versions, &items);
        let operations = || items.iter().flat_map(|item| &item.operations);
        let of_paths = items.iter().flat_map(|item| &item.parameters);
        let of_operations = operations().flat_map(|operation| &operation.query);
        let plain = of_paths.chain(of_operations).map(|each| parameter(library, each));
        let shared = Shared::of(plain.chain(operations().filter_map(body)));
        let own_paths = items.iter().map(|item| item.path.as_str());
        let added = match parts {
            [] => Added::default(),
            parts => Added::of(parts, own_paths, schemas.all()),
        };
        Self { library, items, schemas, shared, added }
    }

    fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        let operation = |each: &Operation| self.operation(each);
        let parameter = |each: &Parameter| self.parameter(each);
        self.items.iter().map(move |item| (item.path.as_str(), item.render(operation, parameter)))
    }

    fn operation(&self, op: &Operation) -> Value {
        let mut parameters: Vec<Value> = body(op).map(|body| self.shared.refer(body)).into_iter().collect();
        parameters.extend(op.query.iter().map(|each| self.parameter(each)));
        operation(op, parameters)
    }

    fn parameter(&self, each: &Parameter) -> Value {
        self.shared.refer(parameter(self.library, each))
    }
}

impl Serialize for Swagger<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = json!({
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        });
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("swagger", "2.0")?;
        document.serialize_entry("info", &json!({"title": "Kubernetes", "version": version::emulated()}))?;
        let added = |map: &'_ Map| {
            map.iter().map(|(name, value)| (name.to_string(), value.clone())).collect::<Vec<_>>()
        };
        let paths =
            || self.paths().map(|(path, item)| (path.to_owned(), item)).chain(added(&self.added.paths));
        document.serialize_entry("paths", &Entries(paths))?;
        let definitions = || {
            let own = self.schemas.all().map(|(name, schema)| (name.to_owned(), schema));
            own.chain(added(&self.added.definitions))
        };
        document.serialize_entry("definitions", &Entries(definitions))?;
        document.serialize_entry("parameters", &self.shared.definitions)?;
        document.serialize_entry("securityDefinitions", &json!({"BearerToken": token}))?;
        document.serialize_entry("security", &json!([{"BearerToken": []}]))?;
        document.end()
    }
}

fn operation(op: &Operation, parameters: Vec<Value>) -> Value {
    let answer = |(code, text): &(u16, &str)| {
        (code.to_string(), json!({"description": text, "schema": op.returned(Dialect::V2)}))
    };
    let mut responses: Map = op.codes.iter().map(answer).collect();
    responses.insert("401", json!({"description": "Unauthorized"}));
    let mut rendered = json!({
        "consumes": op.consumes,
        "produces": op.produces,
        "schemes": ["https"],
        "tags": [op.tag],
        "description": op.description,
        "operationId": op.id,
        "responses": responses,
    });
    if !parameters.is_empty() {
        rendered["parameters"] = parameters.into();
    }
    if let Some(subject) = &op.subject {
        rendered["x-kubernetes-action"] = json!(subject.action);
        rendered[GVK] = gvk(&subject.kind);
    }
    rendered
}

/// In the order of which the names of shared ones are made.
fn parameter(library: &Library, parameter: &Parameter) -> Value {
    let mut rendered = json!({"uniqueItems": true, "type": parameter.kind});
    if let Some(description) = parameter.description(&library.texts) {
        rendered["description"] = description.into();
    }
    rendered["name"] = parameter.name.into();
    rendered["in"] = parameter.place.as_str().into();
    if parameter.place == Place::Path {
        rendered["required"] = json!(true);
    }
    rendered
}

fn body(op: &Operation) -> Option<Value> {
    let schema = Dialect::V2.reference(op.body.schema()?);
    let mut rendered = json!({"name": "body", "in": "body"});
    if op.body.required() {
        rendered["required"] = json!(true);
    }
    rendered["schema"] = schema;
    Some(rendered)
}
