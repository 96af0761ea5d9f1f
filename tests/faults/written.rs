//! Objects as they are sent: in JSON, and a third of all ConfigMaps in protobuf.

use http::Method;
use prost::encoding::bytes;
use serde_json::Value;

use super::forms::PROTOBUF;
use super::history::Token;
use crate::support::rest::{Answer, Broken, Client};

/// One of so many ConfigMaps is sent in protobuf.
const IN_PROTOBUF: usize = 3;

/// Sends an object that holds this token.
pub async fn send(
    server: &Client,
    method: Method,
    path: &str,
    token: &Token,
    object: &Value,
) -> Result<Answer, Broken> {
    let in_protobuf = object["kind"] == "ConfigMap" && token.number().is_multiple_of(IN_PROTOBUF);
    let (media_type, body) = match in_protobuf {
        true => (PROTOBUF, config_map(object)),
        false => ("application/json", serde_json::to_vec(object).expect("JSON")),
    };
    server.send_bytes(method, path, media_type, body).await
}

/// The envelope of a ConfigMap (`runtime.Unknown`), with what objects of the load hold.
fn config_map(object: &Value) -> Vec<u8> {
    let metadata = &object["metadata"];
    let mut written = Vec::new();
    for (name, number) in [("name", 1), ("namespace", 3), ("resourceVersion", 6)] {
        if let Some(text) = metadata[name].as_str() {
            field(number, text, &mut written);
        }
    }
    map(11, &metadata["labels"], &mut written);
    let mut config = Vec::new();
    field(1, written, &mut config);
    map(2, &object["data"], &mut config);

    let mut kind = Vec::new();
    field(1, "v1", &mut kind);
    field(2, "ConfigMap", &mut kind);
    let mut envelope = b"k8s\0".to_vec();
    field(1, kind, &mut envelope);
    field(2, config, &mut envelope);
    envelope
}

/// A field that has a length: a text, or a message that is written already.
fn field(number: u32, value: impl Into<Vec<u8>>, message: &mut Vec<u8>) {
    bytes::encode(number, &value.into(), message);
}

fn map(number: u32, entries: &Value, message: &mut Vec<u8>) {
    for (key, value) in entries.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        field(1, key.as_str(), &mut entry);
        field(2, value.as_str().expect("text"), &mut entry);
        field(number, entry, message);
    }
}
