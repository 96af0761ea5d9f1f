//! Objects as they are sent: in JSON, and a third of all ConfigMaps in protobuf.

use http::Method;
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
    let mut written = Message::default();
    for (name, number) in [("name", 1), ("namespace", 3), ("resourceVersion", 6)] {
        if let Some(text) = metadata[name].as_str() {
            written.field(number, text.as_bytes());
        }
    }
    written.map(11, &metadata["labels"]);
    let mut map = Message::default();
    map.field(1, &written.0);
    map.map(2, &object["data"]);

    let mut kind = Message::default();
    kind.field(1, b"v1").field(2, b"ConfigMap");
    let mut envelope = Message(b"k8s\0".to_vec());
    envelope.field(1, &kind.0).field(2, &map.0);
    envelope.0
}

/// A message that is being written. All fields have a length, and numbers below 16.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn field(&mut self, number: u8, value: &[u8]) -> &mut Self {
        self.0.push(number << 3 | 2);
        let mut length = value.len();
        while length >= 0x80 {
            self.0.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.0.push(length as u8);
        self.0.extend_from_slice(value);
        self
    }

    fn map(&mut self, number: u8, entries: &Value) {
        for (key, value) in entries.as_object().into_iter().flatten() {
            let mut entry = Message::default();
            entry.field(1, key.as_bytes()).field(2, value.as_str().expect("text").as_bytes());
            self.field(number, &entry.0);
        }
    }
}
