//! Writes messages from their ends to their starts, so that lengths are known when they have to be written.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::{BYTES, FIXED64, VARINT};
use crate::pieces;

/// The most bytes of a number.
const MAX_VARINT: usize = 10;

/// Builds one message. Its last field is written first.
#[derive(Debug, Default)]
pub struct Writer {
    /// Filled from its end; the bytes before `start` are free.
    bytes: Vec<u8>,
    start: usize,
}

/// The end of an embedded message, as a distance from the end of the whole message.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl Writer {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], start: bytes }
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.drain(..self.start);
        self.bytes
    }

    pub fn varint(&mut self, number: i32, value: u64) {
        self.raw_varint(value);
        self.tag(number, VARINT);
    }

    pub fn fixed64(&mut self, number: i32, value: u64) {
        self.raw(&value.to_le_bytes());
        self.tag(number, FIXED64);
    }

    pub fn bytes(&mut self, number: i32, value: &[u8]) {
        self.raw(value);
        self.raw_varint(value.len() as u64);
        self.tag(number, BYTES);
    }

    /// Marks the end of an embedded message. Write its fields next, then call [`Writer::open`].
    pub fn close(&self) -> Mark {
        Mark(self.written())
    }

    /// Writes the length and tag of the embedded message that ends at the mark.
    pub fn open(&mut self, number: i32, end: Mark) {
        self.raw_varint(self.since(end) as u64);
        self.tag(number, BYTES);
    }

    /// The number of bytes written since the mark.
    pub fn since(&self, end: Mark) -> usize {
        self.written() - end.0
    }

    /// Writes bytes before everything that was written so far.
    pub fn raw(&mut self, bytes: &[u8]) {
        if bytes.len() > self.start {
            self.grow(bytes.len());
        }
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
    }

    fn written(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn tag(&mut self, number: i32, wire: u8) {
        self.raw_varint((number as u64) << 3 | u64::from(wire));
    }

    fn raw_varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.raw(&[value as u8]);
        }
        let mut bytes = [0; MAX_VARINT];
        encode_varint(value, &mut &mut bytes[..]);
        self.raw(&bytes[..encoded_len_varint(value)]);
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let more = self.bytes.len().max(needed).max(64);
        let mut bytes = vec![0; more + self.bytes.len()];
        bytes[more + self.start..].copy_from_slice(&self.bytes[self.start..]);
        self.bytes = bytes;
        self.start += more;
    }
}

/// Appends a field of bytes to a message that is written forwards.
pub fn append_bytes(out: &mut Vec<u8>, number: i32, value: &[u8]) {
    append_head(out, number, value.len());
    pieces::append(out, value);
}

/// Appends the tag and the length of a field of bytes.
pub fn append_head(out: &mut Vec<u8>, number: i32, length: usize) {
    encode_key(number.unsigned_abs(), WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

/// The number of bytes that [`append_bytes`] appends.
pub fn size_of_bytes(number: i32, length: usize) -> usize {
    key_len(number.unsigned_abs()) + encoded_len_varint(length as u64) + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_in_the_opposite_order() {
        let mut writer = Writer::default();
        writer.varint(3, 300);
        let end = writer.close();
        writer.bytes(1, b"ab");
        writer.open(2, end);
        writer.fixed64(1, 1);
        assert_eq!(
            writer.finish(),
            [0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x12, 4, 0x0a, 2, b'a', b'b', 0x18, 0xac, 0x02]
        );
    }

    #[test]
    fn numbers_of_every_length() {
        for bits in 0..64 {
            let mut writer = Writer::default();
            writer.raw_varint(1 << bits);
            let bytes = writer.finish();
            assert_eq!(super::super::Reader::new(&bytes).varint(), Ok(1 << bits));
            assert_eq!(bytes.len(), bits / 7 + 1);
        }
        let mut out = Vec::new();
        append_bytes(&mut out, 16, &[7; 200]);
        assert_eq!(out.len(), size_of_bytes(16, 200));
        assert_eq!(out[..4], [0x82, 0x01, 0xc8, 0x01]);
    }
}
