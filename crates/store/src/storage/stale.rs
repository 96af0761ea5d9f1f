//! Rows stored in an outdated encoding: which rows, and how many.

use std::sync::Arc;

use bytes::Bytes;

use super::{Key, ResourceId};
use crate::codec::sealed;
use crate::revision::Revision;

/// The first bytes of every value in protobuf; no other value starts so.
pub(super) const PROTOBUF: &[u8] = b"k8s\0";
/// The first bytes of every value that is in protobuf or encrypted; no JSON or YAML starts so.
const NO_TEXT: &[u8] = b"k8s";

/// Selects and counts live rows in another encoding.
pub(super) const ROWS: &str = include_str!("sql/stale_rows.sql");
pub(super) const COUNT: &str = include_str!("sql/stale_count.sql");

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Json,
    Protobuf,
    /// Encrypted by the provider and key that these first bytes name.
    Sealed(Bytes),
}

/// The columns of a row that `stale_rows.sql` returns.
pub(super) type StaleColumns = (String, String, i64);

impl Stale {
    /// The first bytes by which values in the wanted format are told from others, and whether they have them.
    pub(super) fn wanted(&self) -> (&[u8], bool) {
        match &self.format {
            Format::Json => (NO_TEXT, false),
            Format::Protobuf => (PROTOBUF, true),
            Format::Sealed(prefix) => (prefix, true),
        }
    }

    /// Whether a value, stored in this apiVersion, is encoded differently.
    pub(super) fn is_in_another(&self, stored_version: &str, value: &[u8]) -> bool {
        let (prefix, wanted) = self.wanted();
        *stored_version != *self.api_version || value.starts_with(prefix) != wanted
    }

    pub(super) fn rows(&self, found: Vec<StaleColumns>) -> Vec<StaleRow> {
        let row = |(namespace, name, revision): StaleColumns| StaleRow {
            key: Key::new(self.resource, &namespace, &name),
            revision: Revision(revision as u64),
        };
        found.into_iter().map(row).collect()
    }
}

impl Format {
    /// The format of a stored value.
    pub(super) fn of(value: &[u8]) -> Self {
        match sealed::prefix(value) {
            Some(prefix) => Self::Sealed(Bytes::copy_from_slice(prefix)),
            None if value.starts_with(PROTOBUF) => Self::Protobuf,
            None => Self::Json,
        }
    }
}

/// A live row, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRow {
    pub key: Key,
    pub revision: Revision,
}
