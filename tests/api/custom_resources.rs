//! Custom resources: the assertions of `docs/spec/custom-resources.md`, section 13.

mod conversion;
mod definitions;
mod deletion;
mod elsewhere;
mod evaluation;
mod hostile;
mod many;
mod names;
mod published;
mod rules;
mod schemas;
mod serving;
mod storage;
mod surface;
mod values;

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::TestServer;

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const WIDGETS_DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.ex.io";
pub const WIDGETS: &str = "/apis/ex.io/v1/namespaces/d/widgets";
pub const ALL_WIDGETS: &str = "/apis/ex.io/v1/widgets";

/// The definition W of the assertions.
pub fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }],
        },
    })
}

/// The schema of W.
pub fn schema() -> Value {
    let port = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "color": {"type": "string"},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "ready": {"type": "boolean"}}},
    }})
}

/// A definition of another plural and kind in the group of W, with a schema that keeps everything.
pub fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.io")},
        "spec": {
            "group": "ex.io",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": format!("one-of-{plural}"), "kind": kind},
            "versions": [version("v1", true)],
        },
    })
}

/// A version whose schema keeps everything.
pub fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}

pub fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A server with the namespace `d` and the definition.
pub async fn with(server: &TestServer, definition: &Value) -> Value {
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "d"}})).await;
    server.post(DEFINITIONS, definition).await.expect(201)
}

/// Changes a definition until that succeeds.
pub async fn change(server: &TestServer, path: impl Into<String>, change: impl Fn(&mut Value)) -> Answer {
    let path = path.into();
    loop {
        let mut object = server.get(&path).await.ok();
        change(&mut object);
        let response = server.put(&path, &object).await;
        if response.status != 409 {
            return response;
        }
    }
}

/// A condition of a definition as `status reason message`.
pub fn condition(definition: &Value, kind: &str) -> String {
    let conditions = definition["status"]["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| {
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("status"), text("reason"), text("message"))
    })
}
