//! What the wire says of a message, field by field, before it is printed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::Error;
use super::decode::Decoder;
use super::envelope::check;
use crate::gotext::utf8;
use crate::protowire::{BYTES, FIXED64, Reader, Tag, VARINT};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, Message, MessageId};

/// One per field of the message, in the same order; `None` for what is absent.
pub(super) type Slots<'a> = Vec<Option<Slot<'a>>>;

pub(super) enum Slot<'a> {
    Scalar(Scalar<'a>),
    /// The bytes of an embedded message; joined if it came in pieces, which is how messages are merged.
    Message(Cow<'a, [u8]>),
    List(Vec<Value>),
    /// Sorted, as Go prints maps.
    Map(BTreeMap<String, Value>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
}

impl<'a> Scalar<'a> {
    pub fn zero(kind: FieldKind) -> Self {
        match kind {
            FieldKind::Bool => Self::Bool(false),
            FieldKind::Int32 | FieldKind::Int64 => Self::Integer(0),
            FieldKind::Double => Self::Double(0.0),
            FieldKind::String => Self::Text(b""),
            FieldKind::Bytes | FieldKind::Message(_) => Self::Bytes(b""),
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            Self::Bool(value) => !value,
            Self::Integer(value) => value == 0,
            Self::Double(value) => value == 0.0,
            Self::Text(value) | Self::Bytes(value) => value.is_empty(),
        }
    }

    pub fn into_json(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Bool(value) => value.into(),
            Self::Integer(value) => value.into(),
            Self::Double(value) => number(value)?,
            Self::Text(value) => utf8(value).into(),
            Self::Bytes(value) => STANDARD.encode(value).into(),
        })
    }

    fn read(kind: FieldKind, reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(match kind {
            FieldKind::Bool => Self::Bool(reader.varint()? != 0),
            // Cut to 32 bits, as upstream does.
            FieldKind::Int32 => Self::Integer(i64::from(reader.varint()? as i32)),
            FieldKind::Int64 => Self::Integer(reader.varint()? as i64),
            FieldKind::Double => Self::Double(f64::from_bits(reader.fixed64()?)),
            FieldKind::String => Self::Text(reader.bytes()?),
            FieldKind::Bytes | FieldKind::Message(_) => Self::Bytes(reader.bytes()?),
        })
    }
}

/// Integral values have no fraction in Go's JSON.
pub(super) fn number(value: f64) -> Result<Value, Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or(Error::Number(value))
}

impl Decoder<'_> {
    /// Reads all fields; `depth` is that of the JSON object the message becomes.
    pub(super) fn slots<'a>(
        &mut self,
        message: &Message,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<Slots<'a>, Error> {
        let mut slots: Slots<'a> = Vec::new();
        slots.resize_with(message.fields.len(), || None);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            check(tag, &message.name)?;
            match message.index_of(tag.number()) {
                Some(index) => {
                    self.slot(&message.fields[index], tag, &mut reader, depth, &mut slots[index])?
                }
                None => reader.skip(tag)?,
            }
        }
        Ok(slots)
    }

    fn slot<'a>(
        &mut self,
        field: &Field,
        tag: Tag,
        reader: &mut Reader<'a>,
        depth: usize,
        slot: &mut Option<Slot<'a>>,
    ) -> Result<(), Error> {
        match field.cardinality {
            Cardinality::Map => {
                expect(field, tag, BYTES)?;
                let (key, value) = self.entry(field, reader.bytes()?, depth + 2)?;
                match slot {
                    Some(Slot::Map(map)) => drop(map.insert(key, value)),
                    _ => *slot = Some(Slot::Map(BTreeMap::from([(key, value)]))),
                }
            }
            Cardinality::List => {
                let Some(Slot::List(list)) = slot else {
                    *slot = Some(Slot::List(Vec::new()));
                    return self.slot(field, tag, reader, depth, slot);
                };
                self.elements(field, tag, reader, depth + 2, list)?;
            }
            Cardinality::Single => {
                expect(field, tag, wire_of(field.kind))?;
                match (field.kind, &mut *slot) {
                    (FieldKind::Message(id), Some(Slot::Message(pieces))) if self.merges(id) => {
                        pieces.to_mut().extend_from_slice(reader.bytes()?);
                    }
                    (FieldKind::Message(_), slot) => {
                        *slot = Some(Slot::Message(Cow::Borrowed(reader.bytes()?)));
                    }
                    (kind, slot) => *slot = Some(Slot::Scalar(Scalar::read(kind, reader)?)),
                }
            }
        }
        Ok(())
    }

    /// Times are read anew each time they occur (`Time.Unmarshal`).
    fn merges(&self, id: MessageId) -> bool {
        !matches!(self.types.message(id).format, Format::Time | Format::MicroTime)
    }

    /// One element, or several numbers packed into one byte string.
    fn elements(
        &mut self,
        field: &Field,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: usize,
        list: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let wire = wire_of(field.kind);
        if wire != BYTES && tag.wire() == BYTES {
            let mut packed = Reader::new(reader.bytes()?);
            while !packed.is_empty() {
                list.push(self.element(field.kind, &mut packed, depth)?);
            }
            return Ok(());
        }
        expect(field, tag, wire)?;
        list.push(self.element(field.kind, reader, depth)?);
        Ok(())
    }

    fn element(&mut self, kind: FieldKind, reader: &mut Reader<'_>, depth: usize) -> Result<Value, Error> {
        match kind {
            FieldKind::Message(id) => self.value(id, reader.bytes()?, depth),
            kind => self.scalar(Scalar::read(kind, reader)?),
        }
    }

    /// A message of key and value; either may be missing.
    fn entry(&mut self, field: &Field, bytes: &[u8], depth: usize) -> Result<(String, Value), Error> {
        let mut key = Cow::Borrowed("");
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number() {
                1 => key = utf8(reader.bytes()?),
                2 if tag.wire() == wire_of(field.kind) => {
                    value = Some(self.element(field.kind, &mut reader, depth)?)
                }
                2 => return Err(wrong_type(field, tag)),
                _ => reader.skip(tag)?,
            }
        }
        let value = match (value, field.kind) {
            (Some(value), _) => value,
            (None, FieldKind::Message(id)) => self.value(id, &[], depth)?,
            (None, kind) => self.scalar(Scalar::zero(kind))?,
        };
        Ok((key.into_owned(), value))
    }
}

fn wire_of(kind: FieldKind) -> u8 {
    match kind {
        FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 => VARINT,
        FieldKind::Double => FIXED64,
        FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => BYTES,
    }
}

fn expect(field: &Field, tag: Tag, wire: u8) -> Result<(), Error> {
    if tag.wire() == wire { Ok(()) } else { Err(wrong_type(field, tag)) }
}

/// Names the field as Go does: with a capital.
fn wrong_type(field: &Field, tag: Tag) -> Error {
    let mut letters = field.name.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    Error::FieldType { field: first + letters.as_str(), wire: tag.wire() }
}
