//! Reads and writes YAML 1.1 as sigs.k8s.io/yaml converts it from and to JSON.

use serde_saphyr::DuplicateKeyPolicy;

use crate::json::{Parsed, whole_numbers};
use crate::tree::Value;

mod emit;
mod escapes;
mod octets;
mod repeated;
mod scalar;
mod written;

pub use repeated::repeated_keys;

/// Parses a client's document. Aliases and merge keys are resolved; of a repeated key, the last value counts.
pub fn parse(document: &[u8]) -> Result<Value, String> {
    read(document).map(|parsed| parsed.value)
}

/// Like [`parse`], and tells whether a key was repeated. A document with repeated keys is parsed twice.
pub fn read(document: &[u8]) -> Result<Parsed, String> {
    let text = octets::text(document).map_err(|why| format!("yaml: {why}"))?;
    escapes::check(text).map_err(|why| format!("yaml: {why}"))?;
    let read = |duplicate_keys| -> Result<Value, serde_saphyr::Error> {
        let options = serde_saphyr::options! {
            duplicate_keys: duplicate_keys,
            legacy_octal_numbers: true,
            with_snippet: false,
        };
        let mut value = serde_saphyr::from_str_with_options(text, options)?;
        whole_numbers(&mut value);
        Ok(value)
    };
    match read(DuplicateKeyPolicy::Error) {
        Ok(value) => Ok(Parsed { value, repeated: false }),
        Err(_) => match read(DuplicateKeyPolicy::LastWins) {
            Ok(value) => Ok(Parsed { value, repeated: true }),
            Err(error) => Err(format!("yaml: {error}")),
        },
    }
}

/// Parses a document that [`write`] has written, however deep and large it is: it was accepted once, so it must always
/// be readable. Other documents are parsed like a client's.
pub fn parse_stored(document: &[u8]) -> Result<Value, String> {
    let text = octets::text(document).map_err(|why| format!("yaml: {why}"))?;
    written::read(text).map_or_else(|| parse(document), Ok)
}

/// Writes a document in block style with sorted keys and a final line end.
pub fn write(value: &Value) -> String {
    emit::document(value)
}

#[cfg(test)]
mod tests;
