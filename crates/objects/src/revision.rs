//! The number that orders all writes.

use std::fmt;

/// A point in the store's history: the number of the write that led to it. Never 0 in an open store. Clients see it as
/// `resourceVersion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
