//! Units, of which batches are made.

use std::ops::{Deref, Range};

use super::counting::{Counted, charged_keys};
use super::{Batch, Change, Counting, Expect, Key, Mutation};
use crate::revision::Revision;

/// The unit of a commit: operations that pass together or not at all. An operation is a [`Mutation`] with its compares
/// ([`Expect`] on its own row, [`Requirement`](super::Requirement) on others), which are judged after the operations before
/// it. Read for it, under the clock's lock, are the live versions of all rows that it compares, and the values of those that
/// it [charges](super::counting::Charge).
#[derive(Clone, Debug)]
pub struct Unit {
    /// Operations that come before the last one.
    before: Vec<Mutation>,
    last: Mutation,
}

impl Unit {
    /// The unit of several operations, in their order.
    pub fn of(before: Vec<Mutation>, last: Mutation) -> Self {
        Self { before, last }
    }

    /// The unit of several operations that share one revision in etcd's terms.
    pub fn of_one_revision(before: Vec<Mutation>, last: Mutation) -> Self {
        Self::counted(before, last, Counting::Own)
    }

    /// The unit of several operations that take no revision in etcd's terms. Only its last value may be
    /// [stamped](super::Value::stamped): the stamp of an earlier one would be the revision that comes next.
    pub fn of_no_revision(before: Vec<Mutation>, last: Mutation) -> Self {
        Self::counted(before, last, Counting::None)
    }

    fn counted(mut before: Vec<Mutation>, mut last: Mutation, counting: Counting) -> Self {
        before.iter_mut().for_each(|operation| operation.counting = Counting::Shared);
        last.counting = counting;
        Self { before, last }
    }

    pub fn operations(&self) -> impl Iterator<Item = &Mutation> {
        self.before.iter().chain([&self.last])
    }
}

/// The unit of a single operation.
impl From<Mutation> for Unit {
    fn from(last: Mutation) -> Self {
        Self { before: Vec::new(), last }
    }
}

/// Units, laid out as one list of operations: outcomes, writes and live versions go by an operation's place in it.
#[derive(Clone, Debug, Default)]
pub struct Units {
    operations: Vec<Mutation>,
    /// Whether an operation and the next one are of one unit.
    joined: Vec<bool>,
}

impl Units {
    pub fn push(&mut self, Unit { before, last }: Unit) {
        self.joined.extend(before.iter().map(|_| true).chain([false]));
        self.operations.extend(before);
        self.operations.push(last);
    }

    /// The places of each unit's operations.
    pub fn places(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.joined.iter().enumerate().filter(|(_, joined)| !**joined).map(|(place, _)| place + 1);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end))
    }

    /// Whether the operation at this place and the next one are of one unit.
    pub fn is_joined(&self, place: usize) -> bool {
        self.joined.get(place).copied().unwrap_or_default()
    }

    pub fn into_operations(self) -> Vec<Mutation> {
        self.operations
    }

    /// The same units with other operations in their places.
    pub(super) fn map(&self, operation: impl FnMut(&Mutation) -> Mutation) -> Self {
        Self { operations: self.operations.iter().map(operation).collect(), joined: self.joined.clone() }
    }

    /// Appends a unit for each row that the operations charge. Units with charges need this before they are committed.
    pub fn count(&mut self) {
        let keys: Vec<Key> = charged_keys(self.iter()).into_iter().cloned().collect();
        for key in keys {
            // The revision is not looked at: a counted row is written at whatever version it has.
            let change = Change::Count(Counted::default());
            self.push(Mutation::new(key, Expect::At(Revision(0)), change).into());
        }
    }
}

impl Deref for Units {
    type Target = [Mutation];

    fn deref(&self) -> &[Mutation] {
        &self.operations
    }
}

impl Extend<Unit> for Units {
    fn extend<T: IntoIterator<Item = Unit>>(&mut self, units: T) {
        units.into_iter().for_each(|unit| self.push(unit));
    }
}

impl FromIterator<Unit> for Units {
    fn from_iter<T: IntoIterator<Item = Unit>>(units: T) -> Self {
        let mut all = Self::default();
        all.extend(units);
        all
    }
}

/// A unit of each operation.
impl From<Vec<Mutation>> for Units {
    fn from(operations: Vec<Mutation>) -> Self {
        Self { joined: vec![false; operations.len()], operations }
    }
}

impl Batch for Units {
    fn close(&mut self) -> &Units {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ResourceId;

    #[test]
    fn operations_have_their_places_in_the_order_of_their_units() {
        let delete =
            |name| Mutation::new(Key::new(ResourceId(1), "", name), Expect::At(Revision(1)), Change::Delete);
        let pair = Unit::of(vec![delete("b")], delete("c"));
        let units: Units = [delete("a").into(), pair, delete("d").into()].into_iter().collect();
        assert_eq!(units.iter().map(|operation| &*operation.key.name).collect::<String>(), "abcd");
        assert_eq!(units.places().collect::<Vec<_>>(), [0..1, 1..3, 3..4]);
        assert_eq!([0, 1, 2, 3, 4].map(|place| units.is_joined(place)), [false, true, false, false, false]);
    }
}
