//! YAML 1.1 in and out, as sigs.k8s.io/yaml converts it from and to JSON.

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

/// Reads a document of a client's: aliases and merge keys are resolved, and of a key that comes twice the last counts.
pub fn parse(document: &[u8]) -> Result<Value, String> {
    read(document).map(|parsed| parsed.value)
}

/// As [`parse`], and tells whether a key came twice. Such a document is read twice.
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

/// Reads what [`write`] has written, however deep and large it is: it was taken in once, so it has to be readable at any
/// time. Any other document is read as a client's.
pub fn parse_stored(document: &[u8]) -> Result<Value, String> {
    let text = octets::text(document).map_err(|why| format!("yaml: {why}"))?;
    written::read(text).map_or_else(|| parse(document), Ok)
}

/// Writes a document in block style, keys sorted, with a line end.
pub fn write(value: &Value) -> String {
    emit::document(value)
}

#[cfg(test)]
mod tests;
