//! YAML 1.1 in and out, as sigs.k8s.io/yaml converts it from and to JSON.

use serde_saphyr::{Budget, DuplicateKeyPolicy};

use super::json::{Parsed, whole_numbers};
use crate::tree::Value;

mod emit;
mod escapes;
mod octets;
mod repeated;
mod scalar;

pub use repeated::repeated_keys;

/// What the decoder of JSON takes too: what is stored nests less deeply (`codec::depth::MAX_DEPTH`).
const STORED_DEPTH: usize = 127;

/// Reads a document of a client's: aliases and merge keys are resolved, and of a key that comes twice the last counts.
pub fn parse(document: &[u8]) -> Result<Value, String> {
    read(document).map(|parsed| parsed.value)
}

/// As [`parse`], and tells whether a key came twice. Such a document is read twice.
pub fn read(document: &[u8]) -> Result<Parsed, String> {
    read_within(document, Some(Budget::default()))
}

/// Reads a document that this program has written to the database. However large it is, what it was written from was
/// taken in once: it has to be readable at any time.
pub fn parse_stored(document: &[u8]) -> Result<Value, String> {
    read_within(document, stored_budget(document.len())).map(|parsed| parsed.value)
}

/// What a document of so many bytes can hold at most: a key and an empty value take two bytes, and a node makes two
/// events. Aliases stay as limited as they are for clients, because [`write`] makes none.
fn stored_budget(bytes: usize) -> Option<Budget> {
    let nodes = bytes.saturating_add(8);
    serde_saphyr::budget! {
        max_depth: STORED_DEPTH,
        max_nodes: nodes,
        max_events: nodes.saturating_mul(2),
        max_total_scalar_bytes: nodes,
        simple_key_max_lookahead: nodes,
    }
}

fn read_within(document: &[u8], budget: Option<Budget>) -> Result<Parsed, String> {
    let text = octets::text(document).map_err(|why| format!("yaml: {why}"))?;
    escapes::check(text).map_err(|why| format!("yaml: {why}"))?;
    let read = |duplicate_keys| -> Result<Value, serde_saphyr::Error> {
        let options = serde_saphyr::options! {
            budget: budget.clone(),
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

/// Writes a document in block style, keys sorted, with a line end.
pub fn write(value: &Value) -> String {
    emit::document(value)
}

#[cfg(test)]
mod tests;
