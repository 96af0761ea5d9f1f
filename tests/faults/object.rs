//! The objects of a run, and where they are.

use serde_json::{Value, json};

use super::history::{Filter, Key, Token, Version};
use super::load::NAMESPACES;
use crate::support::rest::revision;

pub fn selector(filter: &Filter) -> String {
    filter.colour.as_ref().map_or(String::new(), |colour| format!("labelSelector=colour%3D{colour}"))
}

pub fn collection(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/configmaps"),
        None => "/api/v1/configmaps".to_owned(),
    }
}

pub fn item(key: &Key) -> String {
    format!("{}/{}", collection(Some(&key.0)), key.1)
}

pub fn object((namespace, name): &Key, token: &Token, at: Option<&Version>) -> Value {
    let mut metadata = json!({"namespace": namespace, "name": name, "labels": {"colour": token.colour()}});
    if let Some(at) = at {
        metadata["resourceVersion"] = at.revision.to_string().into();
    }
    let data = json!({"token": token.as_str(), "padding": token.padding()});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

pub fn items(list: &Value) -> Vec<(Key, Version)> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("no items: {list}")).iter();
    let ours = items.filter(|item| NAMESPACES.contains(&text(&item["metadata"]["namespace"])));
    ours.map(|item| (key_of(item), version(item))).collect()
}

pub fn key_of(object: &Value) -> Key {
    (text(&object["metadata"]["namespace"]).to_owned(), text(&object["metadata"]["name"]).to_owned())
}

/// Of an object that is whole.
pub fn version(object: &Value) -> Version {
    let token = Token::find(text(&object["data"]["token"]).as_bytes())
        .unwrap_or_else(|| panic!("no token: {object}"));
    assert_eq!(object["data"]["padding"], token.padding(), "half an object: {object}");
    assert_eq!(object["metadata"]["labels"]["colour"], token.colour(), "parts of two objects: {object}");
    Version { uid: text(&object["metadata"]["uid"]).to_owned(), revision: revision(object), token }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
