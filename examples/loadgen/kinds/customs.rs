//! A custom resource whose objects look like Pods, so that writes and lists of both can be compared.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;

use super::work::pod_like;
use crate::client::{Connection, JSON, Protocol};
use crate::scratch::Scratch;
use crate::{Context, Result};

const GROUP: &str = "loadgen.rowplane.example.org";
const PLURAL: &str = "podlikes";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Where the objects of a namespace are.
pub fn collection(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/{PLURAL}")
}

/// An object with this many variables.
pub fn object(count: usize, name: &str, mark: &str, metadata: &str) -> Bytes {
    let kind = format!(r#""kind":"PodLike","apiVersion":"{GROUP}/v1""#);
    pod_like(&kind, count, name, mark, metadata, "")
}

/// Defines the resource, unless it is defined already, and waits until its objects can be listed.
pub async fn define(context: &Context, scratch: &mut Scratch) -> Result<()> {
    let connection = Connection::open(&context.target, Protocol::Http1).await?;
    let answer = connection.call(Method::POST, DEFINITIONS, Some((JSON, definition()))).await?;
    if answer.status == StatusCode::CONFLICT {
        return Ok(());
    }
    answer.success()?;
    scratch.others([format!("{DEFINITIONS}/{PLURAL}.{GROUP}")]);
    while connection.call(Method::GET, &collection("default"), None).await?.status == StatusCode::NOT_FOUND {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    Ok(())
}

fn definition() -> Bytes {
    let text = json!({"type": "string"});
    let variables = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": text, "value": text}},
    });
    let port = json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535});
    let ports = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "items": {
            "type": "object",
            "required": ["containerPort"],
            "properties": {"containerPort": port, "protocol": {"type": "string", "default": "TCP"}},
        },
    });
    let container = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
            "image": text,
            "imagePullPolicy": {
                "type": "string", "enum": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent",
            },
            "env": variables,
            "ports": ports,
        },
    });
    let containers = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": container,
    });
    let spec = json!({
        "type": "object",
        "required": ["containers"],
        "properties": {
            "containers": containers,
            "restartPolicy": {"type": "string", "default": "Always"},
            "terminationGracePeriodSeconds": {"type": "integer", "format": "int64", "default": 30},
        },
    });
    let status = json!({"type": "object", "properties": {"phase": text}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": "PodLike"},
            "versions": [version],
        },
    });
    definition.to_string().into()
}
