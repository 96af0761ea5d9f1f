//! The prefix and the `runtime.Unknown` that every object travels in.

use std::borrow::Cow;

use super::Error;
use crate::gotext::utf8;
use crate::protowire::write::{append_bytes, append_head, size_of_bytes};
use crate::protowire::{BYTES, END_GROUP, Reader, Tag};
use crate::schema::defaults::LEVEL;
use crate::schema::names::Gvk;
use crate::tree::Text;

/// Four bytes that JSON cannot begin with.
const PREFIX: &[u8] = b"k8s\0";

/// An object with what it claims to be. Claims may be empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    /// The message of the kind.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The kind that the object claims to be of.
    pub fn gvk(&self) -> Result<Gvk, Error> {
        Ok(Gvk::parse(&self.api_version, &self.kind)?)
    }

    /// As [`Envelope::gvk`]; what the object does not claim is as in `expected`.
    pub fn gvk_or(&self, expected: &Gvk) -> Result<Gvk, Error> {
        let or =
            |claim: &'_ str, default: &Text| if claim.is_empty() { default.clone() } else { claim.into() };
        let api_version = or(&self.api_version, expected.api_version());
        Ok(Gvk::parse(&api_version, &or(&self.kind, &expected.kind))?)
    }

    /// Whether the bytes have the prefix.
    pub fn recognizes(data: &[u8]) -> bool {
        data.starts_with(PREFIX)
    }

    /// Opens it. As upstream, the content type is not looked at: the content is always protobuf.
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        match Self::parse_encoded(data)? {
            (envelope, b"") => Ok(envelope),
            (_, encoding) => Err(Error::ContentEncoding(utf8(encoding).into_owned())),
        }
    }

    /// As [`parse`](Self::parse), with what it says of how `raw` is encoded, which is nothing in most.
    pub fn parse_encoded(data: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        if data.is_empty() {
            return Err(Error::Empty);
        }
        let body = data.strip_prefix(PREFIX).ok_or(Error::Prefix)?;
        if body.is_empty() {
            return Err(Error::EmptyBody);
        }
        let mut envelope = Self::default();
        let mut encoding = &b""[..];
        each(body, "Unknown", ["TypeMeta", "Raw", "ContentEncoding", "ContentType"], |number, value| {
            match number {
                1 => envelope.type_meta(value)?,
                2 => envelope.raw = value,
                3 => encoding = value,
                _ => {}
            }
            Ok(())
        })?;
        Ok((envelope, encoding))
    }

    fn type_meta(&mut self, message: &[u8]) -> Result<(), Error> {
        each(message, "TypeMeta", ["APIVersion", "Kind"], |number, value| {
            let claim = if number == 1 { &mut self.api_version } else { &mut self.kind };
            *claim = Cow::into_owned(utf8(value));
            Ok(())
        })
    }
}

impl Envelope<'_> {
    /// What stands behind the object: no content encoding, no content type.
    pub const TAIL: &'static [u8] = &[0x1a, 0, 0x22, 0];

    /// How a value at rest ends, however its message is encoded: a field that upstream's `Unknown` has not, and so
    /// skips, says which defaults the object has.
    pub const END_AT_REST: &'static [u8] = &[0x22, 0, 15 << 3, LEVEL];

    /// What stands before an object of so many bytes.
    pub fn head(gvk: &Gvk, raw_length: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::head_size(gvk, raw_length));
        out.extend_from_slice(PREFIX);
        append_head(&mut out, 1, type_meta_size(gvk));
        append_bytes(&mut out, 1, gvk.api_version().as_bytes());
        append_bytes(&mut out, 2, gvk.kind.as_bytes());
        append_head(&mut out, 2, raw_length);
        out
    }

    /// An object whole.
    pub fn wrap(gvk: &Gvk, raw: &[u8]) -> Vec<u8> {
        let mut out = Self::head(gvk, raw.len());
        out.extend_from_slice(raw);
        out.extend_from_slice(Self::TAIL);
        out
    }

    /// As it is at rest, of an object whose message is encoded, or is not: then the encoding is empty.
    pub fn wrap_at_rest(gvk: &Gvk, encoding: &str, raw: &[u8]) -> Vec<u8> {
        let mut out = Self::head(gvk, raw.len());
        out.reserve_exact(raw.len() + size_of_bytes(3, encoding.len()) + Self::END_AT_REST.len());
        out.extend_from_slice(raw);
        append_bytes(&mut out, 3, encoding.as_bytes());
        out.extend_from_slice(Self::END_AT_REST);
        out
    }

    fn head_size(gvk: &Gvk, raw_length: usize) -> usize {
        let type_meta = size_of_bytes(1, type_meta_size(gvk));
        PREFIX.len() + type_meta + size_of_bytes(2, raw_length) - raw_length
    }
}

fn type_meta_size(gvk: &Gvk) -> usize {
    size_of_bytes(1, gvk.api_version().len()) + size_of_bytes(2, gvk.kind.len())
}

/// A watch event as it stands in the stream: four bytes of length, then a `WatchEvent`, which has no envelope itself.
pub fn watch_frame(event: &str, gvk: &Gvk, raw: &[u8]) -> Vec<u8> {
    let object = Envelope::head_size(gvk, raw.len()) + raw.len() + Envelope::TAIL.len();
    let extension = size_of_bytes(1, object);
    let length = size_of_bytes(1, event.len()) + size_of_bytes(2, extension);
    let mut out = Vec::with_capacity(4 + length);
    // Objects are limited to a few MiB.
    out.extend_from_slice(&(length as u32).to_be_bytes());
    append_bytes(&mut out, 1, event.as_bytes());
    append_head(&mut out, 2, extension);
    append_head(&mut out, 1, object);
    out.append(&mut Envelope::head(gvk, raw.len()));
    out.extend_from_slice(raw);
    out.extend_from_slice(Envelope::TAIL);
    debug_assert_eq!(out.len(), 4 + length);
    out
}

/// The fields of a message that has only byte strings, numbered from 1 in the order of `names`.
fn each<'a, const N: usize>(
    message: &'a [u8],
    name: &str,
    names: [&str; N],
    mut field: impl FnMut(i32, &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        check(tag, name)?;
        match usize::try_from(tag.number() - 1).ok().and_then(|index| names.get(index)) {
            None => reader.skip(tag)?,
            Some(_) if tag.wire() == BYTES => field(tag.number(), reader.bytes()?)?,
            Some(field) => {
                return Err(Error::FieldType { field: (*field).to_owned(), wire: tag.wire() });
            }
        }
    }
    Ok(())
}

/// Refuses a tag that no field can have.
pub(super) fn check(tag: Tag, message: &str) -> Result<(), Error> {
    if tag.wire() == END_GROUP {
        return Err(Error::EndGroup { message: message.to_owned() });
    }
    if tag.number() <= 0 {
        let (number, raw) = (tag.number(), tag.raw);
        return Err(Error::IllegalTag { message: message.to_owned(), number, raw });
    }
    Ok(())
}
