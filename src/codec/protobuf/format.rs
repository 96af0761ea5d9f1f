//! Messages whose JSON is not an object of their fields.

use std::ops::Range;

use jiff::Timestamp;
use serde_json::Value;

use super::decode::Decoder;
use super::envelope::Envelope;
use super::slots::{Scalar, Slot, Slots};
use super::{Error, MAX_DEPTH, find};
use crate::codec::json;
use crate::gotext::utf8;
use crate::quantity;
use crate::schema::types::{FieldKind, Format, Message};

/// Go's zero time, 0001-01-01T00:00:00Z.
const ZERO_TIME: i64 = -62_135_596_800;
/// From the year 0 to 9999, which is what RFC 3339 has digits for.
const PRINTABLE: Range<i64> = -62_167_219_200..253_402_300_800;

impl Decoder<'_> {
    pub(super) fn formatted(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, Error> {
        let slots = self.slots(message, bytes, depth)?;
        match message.format {
            // The zero time is the empty message; one of zeros is 1970.
            Format::Time | Format::MicroTime if bytes.is_empty() => Ok(Value::Null),
            Format::Time => Ok(time(integer(&slots, 0))?.map(|time| time.to_string()).into()),
            Format::MicroTime => {
                let time = micro_time(integer(&slots, 0), integer(&slots, 1))?;
                Ok(time.map(|time| format!("{time:.6}")).into())
            }
            Format::Quantity => quantity(octets(&slots, 0)),
            Format::IntOrString => match integer(&slots, 0) {
                0 => Ok(integer(&slots, 1).into()),
                1 => Ok(utf8(octets(&slots, 2).unwrap_or_default()).into()),
                _ => Err(Error::IntOrString),
            },
            Format::Raw => self.raw(octets(&slots, 0).unwrap_or_default(), depth),
            // Named lists are never nil once they are mentioned.
            Format::Object | Format::List => Ok(Value::Array(first_list(slots).unwrap_or_default())),
            Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings => {
                self.alternative(message, slots, depth)
            }
        }
    }

    /// A list that is not empty, else a schema, else a boolean if the message has one.
    fn alternative(&mut self, message: &Message, slots: Slots<'_>, depth: usize) -> Result<Value, Error> {
        let mut fallback = match message.format {
            Format::SchemaOrBool => Value::Bool(false),
            _ => Value::Null,
        };
        for (field, slot) in message.fields.iter().zip(slots) {
            match (field.kind, slot) {
                (_, Some(Slot::List(list))) if !list.is_empty() => return Ok(Value::Array(list)),
                (FieldKind::Message(id), Some(Slot::Message(bytes))) => {
                    fallback = self.value(id, &bytes, depth)?;
                }
                (_, Some(Slot::Scalar(Scalar::Bool(allows)))) if fallback.is_boolean() => {
                    fallback = allows.into();
                }
                _ => {}
            }
        }
        Ok(fallback)
    }

    fn raw(&mut self, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        if Envelope::recognizes(bytes) {
            return self.enveloped(&Envelope::parse(bytes)?, depth);
        }
        // A value takes two bytes of JSON at least.
        self.charge(bytes.len() / 2)?;
        let value = json::parse(bytes)?.value;
        if depth + levels(&value) > MAX_DEPTH + 1 {
            return Err(Error::TooDeep);
        }
        Ok(value)
    }

    /// An object in protobuf inside another, as in `List.items`.
    fn enveloped(&mut self, envelope: &Envelope<'_>, depth: usize) -> Result<Value, Error> {
        let id = find(self.types, &envelope.api_version, &envelope.kind)?;
        let value = self.value(id, envelope.raw, depth)?;
        let Value::Object(members) = value else { return Ok(value) };
        let claims = [("kind", &envelope.kind), ("apiVersion", &envelope.api_version)];
        let claims = claims.map(|(name, claim)| (name.to_owned(), Value::from(claim.as_str())));
        Ok(Value::Object(claims.into_iter().chain(members).collect()))
    }
}

fn integer(slots: &Slots<'_>, index: usize) -> i64 {
    match slots.get(index) {
        Some(Some(Slot::Scalar(Scalar::Integer(value)))) => *value,
        _ => 0,
    }
}

fn octets<'a>(slots: &Slots<'a>, index: usize) -> Option<&'a [u8]> {
    match slots.get(index) {
        Some(Some(Slot::Scalar(Scalar::Text(value) | Scalar::Bytes(value)))) => Some(value),
        _ => None,
    }
}

fn first_list(slots: Slots<'_>) -> Option<Vec<Value>> {
    slots.into_iter().flatten().find_map(|slot| match slot {
        Slot::List(list) if !list.is_empty() => Some(list),
        _ => None,
    })
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// `None` is Go's zero time.
pub(super) fn time(seconds: i64) -> Result<Option<Timestamp>, Error> {
    if seconds == ZERO_TIME {
        return Ok(None);
    }
    if !PRINTABLE.contains(&seconds) {
        return Err(Error::Time);
    }
    Timestamp::from_second(seconds).map(Some).map_err(|_| Error::Time)
}

/// As [`time`], with microseconds.
pub(super) fn micro_time(seconds: i64, nanos: i64) -> Result<Option<Timestamp>, Error> {
    let micros = nanos / 1000;
    if (seconds, micros) == (ZERO_TIME, 0) {
        return Ok(None);
    }
    let micros = i128::from(seconds) * 1_000_000 + i128::from(micros);
    let micros = i64::try_from(micros).map_err(|_| Error::Time)?;
    if !PRINTABLE.contains(&micros.div_euclid(1_000_000)) {
        return Err(Error::Time);
    }
    Timestamp::from_microsecond(micros).map(Some).map_err(|_| Error::Time)
}

/// Absent is zero.
fn quantity(sent: Option<&[u8]>) -> Result<Value, Error> {
    let Some(sent) = sent else { return Ok("0".into()) };
    Ok(quantity::normalize(&utf8(sent))?.into())
}
