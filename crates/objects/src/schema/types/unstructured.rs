//! Reads an object as upstream's converter does (`FromUnstructured`), for strategic merge patches and applies.
//!
//! The converter has error texts of its own for values of the wrong type, truncates integers to the size of their
//! field, and accepts integers written as fractions. In all else it agrees with [`super::conform()`], so it is needed
//! only for objects that do not conform.

use super::conform::{form, judge_alternative};
use super::{Cardinality, Field, FieldKind, Format, GoShape, Message, MessageId, Types};
use crate::gotext::{decode_base64, json_kind};
use crate::json::{whole, whole_numbers};
use crate::tree::{Map, Value};

/// Gives numbers the form that their fields can hold. The error is the converter's.
pub fn from_unstructured(shape: &GoShape, object: &mut Map) -> Result<(), String> {
    Converter { types: &shape.types }.members(shape.message, object)
}

struct Converter<'a> {
    types: &'a Types,
}

impl Converter<'_> {
    /// Converts the members in the struct's order, since the first error is reported.
    fn members(&self, id: MessageId, object: &mut Map) -> Result<(), String> {
        self.types.message(id).members.iter().try_for_each(|member| {
            let field = self.types.field(member);
            object.get_mut(&field.json_name).map_or(Ok(()), |value| self.field(field, value))
        })
    }

    fn field(&self, field: &Field, value: &mut Value) -> Result<(), String> {
        match (field.cardinality, value) {
            (_, Value::Null) => Ok(()),
            (Cardinality::Single, value) => self.one(field, value),
            (Cardinality::List, Value::Array(items)) => self.items(field, items),
            (Cardinality::Map, Value::Object(entries)) => {
                entries.values_mut().try_for_each(|entry| self.one(field, entry))
            }
            (Cardinality::List, value) => Err(format!("cannot restore slice from {}", go_kind(value))),
            (Cardinality::Map, value) => Err(format!("cannot restore map from {}", go_kind(value))),
        }
    }

    fn items(&self, field: &Field, items: &mut [Value]) -> Result<(), String> {
        items.iter_mut().try_for_each(|item| self.one(field, item))
    }

    /// Converts a value of the field's type, or of its element type.
    fn one(&self, field: &Field, value: &mut Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let is_fraction = value.as_f64().is_some_and(|number| value.is_f64() && number.fract() != 0.0);
        match (field.kind, value) {
            (FieldKind::Message(id), value) => self.message(self.types.message(id), id, value),
            (FieldKind::Bytes, Value::String(text)) => {
                decode_base64(text).map(drop).map_err(|why| format!("error decoding from json: {why}"))
            }
            (FieldKind::Bytes, Value::Array(items)) => items.iter_mut().try_for_each(byte),
            (FieldKind::Bytes, value) => Err(format!("cannot restore slice from {}", go_kind(value))),
            (FieldKind::Bool, Value::Bool(_))
            | (FieldKind::String, Value::String(_))
            | (FieldKind::Double, Value::Number(_)) => Ok(()),
            (FieldKind::Int32 | FieldKind::Int64, Value::Number(number)) if !is_fraction => {
                whole(number);
                if let (FieldKind::Int32, Some(integer)) = (field.kind, number.as_i64()) {
                    *number = (integer as i32).into();
                }
                Ok(())
            }
            (FieldKind::Int32 | FieldKind::Int64, Value::Number(_)) => {
                Err(format!("cannot convert float64 to {}", self.types.go_type(field)))
            }
            // In Go an integer can be converted to a string, as a character.
            (FieldKind::String, value @ Value::Number(_)) if !value.is_f64() => {
                Err(format!("cannot convert int64 to {}", self.types.go_type(field)))
            }
            (kind, _) => Err(format!("unrecognized type: {}", Types::go_kind(kind))),
        }
    }

    fn message(&self, message: &Message, id: MessageId, value: &mut Value) -> Result<(), String> {
        match (message.format, value) {
            (Format::Object, Value::Object(members)) => self.members(id, members),
            (Format::Object, value) => Err(format!("cannot restore struct from: {}", go_kind(value))),
            (Format::List, Value::Array(items)) => self.items(&message.fields[0], items),
            (Format::List, value) => Err(format!("cannot restore slice from {}", go_kind(value))),
            // Types with a decoder of their own read JSON.
            (Format::Time | Format::MicroTime, Value::String(text)) => {
                form::time(text, message.format).map(drop)
            }
            (Format::Time | Format::MicroTime, value) => Err(misfit(json_kind(value), "string")),
            (Format::Quantity, value) => form::quantity(value, None),
            (Format::IntOrString, Value::String(_)) => Ok(()),
            (Format::IntOrString, value @ Value::Number(_)) => {
                whole_numbers(value);
                let fits = value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
                if fits { Ok(()) } else { Err(misfit(&format!("number {value}"), "int32")) }
            }
            (Format::IntOrString, value) => Err(misfit(json_kind(value), "int32")),
            (Format::Raw, value) => {
                whole_numbers(value);
                Ok(())
            }
            (Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings, value) => {
                whole_numbers(value);
                judge_alternative(self.types, id, value)
            }
        }
    }
}

/// An element of a list that is read as bytes.
fn byte(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Number(number) => {
            whole(number);
            let integer = number.as_i64().ok_or("cannot convert float64 to uint8")?;
            *number = i64::from(integer as u8).into();
            Ok(())
        }
        _ => Err("unrecognized type: uint8".to_owned()),
    }
}

fn misfit(found: &str, want: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {want}")
}

/// The name in `reflect` of the kind of a decoded value.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
