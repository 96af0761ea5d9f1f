//! Objects of built-in kinds between protobuf and JSON, driven by [`crate::schema::types`].
//!
//! Bytes become the JSON that upstream would print after decoding the same bytes into its Go types, and JSON becomes
//! the bytes that upstream would write after reading the same JSON (docs/spec/wire.md, 2.1 and 3). Nothing here trusts its
//! input: depth and the number of values are bounded, and there is no way to panic.

use super::at_rest::packed;
use super::json_text::write_string;
use crate::protowire;
use crate::quantity;
use crate::schema::types::{MessageId, Types};
use crate::tree::Map;

mod decode;
mod encode;
mod envelope;
mod fields;
mod format;
mod print;
mod version;

use decode::Decoder;
use encode::Encoder;
use print::{Origin, Printer};

pub use envelope::{Envelope, watch_frame};
pub use version::with_version;

/// JSON levels of an object; serde_json reads 127, and what is taken in must be readable again.
const MAX_DEPTH: usize = 126;
/// Values in an object. A body of 3 MiB in JSON, which is the limit there, has about as many.
const MAX_VALUES: usize = 1_000_000;

/// Why bytes are not an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    #[error("empty body")]
    EmptyBody,
    #[error("unknown content encoding {0:?}")]
    ContentEncoding(String),
    #[error(transparent)]
    Packed(#[from] packed::Error),
    #[error(transparent)]
    Wire(#[from] protowire::Error),
    #[error("proto: wrong wireType = {wire} for field {field}")]
    FieldType { field: String, wire: u8 },
    #[error("proto: {message}: illegal tag {number} (wire type {raw})")]
    IllegalTag { message: String, number: i32, raw: u64 },
    #[error("proto: {message}: wiretype end group for non-group")]
    EndGroup { message: String },
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    #[error(transparent)]
    Quantity(#[from] quantity::Error),
    #[error("impossible IntOrString.Type")]
    IntOrString,
    #[error("year outside of range [0,9999]")]
    Time,
    #[error("json: unsupported value: {0}")]
    Number(f64),
    #[error("embedded JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{path} is not {want}")]
    Unfit { path: String, want: &'static str },
    #[error("exceeded max depth")]
    TooDeep,
    #[error("more than {MAX_VALUES} values in an object")]
    TooLarge,
}

/// The members of an object of `kind`, without kind and apiVersion; `raw` is what its envelope holds.
pub fn decode(api_version: &str, kind: &str, raw: &[u8]) -> Result<Map, Error> {
    let types = Types::built_in();
    Decoder::new(types, MAX_VALUES).members_of(find(types, api_version, kind)?, raw)
}

/// As [`decode`], [closed](super::managed).
pub fn decode_closed(api_version: &str, kind: &str, raw: &[u8]) -> Result<Map, Error> {
    let types = Types::built_in();
    Decoder::new(types, MAX_VALUES).closed().members_of(find(types, api_version, kind)?, raw)
}

/// The message of an object of `kind`; kind and apiVersion among its members are not written.
pub fn encode(api_version: &str, kind: &str, members: &Map) -> Result<Vec<u8>, Error> {
    let types = Types::built_in();
    Encoder::new(types).encode(find(types, api_version, kind)?, members)
}

/// The object of `kind` as JSON, as [`decode`] and printing would yield it.
pub fn print(api_version: &str, kind: &str, raw: &[u8]) -> Result<Vec<u8>, Error> {
    print_from(Origin::Anywhere, api_version, kind, raw)
}

/// As [`print`], of a message that has just been encoded.
pub fn print_encoded(api_version: &str, kind: &str, raw: &[u8]) -> Result<Vec<u8>, Error> {
    print_from(Origin::Tree, api_version, kind, raw)
}

fn print_from(origin: Origin, api_version: &str, kind: &str, raw: &[u8]) -> Result<Vec<u8>, Error> {
    let types = Types::built_in();
    let id = find(types, api_version, kind)?;
    let mut out = Vec::with_capacity(raw.len() * 5 / 2 + 64);
    for (name, claim) in [(&b"{\"kind\":"[..], kind), (b",\"apiVersion\":", api_version)] {
        out.extend_from_slice(name);
        write_string(&mut out, claim);
    }
    Printer::new(types, origin, out).finish(id, raw)
}

/// The number of the field that holds the items of a list.
pub fn items_number(api_version: &str, list_kind: &str) -> Result<i32, Error> {
    let types = Types::built_in();
    let message = types.message(find(types, api_version, list_kind)?);
    let items = message.fields.iter().find(|field| &*field.json_name == "items");
    items.map(|field| field.number).ok_or_else(|| unknown(api_version, list_kind))
}

impl Error {
    /// The same, of a value inside the member `name`.
    fn within(self, name: &str) -> Self {
        let Self::Unfit { path, want } = self else { return self };
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        Self::Unfit { path: format!("{name}{dot}{path}"), want }
    }
}

fn find(types: &Types, api_version: &str, kind: &str) -> Result<MessageId, Error> {
    types.kind(api_version, kind).ok_or_else(|| unknown(api_version, kind))
}

fn unknown(api_version: &str, kind: &str) -> Error {
    Error::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

#[cfg(test)]
mod tests;
