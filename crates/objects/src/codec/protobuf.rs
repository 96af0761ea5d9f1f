//! Converts objects of built-in kinds between protobuf and JSON, driven by [`crate::schema::types`].
//!
//! Decoding yields the JSON that upstream would print after decoding the same bytes into its Go types, and encoding
//! yields the bytes that upstream would write after reading the same JSON (docs/spec/wire.md, 2.1 and 3). The input is
//! not trusted: depth and number of values are bounded, and no input causes a panic.

use super::at_rest::packed;
use crate::json::text::write_string;
use crate::schema::kind::Kind;
use crate::schema::names::{Gvk, NoGroupVersion};
use crate::schema::types::GoShape;
use crate::tree::Map;
use crate::{protowire, quantity};

mod decode;
mod encode;
mod envelope;
mod fields;
mod format;
mod print;
mod scalar;
mod version;

use decode::Decoder;
use encode::Encoder;
use print::{Origin, Printer};

pub use envelope::{Envelope, watch_frame};
pub use version::with_version;

/// The most levels of an object as JSON. serde_json reads 127, and every accepted object must be readable again.
const MAX_DEPTH: usize = 126;
/// The most values in an object; a JSON body of 3 MiB, the limit there, has about as many.
const MAX_VALUES: usize = 1_000_000;

/// Why bytes are not an object of the kind.
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
    #[error("no kind {:?} is registered for version {:?}", .0.kind.as_str(), .0.api_version().as_str())]
    UnknownKind(Gvk),
    #[error(transparent)]
    GroupVersion(#[from] NoGroupVersion),
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

/// Decodes the members of an object, without kind and apiVersion. `raw` is the content of its envelope.
pub fn decode(kind: &Kind, raw: &[u8]) -> Result<Map, Error> {
    let GoShape { types, message } = shape(kind)?;
    Decoder::new(types, MAX_VALUES).members_of(*message, raw)
}

/// Like [`decode()`], but [closed](super::managed).
pub fn decode_closed(kind: &Kind, raw: &[u8]) -> Result<Map, Error> {
    let GoShape { types, message } = shape(kind)?;
    Decoder::new(types, MAX_VALUES).closed().members_of(*message, raw)
}

/// Encodes an object. Its kind and apiVersion are not part of the message.
pub fn encode(kind: &Kind, members: &Map) -> Result<Vec<u8>, Error> {
    let GoShape { types, message } = shape(kind)?;
    Encoder::new(types).encode(*message, members)
}

/// Decodes an object and prints it as JSON text.
pub fn print(kind: &Kind, raw: &[u8]) -> Result<Vec<u8>, Error> {
    print_from(Origin::Anywhere, kind, raw)
}

/// Like [`print()`], for a message that has just been encoded.
pub fn print_encoded(kind: &Kind, raw: &[u8]) -> Result<Vec<u8>, Error> {
    print_from(Origin::Tree, kind, raw)
}

fn print_from(origin: Origin, kind: &Kind, raw: &[u8]) -> Result<Vec<u8>, Error> {
    let GoShape { types, message } = shape(kind)?;
    let mut out = Vec::with_capacity(raw.len() * 5 / 2 + 64);
    let claims = [(&b"{\"kind\":"[..], &kind.gvk.kind), (b",\"apiVersion\":", kind.gvk.api_version())];
    for (name, claim) in claims {
        out.extend_from_slice(name);
        write_string(&mut out, claim);
    }
    Printer::new(types, origin, out).finish(*message, raw)
}

/// The number of the field that holds the items of a list kind.
pub fn items_number(list: &Kind) -> Result<i32, Error> {
    let GoShape { types, message } = shape(list)?;
    let items = types.message(*message).fields.iter().find(|field| &*field.json_name == "items");
    items.map(|field| field.number).ok_or_else(|| Error::UnknownKind(list.gvk.clone()))
}

fn shape(kind: &Kind) -> Result<&GoShape, Error> {
    kind.go().ok_or_else(|| Error::UnknownKind(kind.gvk.clone()))
}

impl Error {
    /// The same error for a value in the member `name`.
    fn within(self, name: &str) -> Self {
        let Self::Unfit { path, want } = self else { return self };
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        Self::Unfit { path: format!("{name}{dot}{path}"), want }
    }
}
