//! The protobuf forms of OpenAPI: gnostic's `openapi.v2.Document` and `openapi.v3.Document`.
//!
//! What the JSON form says is encoded by tables: for each message, which member is which field. A member that no
//! table knows would be lost without a word, so a test looks for such members. Everything is written from its end, see
//! [`crate::protowire::write`].

use std::collections::BTreeMap;

use serde_json::value::RawValue;

mod form;
mod v2;
mod v3;

use crate::protowire::write::{Mark, Writer};
use crate::tree::{Map, Text, Value};
use form::{Form, Member, Message};

/// Encodes the JSON form of a document of v2.
pub(super) fn encode_v2(document: &[u8]) -> Vec<u8> {
    encode(&v2::DOCUMENT, document)
}

/// Encodes the JSON form of a document of v3.
pub(super) fn encode_v3(document: &[u8]) -> Vec<u8> {
    encode(&v3::DOCUMENT, document)
}

fn encode(message: &Message, document: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(document.len());
    put_text(&mut out, message, serde_json::from_slice(document).expect(JSON));
    out.finish()
}

const JSON: &str = "what was encoded here can be read";

fn members(text: &RawValue) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(text.get()).expect(JSON)
}

/// Writes what may be large: of maps one entry is decoded at a time.
fn put_text(out: &mut Writer, message: &Message, text: &RawValue) {
    let members = members(text);
    for member in message.members.iter().rev() {
        let Some(text) = members.get(member.name) else { continue };
        let end = out.close();
        match member.form {
            Form::Entries(number, path, message) => {
                for (name, text) in self::members(text).iter().rev() {
                    put_named(out, number, name, |out| {
                        put_nested(out, path, message, &serde_json::from_str(text.get()).expect(JSON));
                    });
                }
                out.open(member.number.into(), end);
            }
            Form::One([], message) if message.reference.is_none() => {
                put_text(out, message, text);
                out.open(member.number.into(), end);
            }
            _ => put_member(out, member, &serde_json::from_str(text.get()).expect(JSON)),
        }
    }
}

fn put_message(out: &mut Writer, message: &Message, value: &Value) {
    if let (Some(number), Some(fields)) = (message.extensions, value.as_object()) {
        for (name, value) in fields.iter().rev().filter(|(name, _)| name.starts_with("x-")) {
            put_named(out, number, name, |out| put_any(out, value));
        }
    }
    for member in message.members.iter().rev() {
        if let Some(value) = value.get(member.name) {
            put_member(out, member, value);
        }
    }
}

fn put_member(out: &mut Writer, member: &Member, value: &Value) {
    let number = i32::from(member.number);
    let end = out.close();
    match member.form {
        Form::Text => out.bytes(number, text(value)),
        // Proto3 writes no false.
        Form::Flag if value.as_bool() == Some(true) => out.varint(number, 1),
        Form::Flag => {}
        Form::Texts => list(value).rev().for_each(|each| out.bytes(number, text(each))),
        Form::Anys => list(value).rev().for_each(|each| put_within(out, number, |out| put_any(out, each))),
        Form::One(path, message) => put_within(out, number, |out| put_nested(out, path, message, value)),
        Form::Many(path, message) => list(value)
            .rev()
            .for_each(|each| put_within(out, number, |out| put_nested(out, path, message, each))),
        Form::Entries(entry, path, message) => {
            for (name, each) in fields(value).rev() {
                put_named(out, entry, name, |out| put_nested(out, path, message, each));
            }
            out.open(number, end);
        }
        Form::TextMaps => {
            list(value).rev().for_each(|each| put_within(out, number, |out| put_texts(out, each)))
        }
        Form::Parameters => list(value).rev().for_each(|each| {
            let (path, message) = v2::item(each);
            put_within(out, number, |out| put_nested(out, path, message, each));
        }),
        Form::NamedParameters => {
            for (name, each) in fields(value).rev() {
                let (path, message) = v2::parameter(each);
                put_named(out, 1, name, |out| put_nested(out, path, message, each));
            }
            out.open(number, end);
        }
        Form::Default => put_within(out, number, |out| put_default(out, value)),
    }
}

/// A message inside of messages of one field each, as a `oneof` is written.
fn put_nested(out: &mut Writer, path: &[u8], message: &Message, value: &Value) {
    let end = out.close();
    match (message.shorthand, message.reference) {
        // A type is a word in JSON and a list of words here.
        (Some(number), _) => out.bytes(number.into(), text(value)),
        (None, None) => put_message(out, message, value),
        (None, Some(reference)) => {
            let (number, message) = if value.get("$ref").is_some() { (2, reference) } else { (1, message) };
            put_message(out, message, value);
            out.open(number, end);
        }
    }
    for &number in path.iter().rev() {
        out.open(number.into(), end);
    }
}

/// JSON is YAML.
fn put_any(out: &mut Writer, value: &Value) {
    const YAML: i32 = 2;
    out.bytes(YAML, value.to_string().as_bytes());
}

/// An object of lists of strings.
fn put_texts(out: &mut Writer, value: &Value) {
    for (name, texts) in fields(value).rev() {
        put_named(out, 1, name, |out| list(texts).rev().for_each(|each| out.bytes(1, text(each))));
    }
}

/// One of three fields, written also where it is zero.
fn put_default(out: &mut Writer, value: &Value) {
    match value {
        Value::Number(number) => out.fixed64(1, number.as_f64().unwrap_or_default().to_bits()),
        Value::Bool(flag) => out.varint(2, u64::from(*flag)),
        Value::String(text) => out.bytes(3, text.as_bytes()),
        _ => {}
    }
}

/// A message of a name and a value, in this field.
fn put_named(out: &mut Writer, number: u8, name: &str, value: impl FnOnce(&mut Writer)) {
    let end = out.close();
    put_within(out, 2, value);
    out.bytes(1, name.as_bytes());
    out.open(number.into(), end);
}

/// A message in this field.
fn put_within(out: &mut Writer, number: i32, content: impl FnOnce(&mut Writer)) {
    let end: Mark = out.close();
    content(out);
    out.open(number, end);
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn fields(value: &Value) -> impl DoubleEndedIterator<Item = (&Text, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests;
