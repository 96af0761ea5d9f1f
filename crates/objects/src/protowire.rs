//! Protobuf's wire format: prost's primitives with the error texts of gogo's generated code (`generated.pb.go` of
//! k8s.io/api), which clients see.

use prost::encoding::{WireType, decode_varint};

pub mod write;

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("unexpected EOF")]
    UnexpectedEof,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
}

pub const VARINT: u8 = WireType::Varint as u8;
pub const FIXED64: u8 = WireType::SixtyFourBit as u8;
pub const BYTES: u8 = WireType::LengthDelimited as u8;
pub const START_GROUP: u8 = WireType::StartGroup as u8;
pub const END_GROUP: u8 = WireType::EndGroup as u8;
pub const FIXED32: u8 = WireType::ThirtyTwoBit as u8;

/// The tag before a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The number on the wire.
    pub raw: u64,
}

impl Tag {
    /// The field's number; zero and negative numbers are illegal.
    pub fn number(self) -> i32 {
        // Upstream truncates to 32 bits.
        (self.raw >> 3) as i32
    }

    pub fn wire(self) -> u8 {
        (self.raw & 7) as u8
    }
}

/// A cursor over a message.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of unread bytes.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next field's tag, `None` at the end of the message.
    pub fn tag(&mut self) -> Result<Option<Tag>, Error> {
        if self.is_empty() {
            return Ok(None);
        }
        Ok(Some(Tag { raw: self.varint()? }))
    }

    pub fn varint(&mut self) -> Result<u64, Error> {
        // Most tags have one byte. Testing that first makes prost's reader the fastest that was measured
        // (docs/adr/0010).
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        let mut rest = self.rest;
        match decode_varint(&mut rest) {
            Ok(value) => {
                self.rest = rest;
                Ok(value)
            }
            Err(_) => self.odd_varint(),
        }
    }

    /// Reads a varint that prost refuses, as gogo does: bits beyond 64 are dropped, and more than ten bytes are an
    /// error.
    #[cold]
    fn odd_varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().enumerate() {
            if index == 10 {
                return Err(Error::Overflow);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        // Upstream checks for overflow before it looks for another byte.
        Err(if self.rest.len() >= 10 { Error::Overflow } else { Error::UnexpectedEof })
    }

    pub fn fixed64(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Error::UnexpectedEof)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads a length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.varint()?;
        if length > i64::MAX as u64 {
            return Err(Error::NegativeLength);
        }
        let length = usize::try_from(length).map_err(|_| Error::UnexpectedEof)?;
        self.take(length)
    }

    /// Skips the value behind `tag`.
    pub fn skip(&mut self, tag: Tag) -> Result<(), Error> {
        let mut depth = 0usize;
        let mut wire = tag.wire();
        loop {
            match wire {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                START_GROUP => depth += 1,
                END_GROUP => depth = depth.checked_sub(1).ok_or(Error::EndOfGroup)?,
                FIXED32 => drop(self.take(4)?),
                other => return Err(Error::WireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
            wire = self.tag()?.ok_or(Error::UnexpectedEof)?.wire();
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::UnexpectedEof)?;
        self.rest = rest;
        Ok(taken)
    }
}
