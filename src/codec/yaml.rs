//! YAML 1.1 in and out, as sigs.k8s.io/yaml converts it from and to JSON.

use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

mod emit;
mod scalar;

/// Reads a document: aliases and merge keys are resolved, and of a key that comes twice the last counts.
pub fn parse(document: &[u8]) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let text = String::from_utf8_lossy(document);
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| format!("yaml: {error}"))
}

/// Writes a document in block style, keys sorted, with a line end.
pub fn write(value: &Value) -> String {
    emit::document(value)
}

#[cfg(test)]
mod tests;
