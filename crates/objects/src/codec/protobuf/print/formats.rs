//! Messages whose JSON is not an object with their fields.

use super::{Origin, Printed, Printer, Stop, single};
use crate::codec::protobuf::envelope::Envelope;
use crate::codec::protobuf::fields::Wire;
use crate::codec::protobuf::{Error, MAX_DEPTH, scalar};
use crate::gotext::utf8;
use crate::json::scan;
use crate::json::text::{write_json, write_string};
use crate::protowire::{BYTES, Reader, VARINT};
use crate::quantity;
use crate::schema::types::{FieldKind, Format, MessageId};

impl<'t, 'm> Printer<'t, 'm> {
    pub(super) fn usual(&mut self, id: MessageId, bytes: &'m [u8], depth: usize) -> Result<Printed, Stop> {
        let message = self.types.message(id);
        match message.format {
            Format::Object => {
                self.out.push(b'{');
                self.all_members(id, bytes, depth)?;
                self.out.push(b'}');
            }
            Format::Time | Format::MicroTime if bytes.is_empty() => return Ok(self.null()),
            Format::Time => match scalar::time(two_integers(bytes)?.0)? {
                Some(time) => self.write(format_args!("\"{time:.0}Z\"")),
                None => return Ok(self.null()),
            },
            Format::MicroTime => {
                let (seconds, nanos) = two_integers(bytes)?;
                match scalar::micro_time(seconds, nanos)? {
                    Some(time) => self.write(format_args!("\"{time:.6}Z\"")),
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

    /// Prints embedded JSON. A stored object has it in printed form, so that blanks occur only in keys and strings.
    fn raw(&mut self, bytes: &'m [u8], depth: usize) -> Result<Printed, Stop> {
        let json = single(bytes, 1)?;
        if json.is_empty() {
            return Ok(self.null());
        }
        // Visits all bytes, which is faster than stopping at the first match.
        let special = |found: bool, byte: &u8| found | matches!(byte, 0..=b' ' | b'<' | b'>' | b'&' | 0x7f..);
        if json.iter().fold(false, special) || Envelope::recognizes(json) {
            return Err(Stop::Unusual);
        }
        if self.origin == Origin::Anywhere {
            serde_json::from_slice::<serde::de::IgnoredAny>(json).map_err(Error::from)?;
            if depth + scan::nesting(json) > MAX_DEPTH {
                return Err(Stop::Unusual);
            }
        }
        self.out.extend_from_slice(json);
        Ok(if json == b"null" { Printed::Null } else { Printed::Value })
    }
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
