//! Mutations with their preconditions, as writes ask them of the store, and the outcomes that it answers.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::counting::{Charge, Counted};
use super::judge::Write;
use super::{AuditRow, Author, Counting, Key, ResourceId, Units, Value};
use crate::revision::Revision;

/// The most mutations that the writer gathers into a batch.
pub const LARGEST_BATCH: usize = 256;

/// One write with its precondition: an operation of a [unit](super::Unit). A precondition on a uid is checked by the API when it reads the object; the
/// mutation then carries [`Expect::At`] with the version that was read, since a version belongs to one uid.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub key: Key,
    pub expect: Expect,
    pub change: Change,
    /// Preconditions on other rows: those that the caller relied on when it decided to write.
    pub requires: Vec<Requirement>,
    /// A precondition that it shares with many other writes, so that none of them copies it.
    pub shares: Option<Arc<Requirement>>,
    /// Ranges of rows that must not have changed since its caller looked at them.
    pub unchanged: Vec<UnchangedRange>,
    /// The revision of the state that showed the caller what is *not* there, where a decision rests on that: a namespace
    /// may go since it is empty. No version of a row proves it after a failover that has taken back the deletion of what
    /// was there. So the write is [outdated](Outcome::Outdated) if history up to this revision has been given up since.
    pub decided_at: Option<Revision>,
    /// Amounts that it adds to the counters of other rows, in the same commit.
    pub charges: Vec<Charge>,
    /// The audit event that is committed with the write.
    pub audit: Option<Arc<AuditRow>>,
    /// The writer of the change; `None` if that is not recorded.
    pub author: Option<Arc<Author>>,
    /// How the write counts in etcd's terms, as its [unit](super::Unit) wants it.
    pub counting: Counting,
}

/// A precondition on another row than the one that a [`Mutation`] writes, for example that the namespace of a new
/// object is still at the version which the caller has seen. It is judged inside the transaction, after the earlier
/// mutations of the same batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: Key,
    pub expect: Expect,
}

/// A precondition on all rows of a resource with names in a range, those that are not there included: none has been made,
/// changed or deleted since a revision. It is judged as a [`Requirement`] is, and costs as much as has been written to the
/// resource since. It fails if history up to the revision has been given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnchangedRange {
    pub resource: ResourceId,
    /// The first name, in the order of bytes.
    pub start: Arc<str>,
    /// The first name behind the range; `None` if the range has no upper end.
    pub stop: Option<Arc<str>>,
    pub since: Revision,
}

impl UnchangedRange {
    pub(super) fn covers(&self, key: &Key) -> bool {
        key.resource == self.resource
            && *key.name >= *self.start
            && self.stop.as_deref().is_none_or(|stop| *key.name < *stop)
    }
}

/// The precondition on a row, judged inside the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No live object has the key.
    Absent,
    /// The live object's newest version is this one.
    At(Revision),
}

impl Mutation {
    /// A write without preconditions on other rows.
    pub fn new(key: Key, expect: Expect, change: Change) -> Self {
        Self {
            key,
            expect,
            change,
            requires: Vec::new(),
            shares: None,
            unchanged: Vec::new(),
            decided_at: None,
            charges: Vec::new(),
            audit: None,
            author: None,
            counting: Counting::Own,
        }
    }

    /// Adds charges to the write.
    pub fn charging(mut self, charges: Vec<Charge>) -> Self {
        self.charges.extend(charges);
        self
    }

    /// The write with a value that may be longer than the store's limit.
    pub fn unlimited(mut self) -> Self {
        if let Change::Put { value, .. } = &mut self.change {
            *value = value.clone().unlimited();
        }
        self
    }

    /// Adds a range that must not have changed.
    pub fn requiring_unchanged(mut self, range: UnchangedRange) -> Self {
        self.unchanged.push(range);
        self
    }

    /// Adds requirements to the write.
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

/// The audit events of the mutations that are written.
pub(super) fn audit_rows<'a>(batch: &'a [Mutation], writes: &[Write]) -> Vec<&'a AuditRow> {
    writes.iter().filter_map(|write| batch[write.index].audit.as_deref()).collect()
}

/// The keys of all [requirements](Requirement) of a batch, each once, the shared ones last. A backend
/// reads their live versions with those of the mutations' own keys, behind these.
pub(super) fn required_keys(batch: &[Mutation]) -> Vec<&Key> {
    let mut keys: Vec<&Key> = Vec::new();
    let mut seen = HashSet::new();
    let own = batch.iter().flat_map(|mutation| &mutation.requires);
    let shared = batch.iter().filter_map(|mutation| mutation.shares.as_deref());
    for key in own.chain(shared).map(|requirement| &requirement.key) {
        // Most batches require a single row; this comparison recognizes it without computing a hash.
        if keys.last() != Some(&key) && seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

/// The ranges of all mutations of a batch, in their order.
pub(super) fn ranges(batch: &[Mutation]) -> impl Iterator<Item = &UnchangedRange> {
    batch.iter().flat_map(|mutation| &mutation.unchanged)
}

#[derive(Clone, Debug)]
pub enum Change {
    Put {
        uid: Arc<str>,
        stored_version: Arc<str>,
        value: Value,
    },
    Delete,
    /// The row that the batch's [charges](Charge) on it make. The writer appends these mutations to a batch.
    Count(Counted),
}

impl Change {
    /// The change as it is carried out: that of a counted row is known once its batch has been judged.
    pub fn settled(&self) -> &Self {
        match self {
            Self::Count(counted) => counted.get(),
            plain => plain,
        }
    }

    /// The variant of [`Change::settled`] that consumes the change.
    pub fn into_settled(self) -> Self {
        match self {
            Self::Count(counted) => counted.get().clone(),
            plain => plain,
        }
    }
}

/// The units of one transaction. A batch accepts more of them until it is its turn to be committed, so that writes which
/// arrive while others are being committed need no transaction of their own.
pub trait Batch: Send {
    /// Takes in units that come. Ready once the batch has as many operations as are wanted, or accepts no more.
    fn poll_gather(&mut self, _context: &mut Context<'_>, _wanted: usize) -> Poll<()> {
        Poll::Ready(())
    }

    /// Seals the batch: it accepts no more units. Returns those that it has.
    fn close(&mut self) -> &Units;
}

/// The result of a batch's transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The clock before the batch. The committed mutations get the revisions that follow it without a gap, in batch
    /// order.
    pub base: Revision,
    /// One per mutation.
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed(Revision),
    /// The precondition failed. `found` is the live version of the row, if there is one, or
    /// [`UNWRITTEN`](super::judge::UNWRITTEN).
    Conflict {
        found: Option<Revision>,
    },
    /// The mutation's own precondition held, but the requirement with this index failed. `found` is the live version of
    /// that requirement's row, if there is one, or [`UNWRITTEN`](super::judge::UNWRITTEN).
    Unmet {
        requirement: usize,
        found: Option<Revision>,
    },
    /// The mutation's own precondition and its requirements held, but a row of one of its
    /// [ranges](Mutation::unchanged) has changed.
    RangeChanged,
    /// Another operation of the same [unit](super::Unit) has not passed; or the row that a [`Change::Count`] writes was not
    /// charged by the batch.
    Apart,
    /// The mutation's own precondition and its requirements held, but the charge with this index did not fit, or the
    /// row that it is for is not there or was changed by an earlier mutation of the batch.
    Unfit {
        charge: usize,
    },
    /// The history since [`Mutation::decided_at`] has been given up.
    Outdated,
    /// The server is not registered any more; see [`Fence`](super::Fence).
    Fenced,
}
