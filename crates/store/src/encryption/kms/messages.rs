//! The messages of the KMS API v2, and the form of sealed values: `EncryptedObject`.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes};
use prost::encoding::{WireType, encode_key, encode_varint};
use prost::{Enumeration, Message};

/// The most bytes of a key's id, of a wrapped seed, and of all annotations.
const LONGEST_KEY_ID: usize = 1 << 10;
const LONGEST_SOURCE: usize = 1 << 10;
const LONGEST_ANNOTATIONS: usize = 32 << 10;

/// Bytes by the names of domains.
type Annotations = BTreeMap<String, Vec<u8>>;

#[derive(Clone, PartialEq, Eq, Message)]
pub struct StatusResponse {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub healthz: String,
    #[prost(string, tag = "3")]
    pub key_id: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub uid: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub annotations: Annotations,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: Annotations,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub plaintext: Vec<u8>,
}

/// An `EncryptedObject` without its data: the wrapped seed that is stored beside a value's data, and the key of the service
/// that has wrapped it. The id of the key is written first, so that values of other keys are told by their first bytes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Wrapped {
    #[prost(string, tag = "2")]
    pub key_id: String,
    /// The wrapped seed or key.
    #[prost(bytes = "vec", tag = "3")]
    pub source: Vec<u8>,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: Annotations,
    #[prost(enumeration = "SourceType", tag = "5")]
    pub source_type: i32,
}

/// The data of an `EncryptedObject`.
#[derive(Clone, PartialEq, Message)]
struct Data {
    #[prost(bytes = "bytes", tag = "1")]
    data: Bytes,
}

/// The kind of secret that is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum SourceType {
    /// The key of AES-GCM itself. No value is written so any more.
    Key = 0,
    /// A seed, from which each value's key is derived.
    Seed = 1,
}

/// Writes what stands before so many bytes of an `EncryptedObject`'s data.
pub fn put_data_head(out: &mut impl BufMut, length: usize) {
    encode_key(1, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

impl Wrapped {
    /// The field with which values of this key begin.
    pub fn key_id_field(&self) -> Vec<u8> {
        Self { key_id: self.key_id.clone(), ..Self::default() }.encode_to_vec()
    }

    /// Reads an `EncryptedObject`: how it is wrapped, and its data.
    pub fn read(message: Bytes) -> Result<(Self, Bytes), String> {
        let wrapped = Self::decode(&*message).map_err(|error| error.to_string())?;
        if SourceType::try_from(wrapped.source_type).is_err() {
            return Err(format!("unknown encryptedDEKSourceType: {}", wrapped.source_type));
        }
        let Data { data } = Data::decode(message).map_err(|error| error.to_string())?;
        if data.is_empty() {
            return Err("encrypted data is empty".to_owned());
        }
        wrapped.check()?;
        Ok((wrapped, data))
    }

    /// Fails by upstream's rules.
    pub fn check(&self) -> Result<(), String> {
        if self.source.is_empty() {
            return Err("failed to validate encrypted DEK source: encrypted DEK source is empty".to_owned());
        }
        if self.source.len() > LONGEST_SOURCE {
            return Err(format!(
                "failed to validate encrypted DEK source: encrypted DEK source is {} bytes, which exceeds the max size of {LONGEST_SOURCE}",
                self.source.len()
            ));
        }
        check_key_id(&self.key_id)
            .map_err(|why| format!("failed to validate key id: {}", why.text(&self.key_id)))?;
        self.check_annotations().map_err(|why| format!("failed to validate annotations: {why}"))
    }

    fn check_annotations(&self) -> Result<(), String> {
        let size: usize = self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        let wrong = self.annotations.keys().filter(|name| !is_domain(name)).map(|name| {
            let name = crate::gotext::quote(name);
            format!("annotations: Invalid value: {name}: should be a domain with at least two segments separated by dots")
        });
        let large = (size > LONGEST_ANNOTATIONS).then(|| {
            format!(
                "total size of annotations is {size}, which exceeds the max size of {LONGEST_ANNOTATIONS}"
            )
        });
        let problems: Vec<String> = wrong.chain(large).collect();
        match &*problems {
            [] => Ok(()),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

/// Why an id cannot be that of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongKeyId {
    Empty,
    TooLong,
}

impl WrongKeyId {
    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
        }
    }

    pub fn text(self, id: &str) -> String {
        match self {
            Self::Empty => "keyID is empty".to_owned(),
            Self::TooLong => {
                format!("keyID is {} bytes, which exceeds the max size of {LONGEST_KEY_ID}", id.len())
            }
        }
    }
}

pub fn check_key_id(id: &str) -> Result<(), WrongKeyId> {
    match id.len() {
        0 => Err(WrongKeyId::Empty),
        length if length > LONGEST_KEY_ID => Err(WrongKeyId::TooLong),
        _ => Ok(()),
    }
}

/// Whether a name is a fully qualified domain's.
fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let ends = [label.bytes().next(), label.bytes().next_back()];
        label.len() <= 63 && label.bytes().all(inner) && ends.iter().all(|end| end.is_some_and(|c| c != b'-'))
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::sealed::KEY_ID_TAG;

    fn wrapped() -> Wrapped {
        let annotations =
            [("a.example.com".to_owned(), vec![1, 2]), ("b.example.com".to_owned(), Vec::new())];
        Wrapped {
            key_id: "k".repeat(200),
            source: vec![7; 60],
            annotations: annotations.into(),
            source_type: SourceType::Seed.into(),
        }
    }

    fn message(wrapped: &Wrapped, data: &[u8]) -> Bytes {
        let mut message = wrapped.encode_to_vec();
        put_data_head(&mut message, data.len());
        message.extend_from_slice(data);
        message.into()
    }

    #[test]
    fn an_object_is_read_as_it_was_written() {
        let wrapped = wrapped();
        let message = message(&wrapped, b"data");
        let field = wrapped.key_id_field();
        assert!(message.starts_with(&field) && u64::from(field[0]) == KEY_ID_TAG);
        assert_eq!(Wrapped::read(message.clone()), Ok((wrapped, "data".into())));
        for cut in 0..message.len() {
            // Nothing panics, and only whole fields are read.
            assert!(Wrapped::read(message.slice(..cut)).is_err());
        }
    }

    /// The bytes are those of upstream's `EncryptedObject`, by the tags of its definition.
    #[test]
    fn fields_stand_where_upstream_reads_them() {
        let mut wrapped = wrapped();
        wrapped.key_id.truncate(1);
        wrapped.source.truncate(1);
        wrapped.annotations.retain(|name, _| name.starts_with('a'));
        let fields: [&[u8]; 5] = [
            b"\x12\x01k",
            b"\x1a\x01\x07",
            b"\x22\x13\x0a\x0da.example.com\x12\x02\x01\x02",
            b"\x28\x01",
            b"\x0a\x02xy",
        ];
        assert_eq!(message(&wrapped, b"xy"), fields.concat());
        let backwards: Vec<u8> = fields.iter().rev().copied().flatten().copied().collect();
        assert_eq!(Wrapped::read(backwards.into()), Ok((wrapped.clone(), "xy".into())));
        wrapped.source_type = 7;
        let unknown = Wrapped::read(message(&wrapped, b"xy"));
        assert_eq!(unknown, Err("unknown encryptedDEKSourceType: 7".to_owned()));
        wrapped.source_type = 1;
        assert_eq!(Wrapped::read(message(&wrapped, b"")), Err("encrypted data is empty".to_owned()));
    }

    #[test]
    fn upstreams_bounds() {
        let why = |change: fn(&mut Wrapped)| {
            let mut wrapped = wrapped();
            change(&mut wrapped);
            wrapped.check().expect_err("out of bounds")
        };
        assert_eq!(why(|w| w.key_id.clear()), "failed to validate key id: keyID is empty");
        assert_eq!(
            why(|w| w.key_id = "k".repeat(1025)),
            "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024"
        );
        assert_eq!(
            why(|w| w.source.clear()),
            "failed to validate encrypted DEK source: encrypted DEK source is empty"
        );
        assert_eq!(
            why(|w| w.source = vec![0; 1025]),
            "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024"
        );
        assert_eq!(
            why(|w| drop(w.annotations.insert("a.example.com".to_owned(), vec![0; 32 << 10]))),
            "failed to validate annotations: total size of annotations is 32794, which exceeds the max size of 32768"
        );
        for name in ["a", "A.example.com", "-.example.com", "", "a..b"] {
            let mut wrapped = wrapped();
            wrapped.annotations.insert(name.to_owned(), Vec::new());
            assert!(wrapped.check().is_err(), "{name}");
        }
    }
}
