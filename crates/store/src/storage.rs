//! MVCC on SQL or in memory: a clock without gaps, versions of objects, a changefeed, compaction.
//!
//! [`Backend`] is the contract, `sqlite`, `postgres` and `memory` fulfil it, and [`Store`] adds group commit. What holds:
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
pub mod counting;
pub mod inventory;
mod judge;
mod mark;
pub mod memory;
mod migrations;
pub mod postgres;
mod registration;
pub mod sqlite;
mod stale;
mod stream;
mod token_key;
pub mod transfer;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::sync::mpsc;

use crate::codec::object::Object;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

pub use audit::{AuditQuery, AuditRemoval, AuditRing, AuditRow};
pub use commit::{Batch, Change, Commit, Expect, Mutation, Outcome, Requirement};
pub use compactor::{Compaction, compact_regularly};
pub use mark::{HighWaterMark, SAFETY_GAP, Sighting};
pub use registration::{Amendment, EncodedResource, Fence, Registration, RegistryChange, Terms};
pub use stale::{Format, Stale, StaleRow};
pub use writer::{Store, Together, Written};

/// The store's own number for a group and plural; see [`Backend::resource_ids`].
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

    /// The clock as it would stand if nothing had been committed after `limit`.
    fn until(self, limit: Revision) -> Self {
        Self { revision: self.revision.min(limit), ..self }
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
}

/// A part of the changefeed.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Sorted by revision.
    pub rows: Vec<ChangeRow>,
    /// The feed is complete up to here: the last row's revision, or the clock's when the feed was read to its end.
    pub through: Revision,
}

impl Changes {
    /// The changes that a query returned which read at most `limit` rows after `after`, while the clock stood at
    /// `current`.
    fn new(rows: Vec<ChangeRow>, limit: u32, after: Revision, current: Revision) -> Self {
        let cut = rows.len() >= limit as usize;
        let through = rows.last().filter(|_| cut).map_or(current.max(after), |row| row.revision);
        Self { rows, through }
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

/// A failed call to the store. Nothing was written, unless the error is [`Error::Unknown`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The requested state is older than the history that is kept.
    #[error("history before revision {oldest} has been compacted")]
    Compacted { oldest: Revision },
    /// The requested state has not been reached yet.
    #[error("revision {requested} is in the future, current is {current}")]
    Future { requested: Revision, current: Revision },
    /// The database cannot be reached, is full, or refuses to work.
    #[error("the database is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The connection broke during the commit and the outcome could not be learned in time.
    #[error("the outcome of the write is not known: {0}")]
    Unknown(Arc<str>),
    /// The clock stands before a revision that was acknowledged earlier: the database has lost commits.
    #[error("the database is at revision {found} but had acknowledged {floor}")]
    Regressed { floor: Revision, found: Revision },
    /// The database holds data that this program cannot have written.
    #[error("the database is inconsistent: {0}")]
    Corrupt(Arc<str>),
    /// The disk has lost a write that it had confirmed. Nothing was written; the process ends, see [`Backend::broken`].
    #[error("the database has failed: {0}")]
    Broken(Arc<str>),
    /// This server's registration is gone, and without it the server may not write.
    #[error("this server's storage versions are not registered")]
    Fenced,
    /// The write was decided by a state from before history was given up; see [`Mutation::decided_at`].
    #[error("history since the write was decided has been given up")]
    Outdated,
    /// The write holds an object that is longer than the limit of [`Store::start`]. The text is etcd's.
    #[error("etcdserver: request is too large")]
    TooLarge,
    /// The cache does not hold the resource (any more), since it is not served.
    #[error("the resource is not served")]
    Removed,
    /// The store is closing down.
    #[error("the store is closed")]
    Closed,
}

/// Why a store could not be opened. Each variant prints as one line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the datastore URL {url:?} is not understood: {reason}")]
    Url { url: String, reason: String },
    #[error("the database {0} is in use by another server")]
    Locked(String),
    #[error(
        "the database {url} has {names} names (hard links), each of which would have a log of its own; keep one of them"
    )]
    Linked { url: String, names: u64 },
    #[error("the database's schema is newer than this server knows (migration {0}); run a newer rowplane")]
    NewerSchema(i64),
    #[error("the database holds a schema that is not rowplane's: {0}")]
    ForeignSchema(String),
    /// The URL leads to another database than the one this server used before, or to an older state of it.
    #[error("the database {url} is not used: {reason}")]
    Refused { url: String, reason: String },
    #[error("the database {url} cannot be opened: {source}")]
    Unreachable { url: String, source: sqlx::Error },
}

/// A stream of rows. An error ends it; the rows before the error are then an incomplete answer.
pub type RowStream = BoxStream<'static, Result<Row, Error>>;

/// Rows in blocks of bounded size, for readers of many rows. An error ends the stream.
pub type BlockStream = BoxStream<'static, Result<Vec<Row>, Error>>;

/// The contract of a database. Calls may be cancelled at any await, except [`Backend::commit_under`], which must be
/// driven to its end (the writer does that).
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// `sqlite`, `postgres` or `memory`, for logs and metrics.
    fn name(&self) -> &'static str;

    /// How many batches may be committed at the same time.
    fn pipeline_depth(&self) -> usize;

    /// From now on, compares the database with what the mark remembers of it, and refuses a different database.
    async fn hold_to(&self, _mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        Ok(())
    }

    /// Seals the batch when its turn comes, judges its mutations in order inside a transaction that holds the clock's lock,
    /// and writes those that pass under `terms`. They are durable on return. If the batch has not been sealed on return,
    /// none of its mutations was looked at.
    ///
    /// A clock below the floor means that the database has lost commits: [`Error::Regressed`]. If the server's fence is
    /// lost, the mutations that the fence does not exempt fail, and a change of the registry fails together with the
    /// whole batch: [`Error::Fenced`]. If the connection breaks before the batch is answered, this call finds out whether
    /// it was committed before it returns.
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error>;

    /// Commits a batch that needs no registration.
    async fn commit(&self, mut batch: &[Mutation], floor: Revision) -> Result<Commit, Error> {
        self.commit_under(&mut batch, Terms { floor, ..Terms::default() }).await
    }

    /// The clock, newer than every commit answered by any replica before the call.
    async fn clock(&self) -> Result<Clock, Error>;

    /// The live rows of `scan` as of `at`, in key order, from one snapshot.
    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error>;

    /// The bytes that the store's tables take in the database, with rows that are removed and whose space is not used again yet;
    /// `None` in memory.
    async fn size(&self) -> Result<Option<u64>, Error>;

    /// For each resource, the revisions of its live rows as of `at`, in key order. All come from one snapshot.
    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error>;

    /// The rows with these revisions. A revision's row never changes, so no snapshot is needed. Rows that have been
    /// swept meanwhile are left out.
    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error>;

    /// How many live rows `scan` has as of `at`; the scan's limit is ignored.
    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error>;

    /// The first `limit` live rows after a (namespace, name) that are stored in another encoding, in key order. Reads
    /// the newest state.
    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error>;

    /// How many live rows are stored in another encoding.
    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error>;

    /// Up to `limit` changes after `after`, which must be a revision that was committed once. For one resource, the
    /// rows carry the values that the changes replaced; for all resources (`None`) they do not.
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error>;

    /// Raises `compacted` to `to`, but never lowers it and never raises it beyond the clock. [`Backend::sweep`] removes
    /// the rows later.
    async fn compact(&self, to: Revision) -> Result<Clock, Error>;

    /// The revision of the oldest change that has not been swept, whether it is compacted or not.
    async fn oldest_change(&self) -> Result<Option<Revision>, Error>;

    /// Removes up to `limit` changes at or below `compacted`, and the rows that they made dead. Does not wait for the
    /// disk: if a crash brings rows back, they are swept again.
    async fn sweep(&self, limit: u32) -> Result<Swept, Error>;

    /// Returns free disk space to the file system and bounds the write-ahead log, as far as the database does not do
    /// that by itself. Each call does its work completely or not at all.
    async fn reclaim(&self) -> Result<(), Error>;

    /// Raises the clock to at least `floor` and gives up the history before it. Called when a database has come back
    /// without commits that it had acknowledged.
    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error>;

    /// The ids of these resources, in the given order. Ids that are missing are created.
    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error>;

    /// All token keys, newest first. Creates a key if the newest is older than `max_age` seconds at `now` (seconds
    /// since the epoch), and then drops keys older than three times `max_age`, but for the newest that was there.
    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error>;

    /// Adds audit events in a transaction of their own. Those of writes come with the [`Mutation`].
    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error>;

    /// The newest audit events that are asked for, the oldest of them first.
    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error>;

    /// Removes some of the audit events that are too old or too many. Returns their number.
    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error>;

    /// Returns when another server may have committed something. It is only a hint: it may come late, or although
    /// nothing was committed.
    async fn hint(&self);

    /// Returns once the contents of the database cannot be relied on any more, with the reason. The server must end
    /// then.
    async fn broken(&self) -> Arc<str> {
        std::future::pending().await
    }

    /// Whether other servers can commit to the same database.
    fn shared(&self) -> bool;

    /// Closes all connections.
    async fn close(&self);
}

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
    /// `None` for a deletion.
    pub object: Option<Arc<Object>>,
}
