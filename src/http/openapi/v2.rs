//! OpenAPI 2.0 (Swagger): one document for all group versions.

use serde_json::{Map, Value, json};

use super::operations::{self, Body, Operation, PathItem};
use super::parameters::{Parameter, Place};
use super::schemas::{GVK, add_common, add_kinds, gvk};
use super::{names, v3};
use crate::http::discovery::version;
use crate::schema::registry::Registry;

const REFS: &str = "#/definitions/";

pub(super) fn document(registry: &Registry) -> Value {
    let mut items: Vec<PathItem> = Vec::new();
    let mut definitions = Map::new();
    for group in registry.groups() {
        for group_version in &group.versions {
            items.extend(operations::paths(group.origin, group_version));
            add_kinds(&mut definitions, group.origin, group_version, REFS);
            add_common(&mut definitions, group_version);
        }
    }
    definitions.values_mut().for_each(open);
    definitions[names::DELETE_OPTIONS][GVK] = delete_options_kinds(registry);
    definitions.sort_keys();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version::release()},
        "paths": operations::render(items, operation, parameter),
        "definitions": definitions,
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

/// Clients that validate with v2 refuse fields it does not name and do not know the extension that would allow
/// them, so an open object names none. Upstream does the same for custom resources without a closed schema.
fn open(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.shift_remove("x-kubernetes-preserve-unknown-fields").is_some() {
        schema.shift_remove("properties");
    }
}

fn delete_options_kinds(registry: &Registry) -> Value {
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    versions.map(|v| json!({"group": &*v.group, "kind": "DeleteOptions", "version": &*v.version})).collect()
}

fn operation(op: &Operation) -> Value {
    let mut parameters: Vec<Value> = body(&op.body).into_iter().collect();
    parameters.extend(op.query.iter().map(parameter));
    let consumes = if matches!(op.body, Body::Patch) { v3::PATCH_TYPES } else { &["*/*"] };
    let mut responses: Map<String, Value> = op
        .codes
        .iter()
        .map(|(code, text)| {
            (code.to_string(), json!({"description": text, "schema": reference(&op.returns)}))
        })
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    json!({
        "consumes": consumes,
        "produces": ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
        "schemes": ["https"],
        "tags": [op.tag],
        "operationId": op.id,
        "parameters": parameters,
        "responses": responses,
        "x-kubernetes-action": op.action,
        GVK: gvk(&op.kind),
    })
}

fn parameter(parameter: &Parameter) -> Value {
    let mut rendered = json!({
        "uniqueItems": true,
        "type": parameter.kind,
        "name": parameter.name,
        "in": parameter.place.as_str(),
    });
    if parameter.place == Place::Path {
        rendered["required"] = json!(true);
    }
    rendered
}

fn body(body: &Body) -> Option<Value> {
    let (name, required) = match body {
        Body::None => return None,
        Body::Object(name) => (name.as_str(), true),
        Body::Patch => (names::PATCH, true),
        Body::Delete => (names::DELETE_OPTIONS, false),
    };
    let mut rendered = json!({"name": "body", "in": "body"});
    if required {
        rendered["required"] = json!(true);
    }
    rendered["schema"] = reference(name);
    Some(rendered)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFS}{name}")})
}
