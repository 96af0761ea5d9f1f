//! OpenAPI 3.0: an index, and a document per group version.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::entries::Entries;
use super::operations::{self, Operation, PathItem};
use super::parameters::{Parameter, Place};
use super::schemas::{Dialect, GVK, Schemas, gvk};
use super::texts::Texts;
use super::{OpenApi, overview};
use crate::http::discovery::version;
use crate::schema::registry::{GroupVersion, Origin, Registry};

/// The forms in which answers can be had.
pub(super) const ANSWERS: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The forms that the PATCH of a built-in kind takes.
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
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
        info: json!({"title": "Kubernetes", "version": version::release()}),
        paths: operations::render(&items, operation, parameter),
        components: Components {
            schemas,
            security_schemes: json!({
                "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
            }),
        },
    }
}

fn operation(op: &Operation) -> Value {
    let mut rendered = json!({
        "tags": [op.tag],
        "operationId": op.id,
        "parameters": op.query.iter().map(parameter).collect::<Value>(),
    });
    if let Some(body) = request_body(op) {
        rendered["requestBody"] = body;
    }
    let mut responses: Map<String, Value> =
        op.codes.iter().map(|(code, text)| (code.to_string(), response(text, &op.returns))).collect();
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
    let content: Map<String, Value> = types.iter().map(|&media| (media.to_owned(), schema.clone())).collect();
    let mut rendered = json!({"content": content});
    if op.body.required() {
        rendered["required"] = json!(true);
    }
    Some(rendered)
}

fn response(description: &str, schema: &str) -> Value {
    let schema = json!({"schema": Dialect::V3.reference(schema)});
    let content: Map<String, Value> =
        ANSWERS.iter().map(|&media| (media.to_owned(), schema.clone())).collect();
    json!({"description": description, "content": content})
}
