use std::sync::Arc;

use super::*;
use crate::http::openapi::OpenApi;
use crate::http::openapi::schemas::Library;
use crate::http::openapi::v2::Swagger;
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

#[test]
fn no_member_is_lost() {
    let registry = Registry::new(built_in::definitions());
    let library = Library::load();
    let document = Swagger::new(&registry, &library);
    check(
        &v2::DOCUMENT,
        &serde_json::from_str(&serde_json::to_string(&document).expect("JSON")).expect("JSON"),
    );
    let openapi = OpenApi::new(Arc::new(registry));
    for path in openapi.all_v3().by_path.keys() {
        let kept = openapi.v3(path, crate::http::openapi::Form::Json).expect("a document");
        check(&v3::DOCUMENT, &serde_json::from_slice(&kept.body()).expect("JSON"));
    }
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
        let mut out = Writer::default();
        put_default(&mut out, &value);
        out.finish()
    };
    assert_eq!(default(json!(0)), b"\x09\0\0\0\0\0\0\0\0");
    assert_eq!(default(json!(false)), b"\x10\0");
    assert_eq!(default(json!("")), b"\x1a\0");
    assert_eq!(default(json!({})), b"");
}

fn check(message: &Message, value: &Value) {
    let message = message.reference.filter(|_| value.get("$ref").is_some()).unwrap_or(message);
    for (name, value) in fields(value) {
        if message.extensions.is_some() && name.starts_with("x-") {
            continue;
        }
        let member = message.members.iter().find(|member| member.name == name);
        let member = member.unwrap_or_else(|| panic!("no field for {name}"));
        match member.form {
            Form::One(_, message) => check(message, value),
            Form::Many(_, message) => list(value).for_each(|each| check(message, each)),
            Form::Entries(_, _, message) => fields(value).for_each(|(_, each)| check(message, each)),
            Form::Parameters => {
                list(value).for_each(|each| check(v2::item(each).1, each));
            }
            Form::NamedParameters => {
                fields(value).for_each(|(_, each)| check(v2::parameter(each).1, each));
            }
            Form::Text | Form::Flag | Form::Texts | Form::Anys | Form::TextMaps | Form::Default => {}
        }
    }
}
