//! What a write asks for and what it gets.

use std::sync::Arc;

use super::Key;
use crate::codec::object::Draft;
use crate::revision::Revision;

/// One write with its precondition. A uid precondition is judged on the object by whoever read it at a version;
/// [`Expect::At`] then carries it, for a version belongs to one uid.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub key: Key,
    pub expect: Expect,
    pub change: Change,
}

/// What has to hold inside the transaction for a [`Mutation`] to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No live object has the key.
    Absent,
    /// The live object's newest version is this one.
    At(Revision),
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
    /// The server is not registered any more; see [`Fence`](super::Fence).
    Fenced,
}
