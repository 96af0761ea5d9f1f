//! A large document at rest: compressed, for it is asked for seldom and kept for ever.

use std::io::{self, BufWriter, Read, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest, Sha512};

use crate::http::documents::document::hex;

/// The number of bytes that are compressed at a time.
const PIECE: usize = 16 << 10;

/// The bytes of a document.
#[derive(Debug)]
pub struct Packed {
    /// A gzip member, which may be sent as it is.
    pub gzip: Bytes,
    /// The length of the document itself.
    pub length: usize,
    /// The document itself, as long as an answer holds it: all answers share one copy.
    unpacked: Mutex<Weak<Vec<u8>>>,
}

/// A reference to an unpacked document.
struct Unpacked(Arc<Vec<u8>>);

impl AsRef<[u8]> for Unpacked {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Packed {
    /// Compresses `body`.
    pub fn new(body: &[u8]) -> Self {
        let mut packer = Packer::new();
        packer.write_all(body).expect(MEMORY);
        packer.finish().0
    }

    /// Writes a document as JSON, which is compressed as it is made. Also tells the hash of the text.
    pub fn json(document: &impl Serialize) -> (Self, String) {
        let mut writer = BufWriter::with_capacity(PIECE, Packer::new());
        serde_json::to_writer(&mut writer, document).expect("documents are JSON values with texts for names");
        let packer = writer.into_inner().map_err(|error| error.into_error()).expect(MEMORY);
        packer.finish()
    }

    /// The document itself. Whoever needs it while it is being unpacked waits for that.
    pub fn body(&self) -> Bytes {
        let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = unpacked.upgrade().unwrap_or_else(|| {
            let shared = Arc::new(self.unpack());
            *unpacked = Arc::downgrade(&shared);
            shared
        });
        Bytes::from_owner(Unpacked(shared))
    }

    fn unpack(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.length);
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut body).expect("what was packed here can be unpacked");
        body
    }
}

const MEMORY: &str = "writing to memory does not fail";

struct Packer {
    gzip: GzEncoder<Vec<u8>>,
    hash: Sha512,
    length: usize,
}

impl Packer {
    fn new() -> Self {
        Self { gzip: GzEncoder::new(Vec::new(), Compression::default()), hash: Sha512::new(), length: 0 }
    }

    fn finish(self) -> (Packed, String) {
        let mut gzip = self.gzip.finish().expect(MEMORY);
        gzip.shrink_to_fit();
        (
            Packed { gzip: gzip.into(), length: self.length, unpacked: Mutex::default() },
            hex(&self.hash.finalize()),
        )
    }
}

impl Write for Packer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let taken = self.gzip.write(text)?;
        self.hash.update(&text[..taken]);
        self.length += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;
    use crate::http::documents::document::hash;

    #[test]
    fn a_document_comes_back_as_it_was() {
        let text = "field ".repeat(1000);
        let packed = Packed::new(text.as_bytes());
        assert_eq!(packed.body(), text);
        assert!(packed.gzip.len() < 100);
        let document = json!({"a": text});
        let (packed, hashed) = Packed::json(&document);
        assert_eq!(packed.body(), document.to_string());
        assert_eq!((packed.length, hashed), (document.to_string().len(), hash(&document.to_string())));
    }

    #[test]
    fn answers_share_a_document_as_long_as_one_of_them_is_sent() {
        let packed = Packed::new("field ".repeat(1000).as_bytes());
        let (one, other) = (packed.body(), packed.body());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(packed.unpacked.lock().expect("a lock").upgrade().is_none());
    }
}
