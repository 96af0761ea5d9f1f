//! Rows in an encoding of old: which ones, and how many.

use std::sync::Arc;

use super::{Key, ResourceId};
use crate::revision::Revision;

/// What stands at the beginning of values in protobuf, and of no others.
pub(super) const PROTOBUF: &[u8] = b"k8s\0";

/// The live rows of a resource that are encoded in another way than this.
#[derive(Clone, Debug)]
pub struct Stale {
    pub resource: ResourceId,
    pub api_version: Arc<str>,
    pub format: Format,
    /// No row that was written later counts.
    pub through: Revision,
}

/// How values are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Protobuf,
}

/// A row of `stale_rows.sql`.
pub(super) type Found = (String, String, i64);

impl Stale {
    pub(super) fn in_protobuf(&self) -> bool {
        self.format == Format::Protobuf
    }

    /// Whether a value, stored in this version, is encoded in another way.
    pub(super) fn is_in_another(&self, stored_version: &str, value: &[u8]) -> bool {
        *stored_version != *self.api_version || value.starts_with(PROTOBUF) != self.in_protobuf()
    }

    pub(super) fn rows(&self, found: Vec<Found>) -> Vec<StaleRow> {
        let row = |(namespace, name, revision): Found| StaleRow {
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
