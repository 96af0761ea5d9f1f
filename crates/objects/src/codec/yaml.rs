//! YAML 1.1 from and to JSON, as sigs.k8s.io/yaml (over go.yaml.in/yaml/v2) converts it.
//!
//! Both parsers are descendants of libyaml, so they accept the same documents and refuse the others in the same words.

use crate::tree::Value;

mod aliases;
mod decode;
mod emit;
mod events;
mod mapping;
mod node;
mod resolve;
mod scalar;
mod written;

/// A document that has been read.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// The value. Of a repeated key, the last value counts.
    pub value: Value,
    /// The repeated keys in go-yaml's words, each with the line of its value.
    pub repeated: Vec<String>,
}

/// Parses a client's document. Aliases and merge keys are resolved; of a repeated key, the last value counts.
pub fn parse(document: &[u8]) -> Result<Value, String> {
    read(document).map(|document| document.value)
}

/// Like [`parse`], and tells which keys are repeated. Only the first document of a stream is read, as upstream does: what
/// follows may be anything. The error is upstream's whole text.
pub fn read(document: &[u8]) -> Result<Document, String> {
    decode::first_document(document)
}

/// Parses a document that [`write()`] has written, however deep and large it is: it was accepted once, so it must always
/// be readable. Other documents are parsed like a client's.
pub fn parse_stored(document: &[u8]) -> Result<Value, String> {
    let written = std::str::from_utf8(document).ok().and_then(written::read);
    written.map_or_else(|| parse(document), Ok)
}

/// Writes a document in block style with sorted keys and a final line end.
pub fn write(value: &Value) -> String {
    emit::document(value)
}

/// The texts of the documents of a stream, between lines that start with `---`, as `kubectl` and `envtest` split files.
pub fn documents(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut documents = vec![Vec::new()];
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(rest) = line.strip_prefix(b"---") else {
            documents.last_mut().into_iter().for_each(|document| document.extend_from_slice(line));
            continue;
        };
        let rest = rest.trim_ascii();
        if !rest.is_empty() && !rest.starts_with(b"#") {
            return Err(format!("invalid Yaml document separator: {}", String::from_utf8_lossy(rest)));
        }
        documents.push(Vec::new());
    }
    documents.retain(|document| !document.trim_ascii().is_empty());
    Ok(documents)
}

#[cfg(test)]
mod tests;
