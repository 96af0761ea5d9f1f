//! The number every layer counts by.

use std::fmt;

/// A point in the store's history: the number of the write that made it. Never 0 in a store that is open.
/// On the wire it is a `resourceVersion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
