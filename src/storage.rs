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

pub mod backup;
mod commit;
mod compactor;
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
use crate::revision::Revision;
use crate::schema::names::GroupResource;

pub use commit::{Batch, Change, Commit, Expect, Mutation, Outcome, Requirement};
pub use compactor::{Compaction, compact_regularly};
pub use mark::{HighWaterMark, SAFETY_GAP, Sighting};
pub use registration::{EncodedResource, Fence, Registration, RegistryChange, Terms};
pub use stale::{Format, Stale, StaleRow};
pub use writer::{Store, Together, Written};

/// The store's own number for a group and plural; see [`Backend::resource_ids`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub i32);

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
        if at < self.compacted {
            return Err(Error::Compacted { oldest: self.compacted });
        }
        if at > self.revision {
            return Err(Error::Future { requested: at, current: self.revision });
        }
        Ok(())
    }

    /// As if nothing had been committed after `limit`.
    fn until(self, limit: Revision) -> Self {
        Self { revision: self.revision.min(limit), ..self }
    }

    /// Whether the changes after `after`, a revision that has been seen, can be read.
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
    /// At most so many live rows; `None` for all.
    pub limit: Option<u32>,
}

impl Scan {
    /// Everything of a resource.
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

/// What a write did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// `changes.event`, the same numbers in both databases.
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

/// One row of the changefeed with the versions it speaks of.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub revision: Revision,
    pub key: Key,
    pub kind: ChangeKind,
    /// The version written; `None` for a deletion.
    pub value: Option<Bytes>,
    /// The version that was current before, if there was one; only in the feed of one resource.
    pub previous: Option<(Revision, Bytes)>,
}

/// A piece of the changefeed.
#[derive(Clone, Debug)]
pub struct Changes {
    /// In the order of their revisions.
    pub rows: Vec<ChangeRow>,
    /// The feed is complete up to here: the last row's revision, or the clock's when the feed was read to its end.
    pub through: Revision,
}

impl Changes {
    /// `rows` were read after `after` with this limit while the clock stood at `current`.
    fn new(rows: Vec<ChangeRow>, limit: u32, after: Revision, current: Revision) -> Self {
        let cut = rows.len() >= limit as usize;
        let through = rows.last().filter(|_| cut).map_or(current.max(after), |row| row.revision);
        Self { rows, through }
    }
}

/// What a sweep has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// How many changes it went through: fewer than were allowed means that nothing is left.
    pub changes: u64,
    /// Without the wait for others: how long they had to wait for it.
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

/// A failed call to the store. Nothing was written, unless it is [`Error::Unknown`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The state asked for is older than the history that is kept.
    #[error("history before revision {oldest} has been compacted")]
    Compacted { oldest: Revision },
    /// The state asked for has not been reached.
    #[error("revision {requested} is in the future, current is {current}")]
    Future { requested: Revision, current: Revision },
    /// The database cannot be reached, is full, or refuses to work.
    #[error("the database is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The connection broke during COMMIT and the outcome could not be learned in time.
    #[error("the outcome of the write is not known: {0}")]
    Unknown(Arc<str>),
    /// The clock stands before a revision that had been acknowledged.
    #[error("the database is at revision {found} but had acknowledged {floor}")]
    Regressed { floor: Revision, found: Revision },
    /// The database holds what this program did not write.
    #[error("the database is inconsistent: {0}")]
    Corrupt(Arc<str>),
    /// The disk has not kept its word. Nothing was written; the process ends, see [`Backend::broken`].
    #[error("the database has failed: {0}")]
    Broken(Arc<str>),
    /// This server has no registration any more under which it might write.
    #[error("this server's storage versions are not registered")]
    Fenced,
    /// The cache does not hold the resource, or not any more: it is not served.
    #[error("the resource is not served")]
    Removed,
    /// The store is closing down.
    #[error("the store is closed")]
    Closed,
}

/// Why a store could not be opened; each is one clear line for the operator.
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
    /// Another database than this server's, or an old state of it.
    #[error("the database {url} is not used: {reason}")]
    Refused { url: String, reason: String },
    #[error("the database {url} cannot be opened: {source}")]
    Unreachable { url: String, source: sqlx::Error },
}

/// A stream of rows; an error ends it, and what came before is then not the whole answer.
pub type RowStream = BoxStream<'static, Result<Row, Error>>;

/// Rows in blocks of bounded size, for whoever reads many; an error ends it.
pub type BlockStream = BoxStream<'static, Result<Vec<Row>, Error>>;

/// What a database has to do. Calls may be cancelled at any await; a cancelled [`Backend::commit_under`] is the one
/// exception and must be driven to its end (the writer does).
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// `sqlite`, `postgres` or `memory`, for logs and metrics.
    fn name(&self) -> &'static str;

    /// How many batches may be committed at a time.
    fn pipeline_depth(&self) -> usize;

    /// From now on compares the database with what the mark remembers of it, and refuses another one.
    async fn hold_to(&self, _mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        Ok(())
    }

    /// Takes the clock's lock, closes the batch, judges it in order inside that transaction and writes what passes under
    /// `terms`; durable on return. A batch that is still open afterwards has not been looked at.
    /// A clock below the floor means that the database lost commits: [`Error::Regressed`]. A lost fence fails the
    /// mutations that it does not exempt, and a change of the registry with everything beside it: [`Error::Fenced`].
    /// If the connection breaks during COMMIT, finds out what became of it before it returns.
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error>;

    /// A batch that needs no registration.
    async fn commit(&self, mut batch: &[Mutation], floor: Revision) -> Result<Commit, Error> {
        self.commit_under(&mut batch, Terms { floor, ..Terms::default() }).await
    }

    /// The clock, newer than every commit answered by any replica before the call.
    async fn clock(&self) -> Result<Clock, Error>;

    /// The live rows of `scan` as of `at`, in key order, from one snapshot.
    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error>;

    /// The revisions of the live rows of each resource as of `at`, in key order, all from one snapshot.
    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error>;

    /// The rows of these revisions. A revision's row never changes, so this needs no snapshot; one that has been swept
    /// meanwhile is missing.
    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error>;

    /// How many live rows `scan` has as of `at`; its limit is ignored.
    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error>;

    /// The first `limit` rows in another encoding after a (namespace, name), in key order. Read from the newest state.
    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error>;

    /// How many rows are in another encoding.
    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error>;

    /// Up to `limit` changes after a revision that was committed once: of one resource, with the values they replaced,
    /// or of all, without.
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error>;

    /// Raises `compacted` to `to` (never lowers it, never beyond the clock). Rows go later, by [`Backend::sweep`].
    async fn compact(&self, to: Revision) -> Result<Clock, Error>;

    /// The oldest change that is still there, compacted or not.
    async fn oldest_change(&self) -> Result<Option<Revision>, Error>;

    /// Removes the dead rows of up to `limit` changes at or below `compacted`. Does not wait for the disk: what is lost
    /// with the machine is removed again.
    async fn sweep(&self, limit: u32) -> Result<Swept, Error>;

    /// Gives disk space back, all of a piece or none, and bounds the write-ahead log, as far as the database needs to be told.
    async fn reclaim(&self) -> Result<(), Error>;

    /// Makes the clock at least `floor` and forgets the history before it: the answer to a database that came
    /// back without commits it had acknowledged.
    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error>;

    /// The ids of these resources, made where they are missing, in the order given.
    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error>;

    /// All token keys, newest first; makes a new one if the newest is older than `max_age` seconds at `now`
    /// (seconds since the epoch), and drops those older than three times that.
    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error>;

    /// Returns when another server may have committed something. A hint: it may come late, or for nothing.
    async fn hint(&self);

    /// Returns once what the database holds cannot be relied on any more, and why: the server has to end.
    async fn broken(&self) -> Arc<str> {
        std::future::pending().await
    }

    /// Whether other servers can commit to the same database.
    fn shared(&self) -> bool;

    /// Closes all connections.
    async fn close(&self);
}

/// Receives every commit of this server in order of completion, before the writers are answered.
pub type CommitSink = mpsc::Sender<OwnCommit>;

/// A batch this server has just committed.
pub struct OwnCommit {
    /// The clock before the batch; its writes follow without a gap.
    pub base: Revision,
    pub writes: Vec<OwnWrite>,
    /// To be sent once the writes are visible to readers.
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
