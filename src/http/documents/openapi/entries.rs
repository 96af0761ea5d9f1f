//! The large parts of a document: many named values, each of which is made when it is written and gone right after,
//! because trees of all of them would take many times the memory of their text.

use serde::{Serialize, Serializer};

use crate::tree::Value;

/// Values by name, from a function that begins to make them.
pub(super) struct Entries<F>(pub F);

impl<F, I, N> Serialize for Entries<F>
where
    F: Fn() -> I,
    I: Iterator<Item = (N, Value)>,
    N: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map((self.0)())
    }
}
