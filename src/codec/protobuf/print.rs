//! Messages to JSON text, without a tree in between: what stored objects become on their way into memory.
//!
//! Prints what [`Decoder`] decodes. Only messages as upstream and this server write them are read here; one that is
//! well-formed but unusual (a struct in pieces, packed numbers, keys out of order) is decoded and printed.

use std::fmt;
use std::io::Write as _;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use super::decode::Decoder;
use super::envelope::Envelope;
use super::format;
use super::{Error, MAX_DEPTH, MAX_VALUES};
use crate::codec::json_text::{write_json, write_string};
use crate::gotext::utf8;
use crate::protowire::{self, BYTES, FIXED64, Reader, VARINT};
use crate::quantity;
use crate::schema::types::{Cardinality, Field, FieldKind, Format, Message, MessageId, Types};

/// Bytes of JSON, so that a small value of empty messages cannot fill the memory. Bodies are a few MiB.
const MAX_BYTES: usize = 64 << 20;

/// Prints one object. `'m` is the message's bytes.
pub(super) struct Printer<'t, 'm> {
    types: &'t Types,
    out: Vec<u8>,
    /// One per field of each message that is being printed, the innermost last.
    slots: Vec<Slot>,
    occurrences: Vec<Occurrence<'m>>,
}

/// Where the values of a field are among the occurrences.
#[derive(Clone, Copy)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Occurrence<'m> {
    wire: Wire<'m>,
    /// Of the same field.
    next: u32,
}

#[derive(Clone, Copy)]
enum Wire<'m> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'m [u8]),
}

const NONE: u32 = u32::MAX;
const ABSENT: Slot = Slot { first: NONE, last: NONE };

/// Why a message cannot be printed from its bytes.
enum Stop {
    /// The decoder can tell what it is, or what is wrong with it.
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

/// Whether what was printed is a null, which some fields leave out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    Null,
    Value,
}

impl<'t, 'm> Printer<'t, 'm> {
    /// Prints after what is in `out`, which is to be the beginning of an object with some members.
    pub fn new(types: &'t Types, out: Vec<u8>) -> Self {
        Self { types, out, slots: Vec::with_capacity(256), occurrences: Vec::with_capacity(256) }
    }

    /// The members of a top-level object and its end.
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
        let (slots, occurrences) = (self.slots.len(), self.occurrences.len());
        self.read(message, bytes)?;
        for (index, field) in message.fields.iter().enumerate() {
            let slot = self.slots[slots + index];
            if field.inline {
                self.inlined(field, slot, depth)?;
            } else {
                self.member(field, slot, depth + 1)?;
            }
        }
        self.slots.truncate(slots);
        self.occurrences.truncate(occurrences);
        Ok(())
    }

    /// Finds the values of all fields.
    fn read(&mut self, message: &Message, bytes: &'m [u8]) -> Result<(), Stop> {
        let slots = self.slots.len();
        self.slots.resize(slots + message.fields.len(), ABSENT);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            let Some(index) = message.index_of(tag.number()) else {
                if tag.number() <= 0 || !matches!(tag.wire(), VARINT | FIXED64 | BYTES) {
                    return Err(Stop::Unusual);
                }
                reader.skip(tag)?;
                continue;
            };
            let wire = match tag.wire() {
                VARINT => Wire::Varint(reader.varint()?),
                FIXED64 => Wire::Fixed64(reader.fixed64()?),
                BYTES => Wire::Bytes(reader.bytes()?),
                _ => return Err(Stop::Unusual),
            };
            let place = self.occurrences.len() as u32;
            self.occurrences.push(Occurrence { wire, next: NONE });
            let slot = &mut self.slots[slots + index];
            match slot.last {
                NONE => slot.first = place,
                last => self.occurrences[last as usize].next = place,
            }
            slot.last = place;
        }
        Ok(())
    }

    fn inlined(&mut self, field: &Field, slot: Slot, depth: usize) -> Result<(), Stop> {
        let FieldKind::Message(id) = field.kind else { return Ok(()) };
        match self.only(slot)? {
            Some(wire) => self.all_members(id, bytes(wire)?, depth),
            None if !field.pointer => self.all_members(id, &[], depth),
            None => Ok(()),
        }
    }

    fn member(&mut self, field: &Field, slot: Slot, depth: usize) -> Result<(), Stop> {
        if slot.first == NONE {
            return self.absent(field, depth);
        }
        match (field.cardinality, field.kind) {
            (Cardinality::List, kind) => {
                self.name(&field.json_name);
                self.list(kind, slot, depth + 1)
            }
            (Cardinality::Map, kind) => {
                self.name(&field.json_name);
                self.map(kind, slot, depth + 1)
            }
            (Cardinality::Single, FieldKind::Message(id)) => {
                let Some(wire) = self.only(slot)? else { return Ok(()) };
                self.message(field, id, bytes(wire)?, depth)
            }
            (Cardinality::Single, kind) => {
                let wire = self.occurrences[slot.last as usize].wire;
                if !fits(kind, wire) {
                    return Err(Stop::Unusual);
                }
                if field.pointer || field.always || !is_zero(wire) {
                    self.name(&field.json_name);
                    self.scalar(kind, wire)?;
                }
                Ok(())
            }
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

    /// What Go prints for a field that the wire does not mention.
    fn absent(&mut self, field: &Field, depth: usize) -> Result<(), Stop> {
        let slice = match field.kind {
            FieldKind::Bytes => true,
            FieldKind::Message(id) => self.types.message(id).format == Format::List,
            _ => false,
        };
        let nil = field.pointer || field.cardinality != Cardinality::Single || slice;
        match field.kind {
            FieldKind::Message(id) if !nil => self.message(field, id, &[], depth)?,
            _ if !field.always => {}
            kind => {
                self.name(&field.json_name);
                self.out.extend_from_slice(match kind {
                    _ if nil => b"null",
                    FieldKind::Bool => b"false",
                    FieldKind::String => b"\"\"",
                    _ => b"0",
                });
            }
        }
        Ok(())
    }

    fn list(&mut self, kind: FieldKind, slot: Slot, depth: usize) -> Result<(), Stop> {
        let (mut at, mut separator) = (slot.first, b'[');
        while at != NONE {
            let Occurrence { wire, next } = self.occurrences[at as usize];
            self.out.push(separator);
            self.element(kind, wire, depth)?;
            (at, separator) = (next, b',');
        }
        self.out.push(b']');
        Ok(())
    }

    fn map(&mut self, kind: FieldKind, slot: Slot, depth: usize) -> Result<(), Stop> {
        let (mut at, mut separator) = (slot.first, b'{');
        let mut before: Option<&str> = None;
        while at != NONE {
            let Occurrence { wire, next } = self.occurrences[at as usize];
            let (key, value) = entry(bytes(wire)?)?;
            let key = std::str::from_utf8(key).map_err(|_| Stop::Unusual)?;
            if before.is_some_and(|before| before >= key) {
                return Err(Stop::Unusual);
            }
            self.out.push(separator);
            write_string(&mut self.out, key);
            self.out.push(b':');
            self.element(kind, value, depth)?;
            (at, separator, before) = (next, b',', Some(key));
        }
        self.out.push(b'}');
        Ok(())
    }

    fn element(&mut self, kind: FieldKind, wire: Wire<'m>, depth: usize) -> Result<(), Stop> {
        match kind {
            FieldKind::Message(id) => self.value(id, bytes(wire)?, depth).map(drop),
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
        let (start, slots, occurrences) = (self.out.len(), self.slots.len(), self.occurrences.len());
        match self.usual(id, bytes, depth) {
            Err(Stop::Unusual) => {
                self.out.truncate(start);
                self.slots.truncate(slots);
                self.occurrences.truncate(occurrences);
                let value = Decoder::new(self.types, MAX_VALUES).value(id, bytes, depth)?;
                write_json(&mut self.out, &value);
                Ok(if value.is_null() { Printed::Null } else { Printed::Value })
            }
            other => other,
        }
    }

    fn usual(&mut self, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<Printed, Stop> {
        let message = self.types.message(id);
        match message.format {
            Format::Object => {
                self.out.push(b'{');
                self.all_members(id, bytes, depth)?;
                self.out.push(b'}');
            }
            Format::Time | Format::MicroTime if bytes.is_empty() => return Ok(self.null()),
            Format::Time => match format::time(two_integers(bytes)?.0)? {
                Some(time) => self.write(format_args!("\"{time}\"")),
                None => return Ok(self.null()),
            },
            Format::MicroTime => {
                let (seconds, nanos) = two_integers(bytes)?;
                match format::micro_time(seconds, nanos)? {
                    Some(time) => self.write(format_args!("\"{time:.6}\"")),
                    None => return Ok(self.null()),
                }
            }
            Format::Quantity => {
                let sent = single(bytes, 1)?;
                let normal = quantity::normalize(&utf8(sent)).map_err(Error::from)?;
                write_string(&mut self.out, &normal);
            }
            Format::IntOrString => self.int_or_string(bytes)?,
            Format::Raw => return self.raw(bytes, depth),
            Format::List | Format::SchemaOrBool | Format::SchemaOrArray | Format::SchemaOrStrings => {
                return Err(Stop::Unusual);
            }
        }
        Ok(Printed::Value)
    }

    fn int_or_string(&mut self, bytes: &'m [u8]) -> Result<(), Stop> {
        let (mut is_text, mut integer, mut text) = (0, 0, &b""[..]);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match (tag.number(), tag.wire()) {
                (1, VARINT) => is_text = reader.varint()?,
                (2, VARINT) => integer = reader.varint()? as i32,
                (3, BYTES) => text = reader.bytes()?,
                _ => return Err(Stop::Unusual),
            }
        }
        match is_text {
            0 => write_json(&mut self.out, &integer),
            1 => self.scalar(FieldKind::String, Wire::Bytes(text))?,
            _ => return Err(Stop::Unusual),
        }
        Ok(())
    }

    /// Embedded JSON stands in a stored object as it is to be printed; blanks are found only in keys and strings.
    fn raw(&mut self, bytes: &'m [u8], depth: usize) -> Result<Printed, Stop> {
        let json = single(bytes, 1)?;
        if json.is_empty() {
            return Ok(self.null());
        }
        let plain = |byte: &u8| !matches!(byte, 0..=b' ' | b'<' | b'>' | b'&' | 0x7f..);
        if Envelope::recognizes(json) || !json.iter().all(plain) || depth + nesting(json) > MAX_DEPTH {
            return Err(Stop::Unusual);
        }
        serde_json::from_slice::<serde::de::IgnoredAny>(json).map_err(Error::from)?;
        self.out.extend_from_slice(json);
        Ok(if json == b"null" { Printed::Null } else { Printed::Value })
    }

    fn scalar(&mut self, kind: FieldKind, wire: Wire<'m>) -> Result<(), Stop> {
        match (kind, wire) {
            (FieldKind::Bool, Wire::Varint(value)) => {
                self.out.extend_from_slice(if value != 0 { b"true" } else { b"false" });
            }
            // Cut to 32 bits, as upstream does.
            (FieldKind::Int32, Wire::Varint(value)) => write_json(&mut self.out, &(value as i32)),
            (FieldKind::Int64, Wire::Varint(value)) => write_json(&mut self.out, &(value as i64)),
            (FieldKind::Double, Wire::Fixed64(bits)) => {
                write_json(&mut self.out, &super::slots::number(f64::from_bits(bits))?);
            }
            (FieldKind::String, Wire::Bytes(value)) => write_string(&mut self.out, &utf8(value)),
            (FieldKind::Bytes, Wire::Bytes(value)) => {
                self.write(format_args!("\"{}\"", Base64Display::new(value, &STANDARD)));
            }
            _ => return Err(Stop::Unusual),
        }
        Ok(())
    }

    /// The value of a field that may occur once.
    fn only(&self, slot: Slot) -> Result<Option<Wire<'m>>, Stop> {
        match (slot.first, slot.last) {
            (NONE, _) => Ok(None),
            (first, last) if first == last => Ok(Some(self.occurrences[first as usize].wire)),
            _ => Err(Stop::Unusual),
        }
    }

    /// Names are JSON names, which need no escapes.
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

fn bytes(wire: Wire<'_>) -> Result<&[u8], Stop> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        Wire::Varint(_) | Wire::Fixed64(_) => Err(Stop::Unusual),
    }
}

fn fits(kind: FieldKind, wire: Wire<'_>) -> bool {
    match wire {
        Wire::Varint(_) => matches!(kind, FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64),
        Wire::Fixed64(_) => kind == FieldKind::Double,
        Wire::Bytes(_) => matches!(kind, FieldKind::String | FieldKind::Bytes | FieldKind::Message(_)),
    }
}

fn is_zero(wire: Wire<'_>) -> bool {
    match wire {
        Wire::Varint(value) => value == 0,
        Wire::Fixed64(bits) => f64::from_bits(bits) == 0.0,
        Wire::Bytes(bytes) => bytes.is_empty(),
    }
}

/// Key and value of a map, both of which are written always but for nil.
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

/// The byte string of a message that has nothing else; empty if it is absent.
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

fn two_integers(message: &[u8]) -> Result<(i64, i64), Stop> {
    let mut reader = Reader::new(message);
    let (mut first, mut second) = (0, 0);
    while let Some(tag) = reader.tag()? {
        match (tag.number(), tag.wire()) {
            (1, VARINT) => first = reader.varint()? as i64,
            (2, VARINT) => second = i64::from(reader.varint()? as i32),
            _ => return Err(Stop::Unusual),
        }
    }
    Ok((first, second))
}

/// At most so many levels: brackets in strings count too.
fn nesting(json: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    for byte in json {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
