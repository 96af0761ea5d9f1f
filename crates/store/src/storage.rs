//! MVCC on SQL or in memory: a clock without gaps, versions of objects, a changefeed, compaction.
//!
//! [`Backend`] is the contract, of six traits, `sqlite`, `postgres` and `memory` fulfil it, and [`Store`] adds group commit. What holds:
//!
//! - the clock's row is locked first in every write transaction and a failed batch gives its revisions back, so
//!   revisions have no gaps and commit order is revision order;
//! - an answered write is durable (in memory: as long as the store is); an unanswered one is wholly there or not at all;
//! - rows are inserted and compacted away, never updated;
//! - a read at a revision sees exactly the state after that revision, or fails with [`Error::Compacted`].
//!
//! The only module that knows SQL, and the only one that assigns revisions.

pub mod audit;
pub mod backup;
mod commit;
mod compactor;
mod contract;
pub mod counting;
mod cure;
mod error;
mod history;
pub mod inventory;
mod judge;
mod layer;
mod mark;
pub mod memory;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod migrations;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod recording;
mod registration;
mod sequence;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod shared;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod stale;
mod stream;
mod token_key;
pub mod transfer;
mod unit;
mod value;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::sync::mpsc;

use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;

pub use audit::{AuditQuery, AuditRemoval, AuditRing, AuditRow};
pub use commit::{Batch, Change, Commit, Expect, Mutation, Outcome, Requirement, UnchangedRange};
pub use compactor::{Compaction, compact_once, compact_regularly};
pub use contract::{Backend, Commits, Feed, Reads, Registry, Upkeep};
pub use error::{DriverError, Error, OpenError};
pub use history::retention::{KeepRule, Retention};
pub use history::{
    Author, ChangeFilter, ChangeOfPast, History, Holding, Moment, PastError, Precision, Present,
    RecordWriters, Version, Writer,
};
pub use layer::Layer;
pub use mark::{HighWaterMark, SAFETY_GAP, Sighting};
pub use registration::{Amendment, EncodedResource, Fence, Registration, RegistryChange, Terms};
pub use sequence::{Counting, split_stamp};
pub use stale::{Format, Stale, StaleRow};
pub use unit::{Unit, Units};
pub use value::{Decode, Decoded, Value};
pub use writer::{Store, Together, Written};

/// The store's own number for a group and plural; see [`Registry::resource_ids`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub i32);

impl ResourceId {
    /// The number of what is not stored. No store gives it to a resource.
    pub const NONE: Self = Self(0);
}

/// The group of the resources that servers keep for themselves, and that no client is served.
pub const HIDDEN_GROUP: &str = "internal.rowplane.dev";
/// How many bytes an object may have by default when it is encoded, before it is packed or encrypted.
pub const MAX_OBJECT_BYTES: usize = 3 << 20;

/// The identity of an object. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub resource: ResourceId,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(resource: ResourceId, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.into(), name: name.into() }
    }
}

/// The two ends of readable history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The newest committed revision.
    pub revision: Revision,
    /// States before this one may be gone; the state at this very revision is still readable.
    pub compacted: Revision,
    /// How many changes up to `revision` take no revision in etcd's terms; see [`Counting`].
    pub lag: i64,
}

impl Clock {
    /// Whether the state at `at` can be read.
    pub fn check(self, at: Revision) -> Result<(), Error> {
        if at < self.compacted && !strikes(Bug::CompactedReadable) {
            return Err(Error::Compacted { oldest: self.compacted });
        }
        if at > self.revision {
            return Err(Error::Future { requested: at, current: self.revision });
        }
        Ok(())
    }

    /// The newest revision in etcd's terms.
    pub fn etcd_revision(self) -> i64 {
        self.revision.0 as i64 - self.lag
    }

    /// Whether the changes after `after` can be read. The caller has seen `after` committed, so a clock below it is an
    /// error.
    fn check_feed(self, after: Revision) -> Result<(), Error> {
        if after < self.compacted {
            return Err(Error::Compacted { oldest: self.compacted });
        }
        if after > self.revision {
            return Err(Error::Regressed { floor: after, found: self.revision });
        }
        Ok(())
    }
}

/// A live version of an object as it is stored.
#[derive(Clone, Debug)]
pub struct Row {
    pub resource: ResourceId,
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub revision: Revision,
    pub value: Bytes,
}

/// The part of a resource that a list reads, in the byte order of (namespace, name).
#[derive(Clone, Debug)]
pub struct Scan {
    pub resource: ResourceId,
    /// All namespaces if `None`.
    pub namespace: Option<Box<str>>,
    /// Only keys after this (namespace, name).
    pub after: Option<(Box<str>, Box<str>)>,
    /// The most live rows to return; `None` for all.
    pub limit: Option<u32>,
}

impl Scan {
    /// Scans all objects of a resource.
    pub fn all(resource: ResourceId) -> Self {
        Self { resource, namespace: None, after: None, limit: None }
    }

    /// The (namespace, name) after which the scan begins; never in another namespace than the scan's own.
    fn start(&self) -> (&str, &str) {
        match (self.namespace.as_deref(), &self.after) {
            (None, None) => ("", ""),
            (None, Some((namespace, name))) => (namespace, name),
            (Some(only), Some((namespace, name))) if only == &**namespace => (only, name),
            (Some(only), _) => (only, ""),
        }
    }
}

/// The effect of a write on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// The number in the column `changes.event`, the same in both databases.
    fn code(self) -> i16 {
        match self {
            ChangeKind::Added => 0,
            ChangeKind::Modified => 1,
            ChangeKind::Deleted => 2,
        }
    }

    fn from_code(code: i64) -> Result<Self, Error> {
        match code {
            0 => Ok(ChangeKind::Added),
            1 => Ok(ChangeKind::Modified),
            2 => Ok(ChangeKind::Deleted),
            other => Err(Error::Corrupt(format!("changes.event is {other}").into())),
        }
    }
}

/// One row of the changefeed with the versions of the object that it names.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub revision: Revision,
    pub key: Key,
    pub kind: ChangeKind,
    /// The version written; `None` for a deletion.
    pub value: Option<Bytes>,
    /// The version that this write replaced, if there was one. Filled in only when the feed of a single resource is
    /// read.
    pub previous: Option<(Revision, Bytes)>,
    pub counting: Counting,
}

/// A part of the changefeed. It never ends between changes that [share](Counting::Shared) a revision.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Sorted by revision.
    pub rows: Vec<ChangeRow>,
    /// The feed is complete up to here: the last row's revision, or the clock's when the feed was read to its end.
    pub through: Revision,
    /// Whether there may be more rows than the caller wanted.
    pub cut: bool,
}

impl Changes {
    /// The changes that a query returned which read at most `limit` rows after `after`, while the clock stood at
    /// `current`. `None` if the limit cuts the first revision short: the query needs a greater one.
    fn new(mut rows: Vec<ChangeRow>, limit: u32, after: Revision, current: Revision) -> Option<Self> {
        if limit == 0 || rows.len() < limit as usize {
            return Some(Self { rows, through: current.max(after), cut: false });
        }
        while rows.pop_if(|last| last.counting == Counting::Shared).is_some() {}
        let through = rows.last()?.revision;
        Some(Self { rows, through, cut: true })
    }
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The number of changes that were removed. Fewer than the limit means that no compacted change is left.
    pub changes: u64,
    /// The time the sweep held other writers up, without the time that it waited for them itself.
    pub took: Duration,
}

/// A secret that authenticates continue tokens on all replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKey {
    pub id: u32,
    /// Seconds since the Unix epoch.
    pub created_at: i64,
    pub secret: Vec<u8>,
}

/// A stream of rows. An error ends it; the rows before the error are then an incomplete answer.
pub type RowStream = BoxStream<'static, Result<Row, Error>>;

/// Rows in blocks of bounded size, for readers of many rows. An error ends the stream.
pub type BlockStream = BoxStream<'static, Result<Vec<Row>, Error>>;

/// Receives every commit of this server in the order in which they complete, before the callers of the writes are
/// answered.
pub type CommitSink = mpsc::Sender<OwnCommit>;

/// A batch this server has just committed.
pub struct OwnCommit {
    /// The clock before the batch; the revisions of the writes follow it without a gap.
    pub base: Revision,
    pub writes: Vec<OwnWrite>,
    /// The receiver of the commit sends this once readers can see the writes.
    pub published: tokio::sync::oneshot::Sender<()>,
}

/// One write of an [`OwnCommit`].
#[derive(Clone)]
pub struct OwnWrite {
    pub revision: Revision,
    pub key: Key,
    /// The [decoded](Decode) value; `None` for a deletion.
    pub object: Option<Arc<Decoded>>,
    pub counting: Counting,
}
