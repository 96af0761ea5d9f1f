//! What a write asks for and what it gets.

use std::collections::HashSet;
use std::sync::Arc;

use super::Key;
use crate::codec::object::Draft;
use crate::revision::Revision;

/// The writer gathers at most so many mutations into a batch.
pub const LARGEST_BATCH: usize = 256;

/// One write with its precondition. A uid precondition is judged on the object by whoever read it at a version;
/// [`Expect::At`] then carries it, for a version belongs to one uid.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub key: Key,
    pub expect: Expect,
    pub change: Change,
    /// What else has to hold: the rows on which the caller relied when it decided to write.
    pub requires: Vec<Requirement>,
    /// Whether it and the next mutation of the batch pass together or not at all.
    pub joins_next: bool,
}

/// A precondition about another row than the one that a [`Mutation`] writes, for example that the namespace of a new
/// object is still at the version which the caller has seen. Judged in the transaction, after the mutations of the same
/// batch that come before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: Key,
    pub expect: Expect,
}

/// What has to hold for a row inside the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No live object has the key.
    Absent,
    /// The live object's newest version is this one.
    At(Revision),
}

impl Mutation {
    /// A write that depends on no other row.
    pub fn new(key: Key, expect: Expect, change: Change) -> Self {
        Self { key, expect, change, requires: Vec::new(), joins_next: false }
    }

    /// The same write, if this holds too.
    pub fn requiring(mut self, requirement: impl IntoIterator<Item = Requirement>) -> Self {
        self.requires.extend(requirement);
        self
    }
}

impl Expect {
    /// Whether the live version `found` is the expected one.
    pub fn holds(self, found: Option<Revision>) -> bool {
        match self {
            Self::Absent => found.is_none(),
            Self::At(expected) => found == Some(expected),
        }
    }
}

/// The keys of all [requirements](Requirement) of a batch, each once, in the order in which they first occur. A backend
/// reads their live versions in the statement that reads those of the mutations' own keys, behind these.
pub(super) fn required_keys(batch: &[Mutation]) -> Vec<&Key> {
    let mut keys: Vec<&Key> = Vec::new();
    let mut seen = HashSet::new();
    for key in batch.iter().flat_map(|mutation| &mutation.requires).map(|requirement| &requirement.key) {
        // Most batches rely on one row, which the comparison finds without a hash.
        if keys.last() != Some(&key) && seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

#[derive(Clone, Debug)]
pub enum Change {
    Put { uid: Arc<str>, stored_version: Arc<str>, draft: Draft },
    Delete,
}

/// The mutations of one transaction. It may grow until the clock's lock is held: whoever comes while it is waited for
/// need not wait for another one.
pub trait Batch: Send {
    /// What the batch consists of from now on.
    fn close(&mut self) -> &[Mutation];
}

impl Batch for &[Mutation] {
    fn close(&mut self) -> &[Mutation] {
        self
    }
}

/// A batch after its transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The clock before the batch; committed mutations follow it without a gap, in batch order.
    pub base: Revision,
    /// One per mutation.
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed(Revision),
    /// The precondition failed; the live version, if there is one.
    Conflict {
        found: Option<Revision>,
    },
    /// The mutation's own precondition held, but not this one of its requirements; the live version of that row, if
    /// there is one.
    Unmet {
        requirement: usize,
        found: Option<Revision>,
    },
    /// What the mutation [joins](Mutation::joins_next), or what joins it, has not passed.
    Apart,
    /// The server is not registered any more; see [`Fence`](super::Fence).
    Fenced,
}
