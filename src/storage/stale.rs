//! Rows stored in an outdated encoding: which rows, and how many.

use std::sync::Arc;

use super::{Key, ResourceId};
use crate::revision::Revision;

/// The first bytes of every value in protobuf; no other value starts so.
pub(super) const PROTOBUF: &[u8] = b"k8s\0";

/// Selects the live rows of a resource that are not encoded in this apiVersion and format.
#[derive(Clone, Debug)]
pub struct Stale {
    pub resource: ResourceId,
    pub api_version: Arc<str>,
    pub format: Format,
    /// Rows that were written after this revision do not count.
    pub through: Revision,
}

/// The format of a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Protobuf,
}

/// The columns of a row that `stale_rows.sql` returns.
pub(super) type StaleColumns = (String, String, i64);

impl Stale {
    pub(super) fn in_protobuf(&self) -> bool {
        self.format == Format::Protobuf
    }

    /// Whether a value, stored in this apiVersion, is encoded differently.
    pub(super) fn is_in_another(&self, stored_version: &str, value: &[u8]) -> bool {
        *stored_version != *self.api_version || value.starts_with(PROTOBUF) != self.in_protobuf()
    }

    pub(super) fn rows(&self, found: Vec<StaleColumns>) -> Vec<StaleRow> {
        let row = |(namespace, name, revision): StaleColumns| StaleRow {
            key: Key::new(self.resource, &namespace, &name),
            revision: Revision(revision as u64),
        };
        found.into_iter().map(row).collect()
    }
}

/// A live row, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRow {
    pub key: Key,
    pub revision: Revision,
}
