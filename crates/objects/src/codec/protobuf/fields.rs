//! The index of a message's fields: where their values are on the wire, found in one pass before any value is decoded.

use super::Error;
use super::envelope::check;
use crate::protowire::{BYTES, FIXED64, Reader, Tag, VARINT};
use crate::schema::types::{Cardinality, Field, FieldBits, FieldKind, Message};

/// The fields of all messages that are being read, the innermost last. The vectors are reused, so that after a while
/// reading a message allocates nothing.
pub(super) struct Fields<'m> {
    slots: Vec<Slot>,
    occurrences: Vec<Occurrence<'m>>,
    /// The most occurrences that may exist at the same time.
    max_occurrences: usize,
}

/// One of the messages that are being read.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    slots: usize,
    occurrences: usize,
    /// The fields that occur on the wire.
    pub present: FieldBits,
    /// How many fields have a value that becomes a member: about the size of the decoded object.
    pub filled: usize,
}

/// The occurrences of one field.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub first: OccurrenceIndex,
    pub last: OccurrenceIndex,
    pub count: u32,
}

/// The index of an occurrence. [`OccurrenceIndex::NONE`] ends the list of a field's occurrences.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct OccurrenceIndex(u32);

impl OccurrenceIndex {
    pub const NONE: Self = Self(u32::MAX);
}

impl Slot {
    const ABSENT: Self = Self { first: OccurrenceIndex::NONE, last: OccurrenceIndex::NONE, count: 0 };

    pub fn is_absent(self) -> bool {
        self.count == 0
    }
}

/// One occurrence of a field.
#[derive(Clone, Copy)]
pub(super) struct Occurrence<'m> {
    pub wire: Wire<'m>,
    /// The next occurrence of the same field.
    pub next: OccurrenceIndex,
}

/// A value on the wire: of the field's own type, or several packed numbers as bytes.
#[derive(Clone, Copy)]
pub(super) enum Wire<'m> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'m [u8]),
}

impl<'m> Wire<'m> {
    /// The bytes; empty for a number.
    pub fn bytes(self) -> &'m [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Varint(_) | Self::Fixed64(_) => &[],
        }
    }

    /// Whether this is the zero value of a scalar of this kind.
    pub fn is_zero(self, kind: FieldKind) -> bool {
        match self {
            // Upstream truncates to 32 bits.
            Self::Varint(value) if kind == FieldKind::Int32 => value as u32 == 0,
            Self::Varint(value) => value == 0,
            Self::Fixed64(bits) => f64::from_bits(bits) == 0.0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    /// Reads the next value, which has this wire type.
    pub fn read(reader: &mut Reader<'m>, wire: u8) -> Result<Self, Error> {
        Ok(match wire {
            VARINT => Self::Varint(reader.varint()?),
            FIXED64 => Self::Fixed64(reader.fixed64()?),
            _ => Self::Bytes(reader.bytes()?),
        })
    }
}

impl<'m> Fields<'m> {
    pub fn new(max_occurrences: usize) -> Self {
        Self { slots: Vec::with_capacity(256), occurrences: Vec::with_capacity(256), max_occurrences }
    }

    /// Indexes all fields of a message, which becomes the innermost one.
    pub fn open(&mut self, message: &Message, bytes: &'m [u8]) -> Result<Frame, Error> {
        let (slots, occurrences) = (self.slots.len(), self.occurrences.len());
        self.slots.resize(slots + message.fields.len(), Slot::ABSENT);
        let (mut present, mut filled) = (FieldBits::default(), 0);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            let Some(index) = message.index_of(tag.number()) else {
                check(tag, message.name)?;
                reader.skip(tag)?;
                continue;
            };
            let field = &message.fields[index];
            if !suits(field, tag.wire()) {
                check(tag, message.name)?;
                return Err(wrong_type(field, tag));
            }
            let wire = Wire::read(&mut reader, tag.wire())?;
            if self.occurrences.len() == self.max_occurrences {
                return Err(Error::TooLarge);
            }
            let place = OccurrenceIndex(self.occurrences.len() as u32);
            self.occurrences.push(Occurrence { wire, next: OccurrenceIndex::NONE });
            let slot = &mut self.slots[slots + index];
            match slot.last {
                OccurrenceIndex::NONE => {
                    slot.first = place;
                    present.insert(index);
                    filled += usize::from(is_member(field, wire));
                }
                OccurrenceIndex(last) => self.occurrences[last as usize].next = place,
            }
            slot.last = place;
            slot.count += 1;
        }
        Ok(Frame { slots, occurrences, present, filled })
    }

    /// The slot of a message's field, by the field's index.
    pub fn slot(&self, frame: Frame, index: usize) -> Slot {
        self.slots[frame.slots + index]
    }

    /// The occurrence at a place; `None` behind the last one.
    pub fn at(&self, place: OccurrenceIndex) -> Option<Occurrence<'m>> {
        self.occurrences.get(place.0 as usize).copied()
    }

    /// The last value of a field. If a field occurs more than once, this is the value that counts.
    pub fn last(&self, slot: Slot) -> Option<Wire<'m>> {
        self.at(slot.last).map(|occurrence| occurrence.wire)
    }

    /// Drops the innermost message and everything opened within it.
    pub fn close(&mut self, frame: Frame) {
        self.slots.truncate(frame.slots);
        self.occurrences.truncate(frame.occurrences);
    }

    /// A mark to which [`Fields::close`] can return.
    pub fn mark(&self) -> Frame {
        Frame {
            slots: self.slots.len(),
            occurrences: self.occurrences.len(),
            present: FieldBits::default(),
            filled: 0,
        }
    }
}

/// The wire type of a single value that is not packed.
pub(super) fn wire_of(kind: FieldKind) -> u8 {
    match kind {
        FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 => VARINT,
        FieldKind::Double => FIXED64,
        FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => BYTES,
    }
}

fn suits(field: &Field, wire: u8) -> bool {
    match field.cardinality {
        Cardinality::Single => wire == wire_of(field.kind),
        Cardinality::List => wire == wire_of(field.kind) || wire == BYTES,
        Cardinality::Map => wire == BYTES,
    }
}

/// Whether the value becomes a member of the object: the wire may contain zeros that JSON leaves out.
fn is_member(field: &Field, wire: Wire<'_>) -> bool {
    field.always || field.pointer || matches!(field.kind, FieldKind::Message(_)) || !wire.is_zero(field.kind)
}

/// The error of a wrong wire type. It names the field as Go does, with a capital letter.
pub(super) fn wrong_type(field: &Field, tag: Tag) -> Error {
    let mut letters = field.name.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    Error::FieldType { field: first + letters.as_str(), wire: tag.wire() }
}
