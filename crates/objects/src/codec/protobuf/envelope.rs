//! The envelope of a protobuf object: a prefix and the message `runtime.Unknown`.

use std::borrow::Cow;

use super::Error;
use crate::gotext::utf8;
use crate::protowire::write::{append_bytes, append_head, size_of_bytes};
use crate::protowire::{BYTES, END_GROUP, Reader, Tag};
use crate::schema::names::Gvk;
use crate::schema::types::defaults::LEVEL;
use crate::tree::Text;

/// Four bytes with which JSON cannot start.
const PREFIX: &[u8] = b"k8s\0";

/// An object with the kind and apiVersion that it claims, which may be empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    /// The message of the kind.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The kind that the object claims.
    pub fn gvk(&self) -> Result<Gvk, Error> {
        Ok(Gvk::parse(&self.api_version, &self.kind)?)
    }

    /// Like [`Envelope::gvk`], but missing claims are taken from `expected`.
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

    /// Opens an envelope. Like upstream, ignores the content type: the content is always protobuf.
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        match Self::parse_encoded(data)? {
            (envelope, b"") => Ok(envelope),
            (_, encoding) => Err(Error::ContentEncoding(utf8(encoding).into_owned())),
        }
    }

    /// Like [`parse`](Self::parse), and returns the content encoding of `raw`, which is usually empty.
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

    /// The first bytes of an envelope's content, of which the rest may be missing.
    pub fn raw_head(head: &'a [u8]) -> Option<&'a [u8]> {
        let mut reader = Reader::new(head.strip_prefix(PREFIX)?);
        while let Some(tag) = reader.tag().ok()? {
            if tag.number() == 2 {
                reader.varint().ok()?;
                return Some(&head[head.len() - reader.remaining()..]);
            }
            reader.skip(tag).ok()?;
        }
        None
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
    /// The bytes behind the object: an empty content encoding and an empty content type.
    pub const TAIL: &'static [u8] = &[0x1a, 0, 0x22, 0];

    /// The end of a stored value, whatever the encoding of its message is: a field that upstream's `Unknown` lacks, and
    /// therefore skips, holds the level of defaults that the object has been given.
    pub const END_AT_REST: &'static [u8] = &[0x22, 0, 15 << 3, LEVEL];

    /// The bytes before an object of this length.
    pub fn head(gvk: &Gvk, raw_length: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::head_size(gvk, raw_length));
        out.extend_from_slice(PREFIX);
        append_head(&mut out, 1, type_meta_size(gvk));
        append_bytes(&mut out, 1, gvk.api_version().as_bytes());
        append_bytes(&mut out, 2, gvk.kind.as_bytes());
        append_head(&mut out, 2, raw_length);
        out
    }

    /// An object in its envelope.
    pub fn wrap(gvk: &Gvk, raw: &[u8]) -> Vec<u8> {
        let mut out = Self::head(gvk, raw.len());
        out.extend_from_slice(raw);
        out.extend_from_slice(Self::TAIL);
        out
    }

    /// The envelope of a stored value. `encoding` is the content encoding of `raw`; empty if it is a plain message.
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

/// A watch event in a stream: its length in four bytes, then a `WatchEvent`, which has no envelope.
pub fn watch_frame(event: &str, gvk: &Gvk, raw: &[u8]) -> Vec<u8> {
    let object = Envelope::head_size(gvk, raw.len()) + raw.len() + Envelope::TAIL.len();
    let extension = size_of_bytes(1, object);
    let length = size_of_bytes(1, event.len()) + size_of_bytes(2, extension);
    let mut out = Vec::with_capacity(4 + length);
    // The length fits in 32 bits, since objects are limited to a few MiB.
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

/// Visits the fields of a message that has only byte strings, numbered from 1 in the order of `names`.
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

/// Refuses tags that no field can have.
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
