//! A document that is encoded once and served many times.

use bytes::Bytes;
use data_encoding::HEXUPPER;
use sha2::{Digest, Sha512};

use crate::tree::Value;

#[derive(Clone, Debug)]
pub struct Document {
    pub body: Bytes,
    /// The SHA-512 of the JSON form in upper-case hex, as in `?hash=` of OpenAPI v3.
    pub hash: String,
}

impl Document {
    /// A document in the form of the object encoder: compact, with a newline.
    pub fn compact(value: &Value) -> Self {
        Self::new(format!("{value}\n"))
    }

    /// A document in the form of upstream's hand-written handlers: indented by two blanks, without a newline.
    pub fn indented(value: &Value) -> Self {
        Self::new(format!("{value:#}"))
    }

    /// The indented document, without a newline.
    pub fn indented_body(&self) -> Bytes {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) => format!("{value:#}").into(),
            Err(_) => self.body.clone(),
        }
    }

    pub fn new(text: String) -> Self {
        Self { hash: hash(&text), body: text.into() }
    }

    /// The value of the ETag header, with its quotes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}

/// SHA-512 in upper-case hex.
pub fn hash(text: &str) -> String {
    hex(&Sha512::digest(text))
}

/// Upper-case hex.
pub fn hex(bytes: &[u8]) -> String {
    HEXUPPER.encode(bytes)
}
