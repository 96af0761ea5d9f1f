//! Errors of etcd's API: a code of gRPC, and a text by which clients tell one from the other.

use std::sync::Arc;

use rowplane_store::storage;
use tonic::Code;

/// The reason for which a request fails. Its text is etcd's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("etcdserver: key is not provided")]
    EmptyKey,
    #[error("etcdserver: key not found")]
    KeyNotFound,
    #[error("etcdserver: value is provided")]
    ValueProvided,
    #[error("etcdserver: lease is provided")]
    LeaseProvided,
    #[error("etcdserver: too many operations in txn request")]
    TooManyOperations,
    #[error("etcdserver: duplicate key given in txn request")]
    DuplicateKey,
    #[error("etcdserver: invalid sort option")]
    InvalidSort,
    #[error("etcdserver: request is too large")]
    TooLarge,
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted,
    #[error("etcdserver: mvcc: required revision is a future revision")]
    Future,
    #[error("etcdserver: too large lease TTL")]
    TtlTooLarge,
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound,
    #[error("etcdserver: lease already exists")]
    LeaseExists,
    #[error("RangeStream does not support custom sort orders")]
    StreamSorted,
    #[error("RangeStream does not support revision filters")]
    StreamFiltered,
    /// The database cannot be asked. Nothing was written.
    #[error("etcdserver: no leader")]
    NoLeader,
    /// The outcome of a write is open.
    #[error("etcdserver: request timed out")]
    TimedOut,
    /// The clock of the database has been moved ahead.
    #[error("etcdserver: leader changed")]
    LeaderChanged,
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
    #[error("etcdserver: server stopped")]
    Stopped,
    #[error("etcdserver: mvcc: database space exceeded")]
    NoSpace,
    #[error("etcdserver: corrupt cluster")]
    Corrupt(Arc<str>),
}

impl Error {
    pub fn code(&self) -> Code {
        match self {
            Self::EmptyKey
            | Self::KeyNotFound
            | Self::ValueProvided
            | Self::LeaseProvided
            | Self::TooManyOperations
            | Self::DuplicateKey
            | Self::InvalidSort
            | Self::TooLarge => Code::InvalidArgument,
            Self::Compacted | Self::Future | Self::TtlTooLarge => Code::OutOfRange,
            Self::LeaseNotFound => Code::NotFound,
            Self::LeaseExists => Code::FailedPrecondition,
            Self::StreamSorted | Self::StreamFiltered => Code::Unimplemented,
            Self::NoLeader | Self::TimedOut | Self::LeaderChanged | Self::Unhealthy | Self::Stopped => {
                Code::Unavailable
            }
            Self::NoSpace => Code::ResourceExhausted,
            Self::Corrupt(_) => Code::DataLoss,
        }
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        use storage::Error as Store;
        match error {
            Store::Compacted { .. } => Self::Compacted,
            Store::Future { .. } => Self::Future,
            Store::Unavailable(_) => Self::NoLeader,
            Store::Unknown(_) => Self::TimedOut,
            Store::Regressed { .. } | Store::Outdated => Self::LeaderChanged,
            Store::Corrupt(why) | Store::Broken(why) => Self::Corrupt(why),
            Store::Fenced | Store::Removed => Self::Unhealthy,
            Store::TooLarge => Self::TooLarge,
            Store::Full(_) => Self::NoSpace,
            Store::Closed => Self::Stopped,
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
