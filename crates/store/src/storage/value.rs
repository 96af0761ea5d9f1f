//! Values as the store has them: bytes. What they mean, their owner knows.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec::at_rest::{self, ValueFormat};
use crate::revision::Revision;

/// The form of a value that this server's readers share. The store passes it on and does not look into it.
pub type Decoded = dyn Any + Send + Sync;

/// The decoding of one written value, which its owner hands in with the bytes. The owner has mostly made the bytes from
/// that form, and need not read them again.
pub trait Decode: fmt::Debug + Send + Sync {
    /// The value's form, now that its revision is known.
    fn decode(&self, revision: Revision) -> Arc<Decoded>;
}

/// A value on its way into the store.
#[derive(Clone, Debug)]
pub struct Value {
    bytes: Bytes,
    /// In bytes, before packing and encryption; 0 if the store's limit does not count for the value.
    length: usize,
    decode: Arc<dyn Decode>,
    /// Whether the store puts the revision of the write before the bytes.
    stamped: bool,
}

impl Value {
    /// A value whose limited length is not that of its bytes, since these are packed or encrypted.
    pub fn new(bytes: Bytes, length: usize, decode: Arc<dyn Decode>) -> Self {
        Self { bytes, length, decode, stamped: false }
    }

    /// The bytes to store.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes to store, for readers that support only this format.
    pub(super) fn bytes_in(&self, format: ValueFormat) -> Bytes {
        // A stamped value has no format that the store knows.
        if self.stamped {
            return self.bytes.clone();
        }
        // A value that was just made can always be opened.
        at_rest::in_format(&self.bytes, format).unwrap_or_else(|_| self.bytes.clone())
    }

    /// The length, in bytes, that counts against the limit of [`Store::start`](super::Store::start).
    pub fn length(&self) -> usize {
        self.length
    }

    /// The same value, which may be longer than the limit.
    pub fn unlimited(self) -> Self {
        Self { length: 0, ..self }
    }

    /// The same value, before which the store puts the revision of its write in etcd's terms, which nobody knows before
    /// the commit. Readers [split](super::split_stamp) it off again.
    pub fn stamped(self) -> Self {
        Self { stamped: true, ..self }
    }

    pub(super) fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// See [`Decode::decode`].
    pub(super) fn decode(&self, revision: Revision) -> Arc<Decoded> {
        self.decode.decode(revision)
    }
}

/// A value that is no more than its bytes.
impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes.clone(), bytes.len(), Arc::new(bytes))
    }
}

impl Decode for Bytes {
    fn decode(&self, _: Revision) -> Arc<Decoded> {
        Arc::new(self.clone())
    }
}
