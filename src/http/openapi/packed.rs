//! A large document at rest: compressed, for it is asked for seldom and kept for ever.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// The bytes of a document, and what names them.
#[derive(Debug)]
pub struct Packed {
    /// A gzip member, which may be sent as it is.
    pub gzip: Bytes,
    /// Of the document itself.
    pub length: usize,
}

impl Packed {
    /// Compresses `body`.
    pub fn new(body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::default());
        let packed = encoder.write_all(body).and_then(|()| encoder.finish());
        let mut gzip = packed.expect("writing to memory does not fail");
        gzip.shrink_to_fit();
        Self { gzip: gzip.into(), length: body.len() }
    }

    /// The document itself.
    pub fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.length);
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut body).expect("what was packed here can be unpacked");
        body.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_comes_back_as_it_was() {
        let text = "field ".repeat(1000);
        let packed = Packed::new(text.as_bytes());
        assert_eq!(packed.body(), text);
        assert!(packed.gzip.len() < 100);
    }
}
