//! The encoding of stored values.

use std::borrow::Cow;

use bytes::Bytes;

use super::protobuf::{Envelope, Error};
use crate::schema::names::Gvk;
use crate::schema::types::defaults::LEVEL;

pub mod packed;

/// The end of a stored JSON value: the number of line ends is the level of defaults that the object has been given.
const JSON_TAIL: [u8; LEVEL as usize] = [b'\n'; LEVEL as usize];

/// The encoding in which objects are written to the database. All of them can be read at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageMediaType {
    Json,
    Yaml,
    #[default]
    Protobuf,
}

impl StorageMediaType {
    const ALL: [Self; 3] = [Self::Json, Self::Protobuf, Self::Yaml];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Parses the value of kube-apiserver's flag `--storage-media-type`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|media| media.as_str() == text);
        found.ok_or_else(|| format!("allowed values: {}", Self::ALL.map(Self::as_str).join(", ")))
    }

    /// The encoding of a stored value, judged by its first bytes. Only protobuf is certain.
    pub fn of(value: &[u8]) -> Self {
        if Envelope::recognizes(value) {
            return Self::Protobuf;
        }
        if value.trim_ascii_start().starts_with(b"{") { Self::Json } else { Self::Yaml }
    }
}

/// The format of stored values, which their readers must support. A format is added whenever an older release could not read
/// what a newer one writes; a release that reads one format also reads the earlier ones. In a rolling upgrade, no format is
/// written that a registered server cannot read (`storage/postgres/batch.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueFormat {
    /// JSON, YAML, and uncompressed messages.
    Plain,
    /// Messages may also be [packed](mod@packed).
    Packed,
    /// Superseded versions of objects may also be in segments, frames of several of them. Values are as before.
    Segmented,
}

impl ValueFormat {
    /// The format that this release writes if no other server must be able to read it.
    pub const NEWEST: Self = Self::Segmented;

    /// The number of the format in the database.
    pub fn number(self) -> i32 {
        match self {
            Self::Plain => 0,
            Self::Packed => 1,
            Self::Segmented => 2,
        }
    }

    /// The newest known format with at most this number.
    pub fn up_to(number: i32) -> Self {
        match number {
            ..1 => Self::Plain,
            1 => Self::Packed,
            2.. => Self::NEWEST,
        }
    }
}

/// Re-encodes a value for readers that support only this format.
pub fn in_format(value: &Bytes, format: ValueFormat) -> Result<Bytes, Error> {
    if format >= ValueFormat::Packed || !Envelope::recognizes(value) || !is_complete(value) {
        return Ok(value.clone());
    }
    match open(value)? {
        Opened { message: Cow::Borrowed(_), .. } => Ok(value.clone()),
        Opened { gvk, message: Cow::Owned(message) } => Ok(Envelope::wrap_at_rest(&gvk, "", &message).into()),
    }
}

/// A stored value with this JSON, whose object has all defaults.
pub fn of_json(json: &[u8]) -> Bytes {
    [json, &JSON_TAIL].concat().into()
}

/// Whether the object in a value has the defaults of this release. YAML values do not tell, so they count as not having
/// them.
pub fn is_complete(value: &[u8]) -> bool {
    match StorageMediaType::of(value) {
        StorageMediaType::Protobuf => value.ends_with(Envelope::END_AT_REST),
        StorageMediaType::Json => value.ends_with(&JSON_TAIL),
        StorageMediaType::Yaml => false,
    }
}

/// The content of an envelope: the message as clients get it.
#[derive(Debug)]
pub struct Opened<'v> {
    pub gvk: Gvk,
    pub message: Cow<'v, [u8]>,
}

/// Opens a protobuf value.
pub fn open(value: &[u8]) -> Result<Opened<'_>, Error> {
    let (envelope, encoding) = Envelope::parse_encoded(value)?;
    let raw = envelope.raw;
    let message = if encoding.is_empty() {
        raw.into()
    } else if encoding == packed::ENCODING.as_bytes() {
        packed::unpack(raw)?.into()
    } else {
        return Err(Error::ContentEncoding(String::from_utf8_lossy(encoding).into_owned()));
    };
    Ok(Opened { gvk: envelope.gvk()?, message })
}

/// The length of the unpacked message that a value holds, judged by its first and last bytes; `None` if it is not packed,
/// or if these do not tell.
pub fn packed_length(head: &[u8], tail: &[u8]) -> Option<usize> {
    let mark = [&[3 << 3 | 2, packed::ENCODING.len() as u8], packed::ENCODING.as_bytes()].concat();
    if !tail.windows(mark.len()).any(|window| window == mark) {
        return None;
    }
    let raw = Envelope::raw_head(head)?;
    raw.first_chunk().map(|length| u32::from_le_bytes(*length) as usize)
}

/// The stored value of an object that has its defaults, made from its message.
pub fn of_message(gvk: &Gvk, message: &[u8]) -> Bytes {
    packed(gvk, message).unwrap_or_else(|| Envelope::wrap_at_rest(gvk, "", message).into())
}

/// The same value with the message packed; `None` if that saves too little.
pub fn packed(gvk: &Gvk, message: &[u8]) -> Option<Bytes> {
    let message = packed::pack(message)?;
    Some(Envelope::wrap_at_rest(gvk, packed::ENCODING, &message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag() {
        for media in StorageMediaType::ALL {
            assert_eq!(StorageMediaType::parse(media.as_str()), Ok(media));
        }
        for bad in ["", "application/cbor", "application/JSON", "application/json;a=b"] {
            let error = StorageMediaType::parse(bad).expect_err(bad);
            assert_eq!(
                error,
                "allowed values: application/json, application/vnd.kubernetes.protobuf, application/yaml"
            );
        }
    }
}
