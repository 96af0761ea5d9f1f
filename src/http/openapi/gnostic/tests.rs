use serde_json::json;

use super::*;
use crate::http::openapi::texts::Texts;
use crate::http::openapi::v2;
use crate::schema::builtin;
use crate::schema::registry::Registry;

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
    let mut out = Vec::new();
    put_message(&mut out, &messages::DOCUMENT, &document);
    assert_eq!(out, expected);
}

#[test]
fn long_lengths_take_several_bytes() {
    let mut message = Vec::new();
    varint(&mut message, 300);
    assert_eq!(message, [0xac, 0x02]);
}

#[test]
fn no_member_is_lost() {
    let registry = Registry::new(builtin::definitions());
    let document = v2::document(&registry, &Texts::load());
    check(&messages::DOCUMENT, &serde_json::to_value(&document).expect("JSON"));
}

fn check(message: &Message, value: &Value) {
    for (name, value) in fields(value) {
        if message.extensions.is_some() && name.starts_with("x-") {
            continue;
        }
        let member = message.members.iter().find(|member| member.name == name);
        let member = member.unwrap_or_else(|| panic!("no field for {name}"));
        match member.form {
            Form::One(_, message) => check(message, value),
            Form::Entries(_, _, message) => fields(value).for_each(|(_, each)| check(message, each)),
            Form::Parameters => {
                list(value).iter().for_each(|each| check(messages::parameter(text(&each["in"])).1, each));
            }
            Form::Text | Form::Flag | Form::Texts | Form::Anys | Form::TextMaps => {}
        }
    }
}
