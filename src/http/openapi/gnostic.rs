//! The protobuf form of OpenAPI v2: gnostic's `openapi.v2.Document`.
//!
//! Only `swagger`, `info` and the kinds among `definitions` are encoded. That is what kubectl needs where it
//! cannot leave validation to the server: kinds without PATCH, such as reviews. It takes paths from v3.

use serde_json::{Map, Value};

use super::schemas::GVK;

/// Field numbers of the messages, from gnostic's `openapiv2/OpenAPIv2.proto`.
mod field {
    pub const DOCUMENT_SWAGGER: u8 = 1;
    pub const DOCUMENT_INFO: u8 = 2;
    pub const DOCUMENT_DEFINITIONS: u8 = 9;
    pub const INFO_TITLE: u8 = 1;
    pub const INFO_VERSION: u8 = 2;
    /// Of every list of named values.
    pub const ENTRIES: u8 = 1;
    pub const NAME: u8 = 1;
    pub const VALUE: u8 = 2;
    pub const SCHEMA_TYPE: u8 = 22;
    pub const SCHEMA_VENDOR_EXTENSION: u8 = 31;
    pub const TYPE_VALUE: u8 = 1;
    pub const ANY_YAML: u8 = 2;
}

/// Encodes what the JSON document says.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let mut info_message = Vec::new();
    put(&mut info_message, field::INFO_TITLE, text(&info["title"]));
    put(&mut info_message, field::INFO_VERSION, text(&info["version"]));

    let mut message = Vec::new();
    put(&mut message, field::DOCUMENT_SWAGGER, text(&document["swagger"]));
    put(&mut message, field::DOCUMENT_INFO, &info_message);
    if let Some(schemas) = document["definitions"].as_object() {
        put(&mut message, field::DOCUMENT_DEFINITIONS, &definitions(schemas));
    }
    message
}

fn definitions(schemas: &Map<String, Value>) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, schema) in schemas {
        if let Some(kinds) = schema.get(GVK) {
            put(&mut message, field::ENTRIES, &named(name, &open_object(kinds)));
        }
    }
    message
}

fn open_object(kinds: &Value) -> Vec<u8> {
    let mut type_item = Vec::new();
    put(&mut type_item, field::TYPE_VALUE, b"object");
    let mut any = Vec::new();
    // JSON is YAML.
    put(&mut any, field::ANY_YAML, kinds.to_string().as_bytes());

    let mut message = Vec::new();
    put(&mut message, field::SCHEMA_TYPE, &type_item);
    put(&mut message, field::SCHEMA_VENDOR_EXTENSION, &named(GVK, &any));
    message
}

fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message, field::NAME, name.as_bytes());
    put(&mut message, field::VALUE, value);
    message
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

/// Appends a length-delimited field.
fn put(message: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    const LENGTH_DELIMITED: usize = 2;
    varint(message, usize::from(number) << 3 | LENGTH_DELIMITED);
    varint(message, bytes.len());
    message.extend_from_slice(bytes);
}

fn varint(message: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        message.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_has_its_fields_in_order() {
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "T", "version": "1"},
            "definitions": {"a": {GVK: []}, "b": {"type": "object"}},
        });
        let mut expected = b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x011".to_vec();
        expected.extend(b"\x4a\x3c\x0a\x3a\x0a\x01a\x12\x35");
        expected.extend(b"\xb2\x01\x08\x0a\x06object\xfa\x01\x27\x0a\x1fx-kubernetes-group-version-kind");
        expected.extend(b"\x12\x04\x12\x02[]");
        assert_eq!(encode(&document), expected);
    }

    #[test]
    fn long_lengths_take_several_bytes() {
        let mut message = Vec::new();
        varint(&mut message, 300);
        assert_eq!(message, [0xac, 0x02]);
    }
}
