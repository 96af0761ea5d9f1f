//! Reading JSON in a single pass that also notices repeated members.

use std::cell::Cell;

use serde::de::DeserializeSeed;

mod exact;
mod node;
pub mod plain;
pub mod scan;
mod surrogates;
pub mod text;
mod whole;

pub use exact::complaint;
pub use node::Node;
pub use surrogates::first as first_surrogate;
pub use whole::{whole, whole_numbers};

use self::plain::ManagedPosition;
use crate::gotext;
use crate::tree::{Reader, Repetition, Value};

/// A parsed value, and whether members of it were repeated.
#[derive(Debug)]
pub struct Parsed {
    /// The value. Of a repeated member, the last one counts.
    pub value: Value,
    /// Whether an object has a member more than once.
    pub repeated: bool,
}

/// Parses a value with Go's leniency about invalid Unicode: each byte that is not UTF-8 becomes U+FFFD, and so does an
/// escape of half a surrogate pair.
pub fn parse(body: &[u8]) -> Result<Parsed, serde_json::Error> {
    let text = gotext::utf8(body);
    plain::read(&text, ManagedPosition::Anywhere).map_or_else(|| parse_slowly(&text), Ok)
}

/// Like [`parse`], for text that [`plain`] does not read.
fn parse_slowly(text: &str) -> Result<Parsed, serde_json::Error> {
    let repeated = Cell::new(false);
    let seed = Reader { repeated: Some(&repeated), repetition: Repetition::Replaces };
    let value = leniently(text, |text| read(text, seed))?;
    Ok(Parsed { value, repeated: repeated.get() })
}

/// Parses a value as Go decodes one into structs: a repeated member is merged into its earlier value. (Go itself
/// replaces the value in maps of structs and in raw JSON.)
pub fn merged(body: &[u8]) -> Result<Value, serde_json::Error> {
    let seed = Reader { repeated: None, repetition: Repetition::Merges };
    leniently(&gotext::utf8(body), |text| read(text, seed))
}

/// Like [`parse`], for text that is valid Unicode, and without leniency.
pub fn parse_text(text: &str) -> Result<Parsed, serde_json::Error> {
    if let Some(parsed) = plain::read(text, ManagedPosition::Anywhere) {
        return Ok(parsed);
    }
    let repeated = Cell::new(false);
    let value = read(text, Reader { repeated: Some(&repeated), repetition: Repetition::Replaces })?;
    Ok(Parsed { value, repeated: repeated.get() })
}

fn leniently<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    read(text).or_else(|error| match surrogates::replaced(text) {
        Some(text) => read(&text),
        None => Err(error),
    })
}

fn read<T>(text: &str, seed: impl for<'de> DeserializeSeed<'de, Value = T>) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}
