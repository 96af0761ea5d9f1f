use std::sync::Arc;

use super::*;
use crate::http::documents::openapi::OpenApi;
use crate::http::documents::openapi::schemas::Library;
use crate::http::documents::openapi::v2::Swagger;
use crate::kinds::built_in;
use crate::schema::registry::Registry;
use crate::tree::json;

#[test]
fn a_document_has_its_fields_in_order() {
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "T", "version": "1"},
        "definitions": {"a": {"type": "object", "x-a": []}},
    });
    let mut expected = b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x011".to_vec();
    expected.extend(b"\x4a\x20\x0a\x1e\x0a\x01a\x12\x19");
    expected.extend(b"\xb2\x01\x08\x0a\x06object");
    expected.extend(b"\xfa\x01\x0b\x0a\x03x-a\x12\x04\x12\x02[]");
    assert_eq!(encode_v2(document.to_string().as_bytes()), expected);
}

#[test]
fn a_parameter_or_a_reference() {
    let shared = json!({"a-1": {"name": "a", "in": "query"}});
    let reference = json!({"parameters": [{"$ref": "#/a"}]});
    let document = json!({"paths": {"/": reference}, "parameters": shared});
    let paths = b"\x42\x10\x12\x0e\x0a\x01/\x12\x09\x4a\x07\x12\x05\x0a\x03#/a";
    let parameters = b"\x52\x17\x0a\x15\x0a\x03a-1\x12\x0e\x12\x0c\x1a\x0a\x12\x05query\x22\x01a";
    assert_eq!(encode_v2(document.to_string().as_bytes()), [&paths[..], parameters].concat());
}

/// The encoder looks for lost members in debug builds.
#[test]
fn no_member_is_lost() {
    let registry = Registry::new(built_in::definitions());
    let library = Library::load();
    let document = Swagger::new(&registry, &library, &[]);
    assert!(!encode_v2(serde_json::to_string(&document).expect("JSON").as_bytes()).is_empty());
    let openapi = OpenApi::new(Arc::new(registry), Default::default(), &Default::default(), None);
    for path in openapi.built_in().by_path.keys() {
        let kept = openapi.v3(path, crate::http::documents::openapi::Form::Json).expect("a document");
        assert!(!encode_v3(&kept.body()).is_empty());
    }
}

#[test]
#[should_panic = "nonsense"]
fn a_lost_member_is_noticed() {
    encode_v2(br#"{"info": {"nonsense": 1}}"#);
}

#[test]
fn a_schema_or_a_reference() {
    let schema = json!({"type": "object", "allOf": [{"$ref": "#/a"}], "default": {}, "x-a": 1});
    let mut expected = b"\xca\x01\x06object".to_vec();
    expected.extend(b"\xd2\x01\x07\x12\x05\x0a\x03#/a");
    expected.extend(b"\x8a\x02\x00");
    expected.extend(b"\xa2\x02\x0a\x0a\x03x-a\x12\x03\x12\x011");
    let document = json!({"components": {"schemas": {"s": schema}}});
    let mut schemas = vec![0x0a, expected.len() as u8];
    schemas.extend(&expected);
    let named = [&b"\x0a\x01s\x12"[..], &[schemas.len() as u8], &schemas].concat();
    let entries = [&[0x0a, named.len() as u8][..], &named].concat();
    let components = [&[0x0a, entries.len() as u8][..], &entries].concat();
    assert_eq!(
        encode_v3(document.to_string().as_bytes()),
        [&[0x2a, components.len() as u8][..], &components].concat()
    );
}

#[test]
fn defaults_are_written_also_where_they_are_zero() {
    let default = |value| {
        let id = V3.iter().position(|message| matches!(message, Message::OneOf([(When::Number, _), ..])));
        let mut encoder = Encoder { messages: V3, out: Writer::default() };
        encoder.put(id.expect("DefaultType"), &value);
        encoder.out.finish()
    };
    assert_eq!(default(json!(0)), b"\x09\0\0\0\0\0\0\0\0");
    assert_eq!(default(json!(false)), b"\x10\0");
    assert_eq!(default(json!("")), b"\x1a\0");
    assert_eq!(default(json!({})), b"");
}
