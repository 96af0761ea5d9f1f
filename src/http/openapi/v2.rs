//! OpenAPI 2.0 (Swagger): one document for all group versions.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::entries::Entries;
use super::operation::{self, Operation, PathItem};
use super::operations;
use super::parameters::{Parameter, Place};
use super::schemas::{Dialect, GVK, Schemas, gvk};
use super::texts::Texts;
use super::{overview, v3};
use crate::http::discovery::version;
use crate::schema::registry::Registry;

/// A document with its parts in the order in which they are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Swagger {
    swagger: &'static str,
    info: Value,
    pub paths: Entries,
    pub definitions: Entries,
    security_definitions: Value,
    security: Value,
}

impl Swagger {
    /// The document without its large parts.
    pub fn head(&self) -> Value {
        json!({
            "swagger": self.swagger,
            "info": self.info,
            "securityDefinitions": self.security_definitions,
            "security": self.security,
        })
    }
}

pub(super) fn document(registry: &Registry, texts: &Texts) -> Swagger {
    let mut items: Vec<PathItem> = overview::all(registry).into_iter().map(|(_, item)| item).collect();
    let mut versions = Vec::new();
    for group in registry.groups() {
        for group_version in &group.versions {
            items.push(overview::resources(group_version));
            items.extend(operations::paths(group.origin, group_version));
            versions.push(group_version);
        }
    }
    let definitions = Schemas::new(Dialect::V2, texts, versions).of(&items);
    Swagger {
        swagger: "2.0",
        info: json!({"title": "Kubernetes", "version": version::emulated()}),
        paths: operation::render(&items, operation, parameter),
        definitions,
        security_definitions: json!({
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            },
        }),
        security: json!([{"BearerToken": []}]),
    }
}

fn operation(op: &Operation) -> Value {
    let mut parameters: Vec<Value> = body(op).into_iter().collect();
    parameters.extend(op.query.iter().map(parameter));
    let consumes = match (&op.subject, op.method) {
        (None, _) => op.produces,
        (Some(_), "patch") => v3::PATCH_TYPES,
        (Some(_), _) => &["*/*"],
    };
    let answer = |(code, text): &(u16, &str)| {
        (code.to_string(), json!({"description": text, "schema": Dialect::V2.reference(&op.returns)}))
    };
    let mut responses: Map<String, Value> = op.codes.iter().map(answer).collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut rendered = json!({
        "consumes": consumes,
        "produces": op.produces,
        "schemes": ["https"],
        "tags": [op.tag],
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

fn body(op: &Operation) -> Option<Value> {
    let schema = Dialect::V2.reference(op.body.schema()?);
    let mut rendered = json!({"name": "body", "in": "body"});
    if op.body.required() {
        rendered["required"] = json!(true);
    }
    rendered["schema"] = schema;
    Some(rendered)
}
