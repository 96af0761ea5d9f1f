//! Prints messages as JSON text without building a tree. Stored objects are read this way.
//!
//! The text is what [`Decoder`] would decode, plus the kind and apiVersion of typed objects inside other objects:
//! messages do not contain these, and upstream's conversions add them. Only messages in the form that upstream and this
//! server write are printed directly; a valid message of unusual form (a struct in pieces, packed numbers, keys out of
//! order) is decoded and printed.

mod formats;

use std::fmt;
use std::io::Write as _;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use super::decode::Decoder;
use super::fields::{Fields, Slot, Wire};
use super::{Error, MAX_DEPTH, MAX_VALUES, scalar};
use crate::gotext::utf8;
use crate::json::text::{write_json, write_string};
use crate::protowire::{self, BYTES, Reader, VARINT};
use crate::schema::types::{Absence, Cardinality, Field, FieldKind, Message, MessageId, Role, Types};

/// The most bytes of JSON, so that a small value with many empty messages cannot fill the memory. Bodies are a few MiB.
const MAX_BYTES: usize = 64 << 20;
/// The most occurrences of fields at a time. Stored values were accepted once, so this limit only ensures that indices
/// fit in 32 bits.
const MAX_OCCURRENCES: usize = u32::MAX as usize;

/// Prints one object from a message with lifetime `'m`.
pub(super) struct Printer<'t, 'm> {
    types: &'t Types,
    out: Vec<u8>,
    fields: Fields<'m>,
    origin: Origin,
}

/// The origin of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Anywhere,
    /// From a tree, just now: embedded JSON is valid, and no deeper than the tree was allowed to be.
    Tree,
}

/// Why a message cannot be printed directly.
enum Stop {
    /// The decoder has to read it, or to find out what is wrong with it.
    Unusual,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<protowire::Error> for Stop {
    fn from(error: protowire::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The kind of an object.
#[derive(Clone, Copy)]
struct Kind<'t> {
    id: MessageId,
    name: &'t str,
    api_version: &'t str,
}

/// Whether a null was printed, which some fields leave out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    Null,
    Value,
}

impl<'t, 'm> Printer<'t, 'm> {
    /// Prints behind the content of `out`, which must be the start of an object that has members.
    pub fn new(types: &'t Types, origin: Origin, out: Vec<u8>) -> Self {
        Self { types, out, fields: Fields::new(MAX_OCCURRENCES), origin }
    }

    /// Prints the members of a top-level object, and its end.
    pub fn finish(mut self, id: MessageId, bytes: &'m [u8]) -> Result<Vec<u8>, Error> {
        let start = self.out.len();
        match self.all_members(id, bytes, 1) {
            Ok(()) => {}
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Unusual) => {
                self.out.truncate(start);
                for (name, value) in Decoder::new(self.types, MAX_VALUES).members_of(id, bytes)? {
                    self.name(&name);
                    write_json(&mut self.out, &value);
                }
            }
        }
        self.out.push(b'}');
        Ok(self.out)
    }

    fn all_members(&mut self, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<(), Stop> {
        let message = self.types.message(id);
        let frame = self.fields.open(message, bytes)?;
        for index in frame.present.union(message.unasked) {
            let (field, slot) = (&message.fields[index], self.fields.slot(frame, index));
            if field.inline {
                self.inlined(field, slot, depth)?;
            } else {
                self.member(message, field, slot, depth + 1)?;
            }
        }
        self.fields.close(frame);
        Ok(())
    }

    fn inlined(&mut self, field: &Field, slot: Slot, depth: usize) -> Result<(), Stop> {
        let FieldKind::Message(id) = field.kind else { return Ok(()) };
        match self.only(slot)? {
            Some(wire) => self.all_members(id, wire.bytes(), depth),
            None if !field.pointer => self.all_members(id, &[], depth),
            None => Ok(()),
        }
    }

    fn member(&mut self, holder: &Message, field: &Field, slot: Slot, depth: usize) -> Result<(), Stop> {
        if slot.is_absent() {
            return self.absent(field, depth);
        }
        match (field.cardinality, field.kind) {
            (Cardinality::List, kind) => {
                self.name(&field.json_name);
                self.list(holder, kind, slot, depth + 1)
            }
            (Cardinality::Map, kind) => {
                self.name(&field.json_name);
                self.map(kind, slot, depth + 1)
            }
            (Cardinality::Single, FieldKind::Message(id)) => {
                let Some(wire) = self.only(slot)? else { return Ok(()) };
                self.message(field, id, wire.bytes(), depth)
            }
            (Cardinality::Single, kind) => match self.fields.last(slot) {
                Some(wire) if field.pointer || field.always || !wire.is_zero(kind) => {
                    self.name(&field.json_name);
                    self.scalar(kind, wire)
                }
                _ => Ok(()),
            },
        }
    }

    fn message(&mut self, field: &Field, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<(), Stop> {
        let before = self.out.len();
        self.name(&field.json_name);
        if self.value(id, bytes, depth)? == Printed::Null && field.omit_zero {
            self.out.truncate(before);
        }
        Ok(())
    }

    /// Prints what Go prints for a field that is absent on the wire.
    fn absent(&mut self, field: &Field, depth: usize) -> Result<(), Stop> {
        let text: &[u8] = match (field.absence, field.kind) {
            (Absence::Silent, _) => return Ok(()),
            (Absence::Zero, FieldKind::Message(id)) => return self.message(field, id, &[], depth),
            (Absence::Null, _) => b"null",
            (Absence::Zero, FieldKind::Bool) => b"false",
            (Absence::Zero, FieldKind::String) => b"\"\"",
            (Absence::Zero, _) => b"0",
        };
        self.name(&field.json_name);
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn list(&mut self, holder: &Message, kind: FieldKind, slot: Slot, depth: usize) -> Result<(), Stop> {
        let (mut at, mut separator) = (slot.first, b'[');
        let object = self.object_in_part(holder, kind);
        while let Some(element) = self.fields.at(at) {
            self.out.push(separator);
            match object {
                Some(object) => self.object(object, element.wire, depth)?,
                None => self.element(kind, element.wire, depth)?,
            }
            (at, separator) = (element.next, b',');
        }
        self.out.push(b']');
        Ok(())
    }

    /// The kind of an object inside another one. Items of typed lists get none, as upstream does not print theirs.
    fn object_in_part(&self, holder: &Message, element: FieldKind) -> Option<Kind<'t>> {
        let FieldKind::Message(id) = element else { return None };
        let message = self.types.message(id);
        match (&holder.role, &message.role) {
            (Role::Part, Role::Kind(version)) => {
                Some(Kind { id, name: message.name, api_version: version.api_version() })
            }
            _ => None,
        }
    }

    fn object(&mut self, kind: Kind<'t>, wire: Wire<'m>, depth: usize) -> Result<(), Stop> {
        let Wire::Bytes(bytes) = wire else { return Err(Stop::Unusual) };
        let Kind { id, name, api_version } = kind;
        self.write(format_args!("{{\"kind\":\"{name}\",\"apiVersion\":\"{api_version}\""));
        self.all_members(id, bytes, depth)?;
        self.out.push(b'}');
        Ok(())
    }

    fn map(&mut self, kind: FieldKind, slot: Slot, depth: usize) -> Result<(), Stop> {
        let (mut at, mut separator) = (slot.first, b'{');
        let mut before: Option<&str> = None;
        while let Some(found) = self.fields.at(at) {
            let (key, value) = entry(found.wire.bytes())?;
            let key = std::str::from_utf8(key).map_err(|_| Stop::Unusual)?;
            if before.is_some_and(|before| before >= key) {
                return Err(Stop::Unusual);
            }
            self.out.push(separator);
            write_string(&mut self.out, key);
            self.out.push(b':');
            self.element(kind, value, depth)?;
            (at, separator, before) = (found.next, b',', Some(key));
        }
        self.out.push(b'}');
        Ok(())
    }

    fn element(&mut self, kind: FieldKind, wire: Wire<'m>, depth: usize) -> Result<(), Stop> {
        match kind {
            FieldKind::Message(id) => match wire {
                Wire::Bytes(bytes) => self.value(id, bytes, depth).map(drop),
                Wire::Varint(_) | Wire::Fixed64(_) => Err(Stop::Unusual),
            },
            kind => self.scalar(kind, wire),
        }
    }

    fn value(&mut self, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<Printed, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Failed(Error::TooDeep));
        }
        if self.out.len() > MAX_BYTES {
            return Err(Stop::Failed(Error::TooLarge));
        }
        let (start, frame) = (self.out.len(), self.fields.mark());
        match self.usual(id, bytes, depth) {
            Err(Stop::Unusual) => {
                self.out.truncate(start);
                self.fields.close(frame);
                let value = Decoder::new(self.types, MAX_VALUES).value(id, bytes, depth)?;
                write_json(&mut self.out, &value);
                Ok(if value.is_null() { Printed::Null } else { Printed::Value })
            }
            other => other,
        }
    }

    fn scalar(&mut self, kind: FieldKind, wire: Wire<'m>) -> Result<(), Stop> {
        match (kind, wire) {
            (FieldKind::Bool, Wire::Varint(value)) => {
                self.out.extend_from_slice(if value != 0 { b"true" } else { b"false" });
            }
            // Upstream truncates to 32 bits.
            (FieldKind::Int32, Wire::Varint(value)) => write_json(&mut self.out, &(value as i32)),
            (FieldKind::Int64, Wire::Varint(value)) => write_json(&mut self.out, &(value as i64)),
            (FieldKind::Double, Wire::Fixed64(bits)) => {
                write_json(&mut self.out, &scalar::number(f64::from_bits(bits))?);
            }
            (FieldKind::String, Wire::Bytes(value)) => write_string(&mut self.out, &utf8(value)),
            (FieldKind::Bytes, Wire::Bytes(value)) => {
                self.write(format_args!("\"{}\"", Base64Display::new(value, &STANDARD)));
            }
            _ => return Err(Stop::Unusual),
        }
        Ok(())
    }

    /// The value of a field that may occur only once.
    fn only(&self, slot: Slot) -> Result<Option<Wire<'m>>, Stop> {
        if slot.count > 1 {
            return Err(Stop::Unusual);
        }
        Ok(self.fields.last(slot))
    }

    /// Prints the name of a member. JSON names of fields need no escapes.
    fn name(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a Vec takes everything");
    }

    fn null(&mut self) -> Printed {
        self.out.extend_from_slice(b"null");
        Printed::Null
    }
}

/// Key and value of a map entry, which are both written unless they are nil.
fn entry(message: &[u8]) -> Result<(&[u8], Wire<'_>), Stop> {
    let mut reader = Reader::new(message);
    let (mut key, mut value) = (None, None);
    while let Some(tag) = reader.tag()? {
        match (tag.number(), tag.wire()) {
            (1, BYTES) if key.is_none() => key = Some(reader.bytes()?),
            (2, BYTES) if value.is_none() => value = Some(Wire::Bytes(reader.bytes()?)),
            (2, VARINT) if value.is_none() => value = Some(Wire::Varint(reader.varint()?)),
            _ => return Err(Stop::Unusual),
        }
    }
    key.zip(value).ok_or(Stop::Unusual)
}

/// The byte string of a message with only this field; empty if the field is absent.
fn single(message: &[u8], number: i32) -> Result<&[u8], Stop> {
    let mut reader = Reader::new(message);
    let mut found = None;
    while let Some(tag) = reader.tag()? {
        match (tag.number(), tag.wire()) {
            (at, BYTES) if at == number && found.is_none() => found = Some(reader.bytes()?),
            _ => return Err(Stop::Unusual),
        }
    }
    found.ok_or(Stop::Unusual)
}
