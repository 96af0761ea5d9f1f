//! OpenAPI 3.0: an index, and a document per group version.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::entries::Entries;
use super::operation::{self, Operation, PathItem};
use super::operations;
use super::parameters::{Parameter, Place};
use super::schemas::{Dialect, GVK, Schemas, gvk};
use super::texts::Texts;
use super::{OpenApi, overview};
use crate::http::discovery::version;
use crate::schema::registry::{GroupVersion, Origin, Registry};

/// The forms that the PATCH of a built-in kind takes.
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// `hashes` by path without leading slash.
pub(super) fn index<'a>(hashes: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    let paths: Map<String, Value> = hashes
        .map(|(path, hash)| (path.clone(), json!({"serverRelativeURL": OpenApi::v3_url(path, hash)})))
        .collect();
    json!({"paths": paths})
}

/// A document with its parts in the order in which they are written.
#[derive(Serialize)]
pub(super) struct Document {
    openapi: &'static str,
    info: Value,
    paths: Entries,
    components: Components,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    schemas: Entries,
    security_schemes: Value,
}

/// All documents, by path without leading slash.
pub(super) fn documents(registry: &Registry, texts: &Texts) -> impl Iterator<Item = (String, Document)> {
    let versions =
        registry.groups().iter().flat_map(|group| group.versions.iter().map(|v| (group.origin, v)));
    let versions =
        versions.map(move |(origin, version)| (version.path(), group_version(texts, origin, version)));
    let overview = overview::all(registry).into_iter();
    versions.chain(overview.map(move |(path, item)| (path, document(texts, Vec::new(), vec![item]))))
}

fn group_version(texts: &Texts, origin: Origin, version: &GroupVersion) -> Document {
    let mut items = operations::paths(origin, version);
    items.push(overview::resources(version));
    document(texts, vec![version], items)
}

fn document(texts: &Texts, versions: Vec<&GroupVersion>, items: Vec<PathItem>) -> Document {
    let schemas = Schemas::new(Dialect::V3, texts, versions).of(&items);
    Document {
        openapi: "3.0.0",
        info: json!({"title": "Kubernetes", "version": version::emulated()}),
        paths: operation::render(&items, operation, parameter),
        components: Components {
            schemas,
            security_schemes: json!({
                "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
            }),
        },
    }
}

fn operation(op: &Operation) -> Value {
    let mut rendered = json!({"tags": [op.tag], "operationId": op.id});
    if !op.query.is_empty() {
        rendered["parameters"] = op.query.iter().map(parameter).collect();
    }
    if let Some(body) = request_body(op) {
        rendered["requestBody"] = body;
    }
    let mut responses: Map<String, Value> =
        op.codes.iter().map(|(code, text)| (code.to_string(), response(text, op))).collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    rendered["responses"] = responses.into();
    if let Some(subject) = &op.subject {
        rendered["x-kubernetes-action"] = json!(subject.action);
        rendered[GVK] = gvk(&subject.kind);
    }
    rendered
}

fn parameter(parameter: &Parameter) -> Value {
    let mut rendered = json!({"name": parameter.name, "in": parameter.place.as_str()});
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
