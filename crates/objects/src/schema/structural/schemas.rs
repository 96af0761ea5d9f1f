//! All schemas of a server.

use std::sync::{Arc, Mutex};

use super::intern::InternTable;
use super::{NotStructural, Structural, read};
use crate::schema::types::{GoShape, Types};
use crate::tree::Map;

/// All schemas of a server, and what they share. Nothing in here keeps a schema alive.
pub struct Schemas {
    types: Arc<Types>,
    known: Mutex<InternTable>,
}

impl Schemas {
    pub fn new(types: Arc<Types>) -> Self {
        Self { types, known: Mutex::default() }
    }

    /// Reads an `openAPIV3Schema` that validation has found structural.
    pub fn read(&self, schema: &Map) -> Result<Structural, NotStructural> {
        let message = self.types.message_named("ObjectMeta").ok_or(NotStructural::NoMetadata)?;
        let metadata = GoShape { types: self.types.clone(), message };
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.sweep();
        let root = read::root(schema, &metadata, &mut known)?;
        Ok(Structural { root, metadata })
    }

    /// How many parts of schemas that are in use there are.
    pub fn parts(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.parts()
    }
}
