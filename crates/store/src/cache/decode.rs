//! The way from stored values to objects. What a value means, the owner of the cache knows, and hands in.

use std::sync::Arc;

use bytes::Bytes;

use crate::codec::object::{Draft, Object};
use crate::revision::Revision;
use crate::storage::{Backend, Decode, Decoded, Value};

/// Reads the stored value of a namespace and name.
pub type Decoder = fn(&str, &str, Bytes) -> Draft;

/// A store, and the decoder of its values.
#[derive(Clone)]
pub struct Source {
    pub backend: Arc<dyn Backend>,
    pub decoder: Decoder,
}

impl Source {
    /// The object of a row.
    pub fn object(&self, namespace: &str, name: &str, revision: Revision, value: Bytes) -> Object {
        (self.decoder)(namespace, name, value).into_object(revision)
    }
}

impl Decode for Draft {
    fn decode(&self, revision: Revision) -> Arc<Decoded> {
        Arc::new(self.clone().into_object(revision))
    }
}

impl From<Draft> for Value {
    fn from(draft: Draft) -> Self {
        Self::new(draft.value().clone(), draft.limited_length(), Arc::new(draft))
    }
}
