//! Messages whose JSON is not an object with their fields, and scalars.

use serde::de::IgnoredAny;

use super::decode::Decoder;
use super::envelope::Envelope;
use super::fields::{Frame, Wire};
use super::scalar::{micro_time, quantity, time};
use super::{Error, MAX_DEPTH};
use crate::gotext::utf8;
use crate::json;
use crate::schema::types::{Cardinality, FieldKind, Format, Message};
use crate::tree::Value;

impl<'t, 'm> Decoder<'t, 'm> {
    pub(super) fn formatted(
        &mut self,
        message: &'t Message,
        bytes: &'m [u8],
        depth: usize,
    ) -> Result<Value, Error> {
        // An empty message is Go's zero time; a message with zero seconds is the year 1970.
        if bytes.is_empty() && matches!(message.format, Format::Time | Format::MicroTime) {
            return Ok(Value::Null);
        }
        let frame = self.fields.open(message, bytes)?;
        let value = self.of_format(message, frame, depth);
        self.fields.close(frame);
        value
    }

    fn of_format(&mut self, message: &'t Message, frame: Frame, depth: usize) -> Result<Value, Error> {
        let integer = |index| match self.wire(frame, index) {
            Some(Wire::Varint(value)) if message.fields[index].kind == FieldKind::Int32 => {
                i64::from(value as i32)
            }
            Some(Wire::Varint(value)) => value as i64,
            _ => 0,
        };
        let octets = |index| self.wire(frame, index).map(Wire::bytes);
        match message.format {
            Format::Time => Ok(time(integer(0))?.map(|time| format!("{time:.0}Z")).into()),
            Format::MicroTime => {
                let time = micro_time(integer(0), integer(1))?;
                Ok(time.map(|time| format!("{time:.6}Z")).into())
            }
            Format::Quantity => quantity(octets(0)),
            Format::IntOrString => match integer(0) {
                0 => Ok(integer(1).into()),
                1 => Ok(utf8(octets(2).unwrap_or_default()).into()),
                _ => Err(Error::IntOrString),
            },
            Format::Raw => {
                let raw = octets(0).unwrap_or_default();
                match self.closed && message.name == "FieldsV1" {
                    true => Ok(Self::set(raw)),
                    false => self.raw(raw, depth),
                }
            }
            // A named list is never nil if it occurs on the wire.
            Format::Object | Format::List => {
                self.list(message.fields[0].kind, self.fields.slot(frame, 0), depth + 1).map(Value::Array)
            }
            Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings => {
                self.alternative(message, frame, depth)
            }
        }
    }

    fn wire(&self, frame: Frame, index: usize) -> Option<Wire<'m>> {
        self.fields.last(self.fields.slot(frame, index))
    }

    /// Decodes a union of list, schema and boolean: a non-empty list, otherwise a schema, otherwise a boolean if the
    /// message has one.
    fn alternative(&mut self, message: &'t Message, frame: Frame, depth: usize) -> Result<Value, Error> {
        let mut fallback = match message.format {
            Format::SchemaOrBool => Value::Bool(false),
            _ => Value::Null,
        };
        for (index, field) in message.fields.iter().enumerate() {
            let slot = self.fields.slot(frame, index);
            if slot.is_absent() {
                continue;
            }
            match (field.cardinality, field.kind) {
                (Cardinality::List, kind) => {
                    return self.list(kind, slot, depth + 1).map(Value::Array);
                }
                (_, FieldKind::Message(id)) => fallback = self.single(id, slot, depth)?,
                (_, kind) if fallback.is_boolean() => {
                    let wire = self.fields.last(slot);
                    fallback = Value::Bool(wire.is_some_and(|wire| !wire.is_zero(kind)));
                }
                _ => {}
            }
        }
        Ok(fallback)
    }

    fn raw(&mut self, bytes: &'m [u8], depth: usize) -> Result<Value, Error> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        if Envelope::recognizes(bytes) {
            return self.enveloped(&Envelope::parse(bytes)?, depth);
        }
        // Each value takes at least two bytes of JSON.
        self.charge(bytes.len() / 2)?;
        let value = json::parse(bytes)?.value;
        if depth + levels(&value) > MAX_DEPTH + 1 {
            return Err(Error::TooDeep);
        }
        Ok(value)
    }

    /// Decodes a manager's set as text. Bytes that are no JSON become a value that is no set, so that the managers are dropped:
    /// upstream does not look at them before it decodes the managers.
    fn set(bytes: &[u8]) -> Value {
        let text = utf8(bytes);
        match text.trim_ascii() {
            "" if bytes.is_empty() => Value::Null,
            "null" => Value::Null,
            _ if serde_json::from_str::<IgnoredAny>(&text).is_err() => Value::Bool(false),
            _ => text.into(),
        }
    }

    /// Decodes a protobuf object inside another one, as in `List.items`.
    fn enveloped(&mut self, envelope: &Envelope<'m>, depth: usize) -> Result<Value, Error> {
        let gvk = envelope.gvk()?;
        let id = self.types.message_of(&gvk).ok_or(Error::UnknownKind(gvk))?;
        let value = self.value(id, envelope.raw, depth)?;
        let Value::Object(members) = value else { return Ok(value) };
        let claims = [("kind", &envelope.kind), ("apiVersion", &envelope.api_version)];
        let claims = claims.map(|(name, claim)| (name.into(), Value::from(claim.as_str())));
        Ok(Value::Object(claims.into_iter().chain(members).collect()))
    }
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}
