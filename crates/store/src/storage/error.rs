//! Errors of the store. None shows which driver it comes from.

use std::sync::Arc;

use crate::revision::Revision;

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
    /// The disk has lost a write that it had confirmed. Nothing was written; the process ends, see [`Upkeep::broken`](super::Upkeep::broken).
    #[error("the database has failed: {0}")]
    Broken(Arc<str>),
    /// This server's registration is gone, and without it the server may not write.
    #[error("this server's storage versions are not registered")]
    Fenced,
    /// The write was decided by a state from before history was given up; see [`Mutation::decided_at`](super::Mutation::decided_at).
    #[error("history since the write was decided has been given up")]
    Outdated,
    /// The write holds an object that is longer than the limit of [`Store::start`](super::Store::start). The text is etcd's.
    #[error("etcdserver: request is too large")]
    TooLarge,
    /// The cache does not hold the resource (any more), since it is not served.
    #[error("the resource is not served")]
    Removed,
    /// A [fork](super::memory::Memory::fork) has as many bytes of values as it may have.
    #[error("the branch is full: it may hold {0} bytes beyond what it was made from")]
    Full(u64),
    /// The store is closing down.
    #[error("the store is closed")]
    Closed,
}

/// The error of a database's driver. Its type stays in the store; callers have its text and its sources.
pub type DriverError = Box<dyn std::error::Error + Send + Sync>;

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
    Unreachable { url: String, source: DriverError },
}
