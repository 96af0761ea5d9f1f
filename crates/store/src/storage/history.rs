//! The past: when each revision was committed and by whom, and the states that can still be read.
//!
//! - A batch is stamped once, under the clock's lock, with the time of the clock that all servers of the store share (the
//!   database's on PostgreSQL); stamps never decrease as revisions grow. A stamp is taken before its commit is answered,
//!   so an answer that a client has had at T belongs to a stamp ≤ T.
//! - `marks` has the last commit of each second and outlives the changes; a time is a revision by it.
//! - A resource can be read at each revision from its *floor* on, which is at or below the watch horizon
//!   (`clock.compacted`). A floor is raised and committed before a row goes.

mod author;
mod contract;
pub mod retention;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) mod segments;
pub(super) mod shared;

use super::{ChangeKind, Error, ResourceId, Row};
use crate::revision::Revision;

pub use author::{Author, RecordWriters, Writer};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) use author::{KnownAuthors, Told};
pub use contract::History;

/// A revision, and when it was committed, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub revision: Revision,
    pub committed_ms: i64,
}

/// How exactly the time of a commit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Exact,
    /// The change has been swept. It was committed at the time given or up to so many milliseconds before.
    Within {
        ms: i64,
    },
    /// The revision is from before times were recorded: it was committed at the time given or earlier.
    Before,
}

/// Why the past cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PastError {
    /// The time has not come yet; the store's clock says `now_ms`.
    #[error("the time is in the future; the clock of the store says {now_ms} ms")]
    Future { now_ms: i64 },
    /// The time is before the first commit whose time is known.
    #[error("no commit is recorded at or before this time")]
    BeforeFirst,
    /// The resource can only be read from `floor` on.
    #[error("history of resource {} before revision {} is not kept", resource.0, floor.revision)]
    Expired { resource: ResourceId, floor: Moment },
    #[error(transparent)]
    Store(#[from] Error),
}

impl PastError {
    /// The error of a read at the watch horizon, which knows no floors.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Store(error) => error,
            Self::Expired { floor, .. } => Error::Compacted { oldest: floor.revision },
            Self::Future { .. } | Self::BeforeFirst => Error::Corrupt(self.to_string().into()),
        }
    }
}

/// A version of one object, with the change that made it.
#[derive(Clone, Debug)]
pub struct Version {
    pub revision: Revision,
    /// `None` if the change has been swept, or is from before times were recorded.
    pub committed_ms: Option<i64>,
    /// `None` if the change has been swept.
    pub event: Option<ChangeKind>,
    /// The version that this one replaced.
    pub previous: Option<Revision>,
    /// The object's uid; for a deletion, that of the object that was deleted.
    pub uid: Box<str>,
    pub deleted: bool,
    pub writer: Option<Writer>,
    /// The value is empty for a deletion.
    pub row: Row,
}

/// One change of the past, without the value.
#[derive(Clone, Debug)]
pub struct ChangeOfPast {
    pub revision: Revision,
    pub committed_ms: Option<i64>,
    pub event: ChangeKind,
    pub previous: Option<Revision>,
    pub uid: Box<str>,
    pub writer: Option<Writer>,
    pub resource: ResourceId,
    pub namespace: Box<str>,
    pub name: Box<str>,
}

/// The changes that are asked for; `None` permits all.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    pub resource: Option<ResourceId>,
    pub namespace: Option<Box<str>>,
}

/// The columns of a row of `holdings.sql`.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
type HoldingRow = (i32, i64, i64, i64, i64, i64);

/// The history of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    pub resource: ResourceId,
    pub floor: Revision,
    /// The changes that have not been swept.
    pub changes: u64,
    /// The bytes of the changes and of the versions that they have superseded: an estimate by a few of them.
    pub bytes: u64,
}

impl Holding {
    /// The changes whose superseded versions are looked at.
    const SAMPLE: u64 = 64;
    /// Bytes that a change takes with its keys in the indexes.
    const CHANGE: u64 = 130;
    /// Bytes that a version in `objects` takes beside its value.
    const ROW: u64 = 270;

    /// The holding in a row of `holdings.sql`.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(super) fn new((resource, floor, changes, rows, sampled, segments): HoldingRow) -> Self {
        let [changes, rows, sampled, segments] =
            [changes, rows, sampled, segments].map(|number| number.max(0) as u64);
        let each = sampled / rows.clamp(1, Self::SAMPLE) + Self::ROW;
        let bytes = changes * Self::CHANGE + rows * each + segments;
        Self { resource: ResourceId(resource), floor: Revision(floor as u64), changes, bytes }
    }
}

/// The newest commit that readers may see, and the time of the clock that stamps commits.
#[derive(Clone, Copy, Debug)]
pub struct Present {
    pub moment: Moment,
    pub now_ms: i64,
}

impl Present {
    /// The answer for a time at or after the newest commit; `None` for an earlier one.
    pub(super) fn at(self, ms: i64) -> Result<Option<Moment>, PastError> {
        match ms {
            _ if ms > self.now_ms => Err(PastError::Future { now_ms: self.now_ms }),
            _ if ms < self.moment.committed_ms => Ok(None),
            _ => Ok(Some(self.moment)),
        }
    }
}

/// The revision below which versions and changes are read: that of the caller, or else the one after the newest commit that
/// readers may see.
pub(super) fn before_or_all(before: Option<Revision>, newest: Moment) -> Revision {
    let all = Revision(newest.revision.0 + 1);
    before.map_or(all, |before| before.min(all))
}
