//! The protobuf forms of OpenAPI: gnostic's `openapi.v2.Document` and `openapi.v3.Document`.
//!
//! What the JSON form says is encoded by tables: for each message, which member is which field. A member that no
//! table knows would be lost without a word, so a test looks for such members.

use serde_json::{Map, Value};

mod form;
mod v2;
mod v3;

use super::entries::decoded;
use super::v2::Swagger;
use form::{Form, Member, Message};

/// Encodes the JSON form of a document of v2.
pub(super) fn encode_v2(document: &Swagger) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, &v2::DOCUMENT, &document.head());
    for (name, entries) in [("paths", &document.paths), ("definitions", &document.definitions)] {
        let members = v2::DOCUMENT.members.iter();
        let member = members.filter(|member| member.name == name);
        for (member, (number, path, message)) in member.filter_map(|m| Some((m, m.form.entries()?))) {
            let mut encoded = Vec::new();
            for (name, text) in entries {
                put(&mut encoded, number, &named(name, &nested(path, message, &decoded(text))));
            }
            put(&mut out, member.number, &encoded);
        }
    }
    out
}

/// Encodes the JSON form of a document of v3.
pub(super) fn encode_v3(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, &v3::DOCUMENT, document);
    out
}

fn put_message(out: &mut Vec<u8>, message: &Message, value: &Value) {
    for member in message.members {
        if let Some(value) = value.get(member.name) {
            put_member(out, member, value);
        }
    }
    let Some(fields) = value.as_object() else { return };
    if let Some(number) = message.extensions {
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
            put(out, number, &named(name, &any(value)));
        }
    }
}

fn put_member(out: &mut Vec<u8>, member: &Member, value: &Value) {
    match member.form {
        Form::Text => put(out, member.number, text(value)),
        Form::Flag => put_flag(out, member.number, value.as_bool() == Some(true)),
        Form::Texts => list(value).iter().for_each(|each| put(out, member.number, text(each))),
        Form::Anys => list(value).iter().for_each(|each| put(out, member.number, &any(each))),
        Form::One(path, message) => put(out, member.number, &nested(path, message, value)),
        Form::Many(path, message) => {
            list(value).iter().for_each(|each| put(out, member.number, &nested(path, message, each)));
        }
        Form::Entries(number, path, message) => {
            let mut entries = Vec::new();
            for (name, each) in fields(value) {
                put(&mut entries, number, &named(name, &nested(path, message, each)));
            }
            put(out, member.number, &entries);
        }
        Form::TextMaps => {
            for each in list(value) {
                let mut map = Vec::new();
                for (name, texts) in fields(each) {
                    let mut array = Vec::new();
                    list(texts).iter().for_each(|each| put(&mut array, 1, text(each)));
                    put(&mut map, 1, &named(name, &array));
                }
                put(out, member.number, &map);
            }
        }
        Form::Parameters => {
            for each in list(value) {
                let (path, message) = v2::parameter(text(&each["in"]));
                put(out, member.number, &nested(path, message, each));
            }
        }
        Form::Default => put(out, member.number, &default(value)),
    }
}

/// A message inside of messages of one field each, as a `oneof` is written.
fn nested(path: &[u8], message: &Message, value: &Value) -> Vec<u8> {
    let mut inner = Vec::new();
    match (message.shorthand, message.reference) {
        // A type is a word in JSON and a list of words here.
        (Some(number), _) => put(&mut inner, number, text(value)),
        (None, None) => put_message(&mut inner, message, value),
        (None, Some(reference)) => {
            let (number, message) = if value.get("$ref").is_some() { (2, reference) } else { (1, message) };
            let mut either = Vec::new();
            put_message(&mut either, message, value);
            put(&mut inner, number, &either);
        }
    }
    for &number in path.iter().rev() {
        let mut outer = Vec::with_capacity(inner.len() + 4);
        put(&mut outer, number, &inner);
        inner = outer;
    }
    inner
}

/// JSON is YAML.
fn any(value: &Value) -> Vec<u8> {
    const YAML: u8 = 2;
    let mut any = Vec::new();
    put(&mut any, YAML, value.to_string().as_bytes());
    any
}

/// One of three fields, written also where it is zero.
fn default(value: &Value) -> Vec<u8> {
    const FIXED64: u8 = 1;
    let mut default = Vec::new();
    match value {
        Value::Number(number) => {
            default.push(1 << 3 | FIXED64);
            default.extend_from_slice(&number.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::Bool(flag) => default.extend_from_slice(&[2 << 3, u8::from(*flag)]),
        Value::String(text) => put(&mut default, 3, text.as_bytes()),
        _ => {}
    }
    default
}

fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(name.len() + value.len() + 8);
    put(&mut message, 1, name.as_bytes());
    put(&mut message, 2, value);
    message
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// Appends a length-delimited field.
fn put(message: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    const LENGTH_DELIMITED: usize = 2;
    varint(message, usize::from(number) << 3 | LENGTH_DELIMITED);
    varint(message, bytes.len());
    message.extend_from_slice(bytes);
}

/// Proto3 writes no false.
fn put_flag(message: &mut Vec<u8>, number: u8, value: bool) {
    if value {
        varint(message, usize::from(number) << 3);
        message.push(1);
    }
}

fn varint(message: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        message.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests;
