//! The objects of a run and their URLs.

use serde_json::{Value, json};

use super::history::{Filter, Key, Kind, PatchForm, Token, Version};
use super::load::NAMESPACES;
use crate::support::rest::revision;

pub fn selector(filter: &Filter) -> String {
    let labels = filter.colour.as_ref().map(|colour| format!("labelSelector=colour%3D{colour}&"));
    let fields = filter.not_named.as_ref().map(|name| {
        // Nothing runs Pods. (They are pending until somebody writes a status without a phase.)
        let phase = if filter.kind == Kind::Pod { ",status.phase!%3DRunning" } else { "" };
        format!("fieldSelector=metadata.name!%3D{name}{phase}&")
    });
    labels.unwrap_or_default() + &fields.unwrap_or_default()
}

pub fn collection(kind: Kind, namespace: Option<&str>) -> String {
    let (group, plural) = match kind {
        Kind::ConfigMap => ("/api/v1", "configmaps"),
        Kind::Deployment => ("/apis/apps/v1", "deployments"),
        Kind::Pod => ("/api/v1", "pods"),
        Kind::Widget => ("/apis/faults.example.com/v2", "widgets"),
    };
    match namespace {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    }
}

pub fn item(key: &Key) -> String {
    format!("{}/{}", collection(Kind::of(key), Some(&key.0)), key.1)
}

/// An object as a client writes it. Its status is ignored in such a write.
pub fn object(key: &Key, token: &Token, at: Option<&Version>) -> Value {
    let mut object = content(key, token);
    if let Some(at) = at {
        object["metadata"]["resourceVersion"] = at.revision.to_string().into();
    }
    if Kind::of(key) != Kind::ConfigMap {
        object["status"] = json!({"conditions": [{"type": "Wrong", "status": "True"}]});
    }
    object
}

/// An object as a client writes its status. Everything else is ignored in such a write.
pub fn with_status(key: &Key, token: &Token, at: Option<&Version>) -> Value {
    let mut object = object(key, token, at);
    object["status"] = json!({"conditions": [{"type": "Right", "status": "True"}]});
    match Kind::of(key) {
        Kind::Deployment => object["spec"]["paused"] = true.into(),
        Kind::Pod => object["spec"]["priorityClassName"] = "wrong".into(),
        Kind::ConfigMap | Kind::Widget => unreachable!("nobody writes its status"),
    }
    object
}

/// What makes an object hold this token, as a patch. A status in it is ignored.
pub fn patch(key: &Key, token: &Token, at: Option<&Version>, form: PatchForm) -> Value {
    let data = json!({"token": token.as_str(), "padding": token.padding()});
    let (path, is_config) = match Kind::of(key) {
        Kind::ConfigMap => ("/data", true),
        Kind::Deployment | Kind::Pod | Kind::Widget => ("/metadata/annotations", false),
    };
    if form == PatchForm::Json {
        let test = at.map(
            |at| json!({"op": "test", "path": "/metadata/resourceVersion", "value": at.revision.to_string()}),
        );
        let replace = |path: String, value: &Value| json!({"op": "replace", "path": path, "value": value});
        let mut operations: Vec<Value> = test.into_iter().collect();
        operations.push(replace("/metadata/labels/colour".to_owned(), &token.colour().into()));
        operations.extend(["token", "padding"].map(|name| replace(format!("{path}/{name}"), &data[name])));
        return operations.into();
    }
    let mut metadata = json!({"labels": {"colour": token.colour()}});
    if let Some(at) = at {
        metadata["resourceVersion"] = at.revision.to_string().into();
    }
    if is_config {
        return json!({"metadata": metadata, "data": data});
    }
    metadata["annotations"] = data;
    json!({"metadata": metadata, "status": {"conditions": [{"type": "Wrong", "status": "True"}]}})
}

pub fn scale((namespace, name): &Key, replicas: usize, at: Option<&Version>) -> Value {
    let mut metadata = json!({"namespace": namespace, "name": name});
    if let Some(at) = at {
        metadata["resourceVersion"] = at.revision.to_string().into();
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}})
}

/// The content that is also applied.
pub fn content(key: &Key, token: &Token) -> Value {
    let (namespace, name) = key;
    let data = json!({"token": token.as_str(), "padding": token.padding()});
    let mut metadata = json!({"namespace": namespace, "name": name, "labels": {"colour": token.colour()}});
    let pod = json!({"containers": [{"name": "app", "image": "i"}]});
    match Kind::of(key) {
        Kind::ConfigMap => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        }
        Kind::Deployment => {
            metadata["annotations"] = data;
            let labels = json!({"app": "web"});
            let template = json!({"metadata": {"labels": labels}, "spec": pod});
            let spec = json!({"selector": {"matchLabels": labels}, "template": template});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        }
        Kind::Widget => {
            metadata["annotations"] = data;
            let version = "faults.example.com/v2";
            json!({"apiVersion": version, "kind": "Widget", "metadata": metadata, "spec": {}})
        }
        Kind::Pod => {
            metadata["annotations"] = data;
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
        }
    }
}

/// The items of a list of this kind that belong to the run.
pub fn items(list: &Value, kind: Kind) -> Vec<(Key, Version)> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("no items: {list}")).iter();
    let ours = items.filter(|item| NAMESPACES.contains(&text(&item["metadata"]["namespace"])));
    let items: Vec<_> = ours.map(|item| (key_of(item), version(item))).collect();
    assert!(items.iter().all(|(key, _)| Kind::of(key) == kind), "of another kind: {list}");
    items
}

pub fn key_of(object: &Value) -> Key {
    (text(&object["metadata"]["namespace"]).to_owned(), text(&object["metadata"]["name"]).to_owned())
}

/// The version of an object, which must be complete.
pub fn version(object: &Value) -> Version {
    let data = if object["data"].is_object() { &object["data"] } else { &object["metadata"]["annotations"] };
    let token = Token::find(text(&data["token"]).as_bytes()).unwrap_or_else(|| panic!("no token: {object}"));
    assert_eq!(data["padding"], token.padding(), "half an object: {object}");
    assert_eq!(object["metadata"]["labels"]["colour"], token.colour(), "parts of two objects: {object}");
    let strayed = |condition: &Value| condition["type"] == "Wrong";
    let conditions = object["status"]["conditions"].as_array();
    assert!(!conditions.is_some_and(|all| all.iter().any(strayed)), "a status from elsewhere: {object}");
    let spec = &object["spec"];
    assert!(
        spec["paused"] != true && spec["priorityClassName"] != "wrong",
        "a spec from elsewhere: {object}"
    );
    Version { uid: text(&object["metadata"]["uid"]).to_owned(), revision: revision(object), token }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
