//! The messages of the KMS API v2, and the form of sealed values: `EncryptedObject`.

use std::collections::BTreeMap;

use crate::codec::sealed::KEY_ID_TAG;
use crate::protowire::{BYTES, Error, Field, VARINT, each_field, text};

/// The most bytes of a key's id, of a wrapped seed, and of all annotations.
const LONGEST_KEY_ID: usize = 1 << 10;
const LONGEST_SOURCE: usize = 1 << 10;
const LONGEST_ANNOTATIONS: usize = 32 << 10;

/// Bytes by the names of domains.
pub type Annotations = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusResponse {
    pub version: String,
    pub healthz: String,
    pub key_id: String,
}

pub struct EncryptRequest<'a> {
    pub plaintext: &'a [u8],
    pub uid: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptResponse {
    pub ciphertext: Vec<u8>,
    pub key_id: String,
    pub annotations: Annotations,
}

pub struct DecryptRequest<'a> {
    pub uid: &'a str,
    pub wrapped: &'a Wrapped,
}

/// The wrapped seed that is stored beside a value's data, and the key of the service that has wrapped it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wrapped {
    pub key_id: String,
    /// The wrapped seed or key.
    pub source: Vec<u8>,
    pub annotations: Annotations,
    pub source_type: SourceType,
}

/// The kind of secret that is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceType {
    /// The key of AES-GCM itself. No value is written so any more.
    #[default]
    Key,
    /// A seed, from which each value's key is derived.
    Seed,
    Unknown(u64),
}

impl SourceType {
    fn number(self) -> u64 {
        match self {
            Self::Key => 0,
            Self::Seed => 1,
            Self::Unknown(number) => number,
        }
    }
}

impl EncryptRequest<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, self.plaintext);
        put_bytes(&mut out, 2, self.uid.as_bytes());
        out
    }
}

impl EncryptResponse {
    pub fn decode(message: &[u8]) -> Result<Self, Error> {
        let mut response = Self::default();
        each_bytes(message, |field, bytes| {
            match field {
                1 => response.ciphertext = bytes.to_vec(),
                2 => response.key_id = text(bytes),
                3 => insert(&mut response.annotations, bytes)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(response)
    }
}

impl StatusResponse {
    pub fn decode(message: &[u8]) -> Result<Self, Error> {
        let mut response = Self::default();
        each_bytes(message, |field, bytes| {
            match field {
                1 => response.version = text(bytes),
                2 => response.healthz = text(bytes),
                3 => response.key_id = text(bytes),
                _ => {}
            }
            Ok(())
        })?;
        Ok(response)
    }
}

impl DecryptRequest<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, &self.wrapped.source);
        put_bytes(&mut out, 2, self.uid.as_bytes());
        put_bytes(&mut out, 3, self.wrapped.key_id.as_bytes());
        put_annotations(&mut out, 4, &self.wrapped.annotations);
        out
    }
}

/// The plain text of a `DecryptResponse`.
pub fn plaintext(message: &[u8]) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    each_bytes(message, |field, bytes| {
        if field == 1 {
            plain = bytes.to_vec();
        }
        Ok(())
    })?;
    Ok(plain)
}

impl Wrapped {
    /// The fields of an `EncryptedObject` but for its data. The id of the key comes first, so that values of other keys
    /// are told by their first bytes; upstream reads fields in any order.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 2, self.key_id.as_bytes());
        put_bytes(&mut out, 3, &self.source);
        put_annotations(&mut out, 4, &self.annotations);
        put_varint(&mut out, u64::from(5 << 3 | VARINT));
        put_varint(&mut out, self.source_type.number());
        out
    }

    /// The field with which values of this key begin.
    pub fn key_id_field(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 2, self.key_id.as_bytes());
        out
    }

    /// Reads an `EncryptedObject`: how it is wrapped, and its data.
    pub fn decode(message: &[u8]) -> Result<(Self, &[u8]), String> {
        let (mut wrapped, mut data) = (Self::default(), &[][..]);
        let read = each_field(message, |number, field| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => data = bytes,
                (2, Field::Bytes(bytes)) => wrapped.key_id = text(bytes),
                (3, Field::Bytes(bytes)) => wrapped.source = bytes.to_vec(),
                (4, Field::Bytes(bytes)) => insert(&mut wrapped.annotations, bytes)?,
                (5, Field::Number(number)) => {
                    wrapped.source_type = match number {
                        0 => SourceType::Key,
                        1 => SourceType::Seed,
                        other => SourceType::Unknown(other),
                    }
                }
                _ => {}
            }
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
        if let SourceType::Unknown(number) = wrapped.source_type {
            return Err(format!("unknown encryptedDEKSourceType: {number}"));
        }
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

/// Calls `take` for every field that holds bytes.
fn each_bytes<'m>(
    message: &'m [u8],
    mut take: impl FnMut(i32, &'m [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    each_field(message, |number, field| match field {
        Field::Bytes(bytes) => take(number, bytes),
        Field::Number(_) => Ok(()),
    })
}

fn insert(annotations: &mut Annotations, entry: &[u8]) -> Result<(), Error> {
    let (mut name, mut value) = (String::new(), Vec::new());
    each_bytes(entry, |field, bytes| {
        match field {
            1 => name = text(bytes),
            2 => value = bytes.to_vec(),
            _ => {}
        }
        Ok(())
    })?;
    annotations.insert(name, value);
    Ok(())
}

fn put_annotations(out: &mut Vec<u8>, field: u8, annotations: &Annotations) {
    for (name, value) in annotations {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, value);
        put_bytes(out, field, &entry);
    }
}

/// Writes a field of bytes.
pub fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    put_head(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// Writes what stands before so many bytes of a field.
pub fn put_head(out: &mut Vec<u8>, field: u8, length: usize) {
    put_varint(out, u64::from(field << 3 | BYTES));
    put_varint(out, length as u64);
}

fn put_varint(out: &mut Vec<u8>, value: u64) {
    prost::encoding::encode_varint(value, out);
}

const _: () = assert!(KEY_ID_TAG == (2 << 3 | BYTES as u64));

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped() -> Wrapped {
        let annotations =
            [("a.example.com".to_owned(), vec![1, 2]), ("b.example.com".to_owned(), Vec::new())];
        Wrapped {
            key_id: "k".repeat(200),
            source: vec![7; 60],
            annotations: annotations.into(),
            source_type: SourceType::Seed,
        }
    }

    #[test]
    fn an_object_is_read_as_it_was_written() {
        let wrapped = wrapped();
        let mut message = wrapped.encode();
        put_bytes(&mut message, 1, b"data");
        assert!(message.starts_with(&wrapped.key_id_field()));
        assert_eq!(Wrapped::decode(&message), Ok((wrapped, &b"data"[..])));
        for cut in 0..message.len() {
            // Nothing panics, and only whole fields are read.
            let _ = Wrapped::decode(&message[..cut]);
        }
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
