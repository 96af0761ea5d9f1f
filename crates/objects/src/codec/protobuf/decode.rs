//! Decodes messages into the JSON that Go's `encoding/json` prints for the same structs.

use std::borrow::Cow;

use super::fields::{Fields, Frame, Slot, Wire, wire_of, wrong_type};
use super::{Error, MAX_DEPTH, scalar};
use crate::gotext::utf8;
use crate::protowire::Reader;
use crate::schema::types::{Absence, Cardinality, Field, FieldKind, Format, Message, MessageId, Types};
use crate::tree::{Map, Value};

/// Decodes one object from a message with lifetime `'m`. Depth counts JSON levels; the object itself is at level 1.
pub(super) struct Decoder<'t, 'm> {
    pub(super) types: &'t Types,
    pub(super) fields: Fields<'m>,
    values_left: usize,
    /// Whether the sets of managers stay text.
    pub(super) closed: bool,
}

impl<'t, 'm> Decoder<'t, 'm> {
    pub fn new(types: &'t Types, max_values: usize) -> Self {
        Self { types, fields: Fields::new(max_values), values_left: max_values, closed: false }
    }

    /// Makes the decoder leave the sets of managers as text.
    pub fn closed(self) -> Self {
        Self { closed: true, ..self }
    }

    /// Decodes the members of a top-level object.
    pub fn members_of(&mut self, id: MessageId, bytes: &'m [u8]) -> Result<Map, Error> {
        self.object(self.types.message(id), bytes, 1)
    }

    /// Decodes a message into a JSON value. If that is an object or list, it is at level `depth`.
    pub fn value(&mut self, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<Value, Error> {
        self.charge(1)?;
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let message = self.types.message(id);
        if message.format != Format::Object {
            return self.formatted(message, bytes, depth);
        }
        self.object(message, bytes, depth).map(Value::Object)
    }

    /// Counts decoded values, so that a small body cannot fill the memory.
    pub fn charge(&mut self, values: usize) -> Result<(), Error> {
        self.values_left = self.values_left.checked_sub(values).ok_or(Error::TooLarge)?;
        Ok(())
    }

    fn object(&mut self, message: &'t Message, bytes: &'m [u8], depth: usize) -> Result<Map, Error> {
        let frame = self.fields.open(message, bytes)?;
        let mut members = Map::with_capacity(frame.filled);
        self.members(message, frame, depth, &mut members)?;
        Ok(members)
    }

    /// Decodes the members of the innermost message, and closes the message.
    fn members(
        &mut self,
        message: &'t Message,
        frame: Frame,
        depth: usize,
        into: &mut Map,
    ) -> Result<(), Error> {
        for index in frame.present.union(message.unasked) {
            let (field, slot) = (&message.fields[index], self.fields.slot(frame, index));
            if field.inline {
                self.inlined(field, slot, depth, into)?;
            } else if let Some(value) = self.member(field, slot, depth + 1)? {
                into.push(field.json_name.clone(), value);
            }
        }
        self.fields.close(frame);
        Ok(())
    }

    fn inlined(&mut self, field: &'t Field, slot: Slot, depth: usize, into: &mut Map) -> Result<(), Error> {
        let FieldKind::Message(id) = field.kind else { return Ok(()) };
        if slot.is_absent() && field.pointer {
            return Ok(());
        }
        let message = self.types.message(id);
        self.whole(id, slot, |decoder, bytes| {
            let frame = decoder.fields.open(message, bytes)?;
            decoder.members(message, frame, depth, into)
        })
    }

    /// Decodes a member; `None` if Go does not print it.
    fn member(&mut self, field: &'t Field, slot: Slot, depth: usize) -> Result<Option<Value>, Error> {
        if slot.is_absent() {
            return self.absent(field, depth);
        }
        match (field.cardinality, field.kind) {
            (Cardinality::List, kind) => match self.list(kind, slot, depth + 1)? {
                list if list.is_empty() => self.absent(field, depth),
                list => Ok(Some(Value::Array(list))),
            },
            (Cardinality::Map, _) => self.map(field, slot, depth + 1).map(|map| Some(Value::Object(map))),
            (Cardinality::Single, FieldKind::Message(id)) => {
                let value = self.single(id, slot, depth)?;
                Ok(printed(field, value))
            }
            (Cardinality::Single, kind) => match self.fields.last(slot) {
                Some(wire) if field.pointer || field.always || !wire.is_zero(kind) => {
                    self.scalar(kind, wire).map(Some)
                }
                _ => Ok(None),
            },
        }
    }

    /// The JSON that Go prints for a field that is absent on the wire, if any.
    fn absent(&mut self, field: &Field, depth: usize) -> Result<Option<Value>, Error> {
        match (field.absence, field.kind) {
            (Absence::Silent, _) => Ok(None),
            (Absence::Null, _) => Ok(Some(Value::Null)),
            (Absence::Zero, FieldKind::Message(id)) => {
                let value = self.value(id, &[], depth)?;
                Ok(printed(field, value))
            }
            (Absence::Zero, kind) => self.zero(kind).map(Some),
        }
    }

    /// Decodes a field that holds a single message.
    pub(super) fn single(&mut self, id: MessageId, slot: Slot, depth: usize) -> Result<Value, Error> {
        self.whole(id, slot, |decoder, bytes| decoder.value(id, bytes, depth))
    }

    /// Reads a message that may be split into several occurrences: concatenated, they are the whole message.
    fn whole<T>(
        &mut self,
        id: MessageId,
        slot: Slot,
        read: impl for<'x> FnOnce(&mut Decoder<'t, 'x>, &'x [u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let last = self.fields.last(slot).map_or(&[][..], Wire::bytes);
        // Each occurrence of a time replaces the one before (`Time.Unmarshal`).
        let times = matches!(self.types.message(id).format, Format::Time | Format::MicroTime);
        if slot.count <= 1 || times {
            return read(self, last);
        }
        let mut joined = Vec::new();
        let mut at = slot.first;
        while let Some(piece) = self.fields.at(at) {
            joined.extend_from_slice(piece.wire.bytes());
            at = piece.next;
        }
        let mut decoder = Decoder::new(self.types, self.values_left);
        let value = read(&mut decoder, &joined);
        self.values_left = decoder.values_left;
        value
    }

    /// Decodes a list. An occurrence may be several packed numbers.
    pub(super) fn list(&mut self, kind: FieldKind, slot: Slot, depth: usize) -> Result<Vec<Value>, Error> {
        let numbers = !matches!(kind, FieldKind::String | FieldKind::Bytes | FieldKind::Message(_));
        let mut list = Vec::with_capacity(self.values_left.min(slot.count as usize));
        let mut at = slot.first;
        while let Some(element) = self.fields.at(at) {
            match element.wire {
                Wire::Bytes(packed) if numbers => {
                    let mut reader = Reader::new(packed);
                    while !reader.is_empty() {
                        let wire = Wire::read(&mut reader, wire_of(kind))?;
                        list.push(self.scalar(kind, wire)?);
                    }
                }
                wire => list.push(self.element(kind, wire, depth)?),
            }
            at = element.next;
        }
        Ok(list)
    }

    /// Decodes a map, sorted as Go prints maps. Of a repeated key, the last value counts.
    fn map(&mut self, field: &'t Field, slot: Slot, depth: usize) -> Result<Map, Error> {
        let mut map = Map::with_capacity(self.values_left.min(slot.count as usize));
        let mut sorted = true;
        let mut before: Option<&[u8]> = None;
        let mut at = slot.first;
        while let Some(entry) = self.fields.at(at) {
            let (key, value) = self.entry(field, entry.wire.bytes(), depth)?;
            let follows = before.is_none_or(|before| before < key);
            before = Some(key);
            sorted &= follows;
            match utf8(key) {
                Cow::Borrowed(name) if sorted => _ = map.push(name.into(), value),
                // Two keys that are not UTF-8 may become the same text.
                name => _ = map.insert(name, value),
            }
            at = entry.next;
        }
        if !sorted {
            map.sort_keys();
        }
        Ok(map)
    }

    /// Decodes a map entry, a message of key and value; either may be absent.
    fn entry(&mut self, field: &Field, bytes: &'m [u8], depth: usize) -> Result<(&'m [u8], Value), Error> {
        let mut key = &[][..];
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number() {
                1 => key = reader.bytes()?,
                2 if tag.wire() == wire_of(field.kind) => {
                    let wire = Wire::read(&mut reader, tag.wire())?;
                    value = Some(self.element(field.kind, wire, depth)?);
                }
                2 => return Err(wrong_type(field, tag)),
                _ => reader.skip(tag)?,
            }
        }
        let value = match (value, field.kind) {
            (Some(value), _) => value,
            (None, FieldKind::Message(id)) => self.value(id, &[], depth)?,
            (None, kind) => self.zero(kind)?,
        };
        Ok((key, value))
    }

    fn element(&mut self, kind: FieldKind, wire: Wire<'m>, depth: usize) -> Result<Value, Error> {
        match kind {
            FieldKind::Message(id) => self.value(id, wire.bytes(), depth),
            kind => self.scalar(kind, wire),
        }
    }

    fn scalar(&mut self, kind: FieldKind, wire: Wire<'_>) -> Result<Value, Error> {
        self.charge(1)?;
        scalar::scalar(kind, wire)
    }

    fn zero(&mut self, kind: FieldKind) -> Result<Value, Error> {
        self.charge(1)?;
        Ok(match kind {
            FieldKind::Bool => false.into(),
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => 0.into(),
            FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => "".into(),
        })
    }
}

fn printed(field: &Field, value: Value) -> Option<Value> {
    let omitted = field.omit_zero && value.is_null();
    (!omitted).then_some(value)
}
