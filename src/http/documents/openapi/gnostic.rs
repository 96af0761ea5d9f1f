//! The protobuf forms of OpenAPI: gnostic's `openapi.v2.Document` and `openapi.v3.Document`, made of the JSON forms.
//!
//! `build/gnostic/*.proto` say which field a member is. Everything is written from its end, see
//! [`crate::protowire::write`].

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::protowire::write::Writer;
use crate::tree::{Text, Value};

/// A message of gnostic's, by how it is made of JSON.
enum Message {
    /// Any value, as text.
    Any,
    /// The elements of a list; what is no list is the only element.
    List(Field),
    /// One of several forms: the first that fits the value.
    OneOf(&'static [(When, Field)]),
    /// An object's members, in the order of the fields' numbers.
    Object(&'static [Field]),
}

#[derive(Clone, Copy)]
struct Field {
    number: i32,
    members: Members,
    repeated: bool,
    kind: Kind,
}

/// The members of an object that a field holds.
#[derive(Clone, Copy)]
enum Members {
    One(&'static str),
    /// All that begin with `x-`, each with its name.
    Extensions,
    /// All that no other field holds, each with its name.
    Others,
}

#[derive(Clone, Copy)]
enum Kind {
    String,
    Bool,
    Double,
    /// A place in the table.
    Message(usize),
}

/// When a value has a form.
enum When {
    Has(&'static str),
    /// The place of a parameter, its member `in`, is this one.
    IsIn(&'static str),
    Number,
    Boolean,
    String,
    Always,
}

static V2: &[Message] = &include!(concat!(env!("OUT_DIR"), "/gnostic_v2.rs"));
static V3: &[Message] = &include!(concat!(env!("OUT_DIR"), "/gnostic_v3.rs"));

/// Encodes the JSON form of a document of v2.
pub(super) fn encode_v2(document: &[u8]) -> Vec<u8> {
    Encoder { messages: V2, out: Writer::with_capacity(document.len()) }.document(document)
}

/// Encodes the JSON form of a document of v3.
pub(super) fn encode_v3(document: &[u8]) -> Vec<u8> {
    Encoder { messages: V3, out: Writer::with_capacity(document.len()) }.document(document)
}

const JSON: &str = "what was encoded here can be read";

struct Encoder {
    messages: &'static [Message],
    out: Writer,
}

impl Encoder {
    fn document(mut self, text: &[u8]) -> Vec<u8> {
        const DOCUMENT: usize = 0;
        self.put_large(DOCUMENT, serde_json::from_slice(text).expect(JSON));
        self.out.finish()
    }

    /// Writes what may be large: of the named members of an object one is decoded at a time.
    fn put_large(&mut self, id: usize, text: &RawValue) {
        let decode = |text: &RawValue| -> Value { serde_json::from_str(text.get()).expect(JSON) };
        let Message::Object(fields) = self.messages[id] else { return self.put(id, &decode(text)) };
        let members: BTreeMap<Text, &RawValue> = serde_json::from_str(text.get()).expect(JSON);
        check(fields, members.keys());
        for field in fields.iter().rev() {
            for (name, text) in members.iter().rev().filter(|(name, _)| field.holds(fields, name)) {
                match field {
                    Field { members: Members::One(_), kind: Kind::Message(id), repeated: false, number } => {
                        self.within(*number, |encoder| encoder.put_large(*id, text));
                    }
                    _ => self.put_member(field, name, &decode(text)),
                }
            }
        }
    }

    fn put(&mut self, id: usize, value: &Value) {
        match &self.messages[id] {
            // JSON is YAML.
            Message::Any => self.out.bytes(2, value.to_string().as_bytes()),
            Message::List(field) => self.put_each(field, value),
            Message::OneOf(forms) => {
                if let Some((_, field)) = forms.iter().find(|(when, _)| when.fits(value)) {
                    self.put_one(field, value);
                }
            }
            Message::Object(fields) => {
                let Some(members) = value.as_object() else { return };
                check(fields, members.iter().map(|(name, _)| name));
                for field in fields.iter().rev() {
                    for (name, value) in members.iter().rev().filter(|(name, _)| field.holds(fields, name)) {
                        self.put_member(field, name, value);
                    }
                }
            }
        }
    }

    fn put_member(&mut self, field: &Field, name: &str, value: &Value) {
        match field.members {
            // Proto3 writes no false.
            Members::One(_) if *value == Value::Bool(false) => {}
            Members::One(_) => self.put_each(field, value),
            Members::Extensions | Members::Others => self.within(field.number, |encoder| {
                encoder.put_one(&Field { number: 2, ..*field }, value);
                encoder.out.bytes(1, name.as_bytes());
            }),
        }
    }

    fn put_each(&mut self, field: &Field, value: &Value) {
        match value {
            Value::Array(elements) if field.repeated => {
                elements.iter().rev().for_each(|element| self.put_one(field, element));
            }
            value => self.put_one(field, value),
        }
    }

    fn put_one(&mut self, field: &Field, value: &Value) {
        match field.kind {
            Kind::String => self.out.bytes(field.number, value.as_str().unwrap_or_default().as_bytes()),
            Kind::Bool => self.out.varint(field.number, u64::from(*value == Value::Bool(true))),
            Kind::Double => {
                let number = value.as_f64().unwrap_or_default();
                self.out.fixed64(field.number, number.to_bits());
            }
            Kind::Message(id) => self.within(field.number, |encoder| encoder.put(id, value)),
        }
    }

    /// A message in this field.
    fn within(&mut self, number: i32, content: impl FnOnce(&mut Self)) {
        let end = self.out.close();
        content(self);
        self.out.open(number, end);
    }
}

impl Field {
    /// Whether the field is that of a member. `fields` are those of the message.
    fn holds(&self, fields: &[Field], name: &str) -> bool {
        let is = |field: &Field| matches!(field.members, Members::One(own) if own == name);
        match self.members {
            Members::One(_) => is(self),
            Members::Extensions => name.starts_with("x-"),
            Members::Others => !fields.iter().any(is),
        }
    }
}

impl When {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Has(name) => value.get(*name).is_some(),
            Self::IsIn(place) => value["in"] == *place,
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::String => value.is_string(),
            Self::Always => true,
        }
    }
}

/// A member without a field would be lost: gnostic's files have to be told of it.
fn check<'a>(fields: &[Field], mut names: impl Iterator<Item = &'a Text>) {
    debug_assert_eq!(names.find(|name| !fields.iter().any(|field| field.holds(fields, name))), None);
}

#[cfg(test)]
mod tests;
