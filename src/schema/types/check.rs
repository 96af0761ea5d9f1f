//! Whether JSON is an object of its kind, said in the words of Go's decoder.
//!
//! Names of named scalars are not known here: where upstream says `v1.PodPhase`, this says `string`.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Cardinality, Field, FieldKind, Format, Message, MessageId, Types};
use crate::gotext::{decode_base64, json_kind, quote};
use crate::quantity;

/// Checks an object of a kind that is known, and nothing of others. Null is fine everywhere.
pub fn check(api_version: &str, kind: &str, object: &Map<String, Value>) -> Result<(), String> {
    let types = Types::built_in();
    let Some(id) = types.kind(api_version, kind) else { return Ok(()) };
    let message = types.message(id);
    Checker { types, path: Vec::new() }.members(message, &message.name, object)
}

struct Checker<'a> {
    types: &'a Types,
    /// The members on the way, and structs that lend their members to their parents.
    path: Vec<&'a str>,
}

impl<'a> Checker<'a> {
    /// `owner` is the struct whose members these are.
    fn members(
        &mut self,
        message: &'a Message,
        owner: &str,
        members: &Map<String, Value>,
    ) -> Result<(), String> {
        // In the order of the text: the first error counts. What is unknown is dropped later.
        members.iter().try_for_each(|(name, value)| self.member(message, owner, name, value))
    }

    fn member(&mut self, message: &'a Message, owner: &str, name: &str, value: &Value) -> Result<(), String> {
        let depth = self.path.len();
        let Some(field) = self.find(message, name) else { return Ok(()) };
        self.path.push(&field.json_name);
        self.field(field, owner, value)?;
        self.path.truncate(depth);
        Ok(())
    }

    fn find(&mut self, message: &'a Message, name: &str) -> Option<&'a Field> {
        let own = message.fields.iter().find(|field| !field.inline && &*field.json_name == name);
        own.or_else(|| {
            message.fields.iter().filter(|field| field.inline).find_map(|field| {
                let FieldKind::Message(id) = field.kind else { return None };
                let lender = self.types.message(id);
                self.path.push(&lender.name);
                let found = self.find(lender, name);
                if found.is_none() {
                    self.path.pop();
                }
                found
            })
        })
    }

    fn field(&mut self, field: &'a Field, owner: &str, value: &Value) -> Result<(), String> {
        match (field.cardinality, value) {
            (_, Value::Null) => Ok(()),
            (Cardinality::Single, value) => self.one(field.kind, owner, value),
            (Cardinality::List, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.one(field.kind, owner, item))
            }
            (Cardinality::Map, Value::Object(entries)) => {
                entries.values().try_for_each(|entry| self.one(field.kind, owner, entry))
            }
            (Cardinality::List, _) => {
                Err(self.misfit(owner, json_kind(value), &format!("[]{}", self.go_type(field.kind))))
            }
            (Cardinality::Map, _) => {
                Err(self.misfit(owner, json_kind(value), &format!("map[string]{}", self.go_type(field.kind))))
            }
        }
    }

    fn one(&mut self, kind: FieldKind, owner: &str, value: &Value) -> Result<(), String> {
        let fits = match (kind, value) {
            (_, Value::Null) => true,
            (FieldKind::Message(id), value) => return self.message(id, owner, value),
            (FieldKind::Bytes, Value::String(text)) => return decode_base64(text).map(drop),
            (FieldKind::Int32 | FieldKind::Int64, Value::Number(number)) => {
                let fits = number
                    .as_i64()
                    .is_some_and(|number| kind == FieldKind::Int64 || i32::try_from(number).is_ok());
                let found = format!("number {number}");
                return if fits { Ok(()) } else { Err(self.misfit(owner, &found, &self.go_type(kind))) };
            }
            (FieldKind::Bool, value) => value.is_boolean(),
            (FieldKind::Double, value) => value.is_number(),
            (FieldKind::String, value) => value.is_string(),
            (FieldKind::Bytes | FieldKind::Int32 | FieldKind::Int64, _) => false,
        };
        if fits { Ok(()) } else { Err(self.misfit(owner, json_kind(value), &self.go_type(kind))) }
    }

    fn message(&mut self, id: MessageId, owner: &str, value: &Value) -> Result<(), String> {
        let message = self.types.message(id);
        match (message.format, value) {
            (Format::Raw, _) => Ok(()),
            (Format::Object, Value::Object(members)) => self.members(message, &message.name, members),
            (Format::Object, _) => Err(self.misfit(owner, json_kind(value), &message.go_name())),
            (Format::Time | Format::MicroTime, Value::String(text)) => time(text, message.format),
            (Format::Time | Format::MicroTime, _) => Err(self.misfit(owner, json_kind(value), "string")),
            (Format::Quantity, Value::String(text)) => quantity_text(text.trim()),
            (Format::Quantity, value) => quantity_text(&value.to_string()),
            (Format::IntOrString, Value::String(_)) => Ok(()),
            (Format::IntOrString, value) => self.one(FieldKind::Int32, owner, value),
            (Format::List, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.one(message.fields[0].kind, owner, item))
            }
            (Format::List, _) => Err(self.misfit(owner, json_kind(value), &message.go_name())),
            (Format::SchemaOrBool, Value::Bool(_)) => Ok(()),
            (Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings, value) => {
                self.alternative(message, owner, value)
            }
        }
    }

    fn alternative(&mut self, message: &'a Message, owner: &str, value: &Value) -> Result<(), String> {
        let wanted = match value {
            Value::Object(_) => Cardinality::Single,
            Value::Array(_) => Cardinality::List,
            _ if message.format == Format::SchemaOrBool => {
                return Err("boolean or JSON schema expected".to_owned());
            }
            // Upstream drops it.
            _ => return Ok(()),
        };
        let field =
            message.fields.iter().find(|field| field.cardinality == wanted && field.kind != FieldKind::Bool);
        match field {
            Some(field) => self.field(field, owner, value),
            None => Err("boolean or JSON schema expected".to_owned()),
        }
    }

    fn go_type(&self, kind: FieldKind) -> String {
        match kind {
            FieldKind::Bool => "bool".to_owned(),
            FieldKind::Int32 => "int32".to_owned(),
            FieldKind::Int64 => "int64".to_owned(),
            FieldKind::Double => "float64".to_owned(),
            FieldKind::String => "string".to_owned(),
            FieldKind::Bytes => "[]uint8".to_owned(),
            FieldKind::Message(id) => self.types.message(id).go_name(),
        }
    }

    fn misfit(&self, owner: &str, found: &str, want: &str) -> String {
        let path = self.path.join(".");
        format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {want}")
    }
}

fn quantity_text(text: &str) -> Result<(), String> {
    quantity::normalize(text).map(drop).map_err(|error| error.to_string())
}

fn time(text: &str, format: Format) -> Result<(), String> {
    let micro = format == Format::MicroTime;
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    if is_rfc3339(text) && (!micro || has_micros(text)) {
        return Ok(());
    }
    let (layout, text) = (quote(layout), quote(text));
    Err(format!("parsing time {text} as {layout}: cannot parse {text} as \"2006\""))
}

/// The parser below also takes a blank or a small `t`, and offsets in other forms.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let offset = matches!(bytes, [.., b'+' | b'-', _, _, b':', _, _]);
    bytes.get(10) == Some(&b'T') && (bytes.ends_with(b"Z") || offset) && text.parse::<Timestamp>().is_ok()
}

fn has_micros(text: &str) -> bool {
    let fraction = text.get(19..).and_then(|rest| rest.strip_prefix('.'));
    fraction.is_some_and(|fraction| fraction.bytes().take_while(u8::is_ascii_digit).count() == 6)
}
