//! OpenAPI 3.0: an index, and a document per group version.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::operations::{self, Body, Operation};
use super::parameters::{Parameter, Place};
use super::schemas::{GVK, add_common, add_kinds, gvk};
use super::{OpenApi, names};
use crate::http::discovery::version;
use crate::http::document::Document;
use crate::schema::registry::{GroupVersion, Origin, Registry};

const REFS: &str = "#/components/schemas/";

/// Strategic merge is left out although built-in kinds may take it: a client that sees it computes its patches
/// from the schemas here, and those do not know the fields yet.
pub(super) const PATCH_TYPES: &[&str] = &["application/json-patch+json", "application/merge-patch+json"];

pub(super) fn index(documents: &BTreeMap<String, Document>) -> Value {
    let paths: Map<String, Value> = documents
        .iter()
        .map(|(path, document)| (path.clone(), json!({"serverRelativeURL": OpenApi::v3_url(path, document)})))
        .collect();
    json!({"paths": paths})
}

pub(super) fn document(registry: &Registry, group_version: &GroupVersion) -> Value {
    let origin = registry.group(&group_version.group).map_or(Origin::Custom, |group| group.origin);
    let items = operations::paths(origin, group_version);
    let mut schemas = Map::new();
    add_kinds(&mut schemas, origin, group_version, REFS);
    add_common(&mut schemas, group_version);
    schemas.sort_keys();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version::release()},
        "paths": operations::render(items, operation, parameter),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
            },
        },
    })
}

fn operation(op: &Operation) -> Value {
    let mut rendered = json!({
        "tags": [op.tag],
        "operationId": op.id,
        "parameters": op.query.iter().map(parameter).collect::<Value>(),
    });
    if let Some(body) = request_body(&op.body) {
        rendered["requestBody"] = body;
    }
    let mut responses: Map<String, Value> =
        op.codes.iter().map(|(code, text)| (code.to_string(), response(text, &op.returns))).collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    rendered["responses"] = responses.into();
    rendered["x-kubernetes-action"] = json!(op.action);
    rendered[GVK] = gvk(&op.kind);
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

fn request_body(body: &Body) -> Option<Value> {
    let reference = |name: &str| json!({"schema": {"$ref": format!("{REFS}{name}")}});
    match body {
        Body::None => None,
        Body::Object(name) => Some(json!({"content": {"*/*": reference(name)}, "required": true})),
        Body::Delete => Some(json!({"content": {"*/*": reference(names::DELETE_OPTIONS)}})),
        Body::Patch => {
            let content: Map<String, Value> =
                PATCH_TYPES.iter().map(|&media| (media.to_owned(), reference(names::PATCH))).collect();
            Some(json!({"content": content, "required": true}))
        }
    }
}

fn response(description: &str, schema: &str) -> Value {
    let schema = json!({"schema": {"$ref": format!("{REFS}{schema}")}});
    json!({
        "description": description,
        "content": {
            "application/json": schema,
            "application/vnd.kubernetes.protobuf": schema,
            "application/yaml": schema,
        },
    })
}
