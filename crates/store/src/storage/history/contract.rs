//! The part of a database's contract that reads the past.

use async_trait::async_trait;

use super::super::{
    ChangeFilter, ChangeOfPast, Holding, Key, Moment, PastError, Precision, Present, ResourceId, Row,
    RowStream, Scan, Version,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// Reads of the past, at any revision from the [floor](History::floor) of a resource on.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// The newest commit that readers may see, and the time of the clock that stamps commits.
    async fn present(&self) -> Result<Present, PastError>;

    /// The newest commit at or before a time in milliseconds since the Unix epoch. The answer for a time never changes.
    async fn moment_at(&self, ms: i64) -> Result<Moment, PastError>;

    /// When a revision was committed.
    async fn moment_of(&self, revision: Revision) -> Result<(Moment, Precision), PastError>;

    /// The oldest revision at which a resource can be read, in a namespace or in all.
    async fn floor(&self, resource: ResourceId, namespace: Option<&str>) -> Result<Revision, PastError>;

    /// Raises the floors of these resources, and those of all others to `others`; none is lowered, and none is raised
    /// above the watch horizon. [`Upkeep::sweep`](super::super::Upkeep::sweep) removes the rows later.
    async fn raise_floors(&self, others: Revision, own: &[(ResourceId, Revision)]) -> Result<(), PastError>;

    /// All resources that have ever been stored.
    async fn resources(&self) -> Result<Vec<(ResourceId, GroupResource)>, PastError>;

    /// The resources that have changes, and about how much history they have. Reads no values but a few.
    async fn holdings(&self) -> Result<Vec<Holding>, PastError>;

    /// The change of a resource that has `before` older ones.
    async fn nth_change(&self, resource: ResourceId, before: u64) -> Result<Option<Revision>, PastError>;

    /// The number of changes at or below the floors of their resources, which wait for the sweep.
    async fn unswept(&self) -> Result<u64, PastError>;

    /// Removes marks that are closer to each other than is kept at their age, and writers that no change can name any more.
    async fn thin(&self) -> Result<(), PastError>;

    /// Moves versions that changes up to `until` have superseded into segments, a slice of them. Returns whether there is more to
    /// do. Nothing that can be read differs afterwards.
    async fn segment(&self, _until: Revision) -> Result<bool, PastError> {
        Ok(false)
    }

    /// The live rows of `scan` as of `at`, in key order, from one snapshot, in which the floor is checked, too.
    async fn scan_past(&self, scan: Scan, at: Revision) -> Result<RowStream, PastError>;

    /// The version of a key that was live at `at`.
    async fn row_past(&self, key: &Key, at: Revision) -> Result<Option<Row>, PastError>;

    /// How many live rows `scan` has as of `at`; the scan's limit is ignored.
    async fn count_past(&self, scan: &Scan, at: Revision) -> Result<u64, PastError>;

    /// Up to `limit` versions of a key, newest first: those before a revision, down to the one that is live at the floor.
    async fn versions_of(
        &self,
        key: &Key,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Version>, PastError>;

    /// Up to `limit` changes after `after` and before `before`, newest first. Those at or below the floors of their
    /// resources are left out.
    async fn changes_between(
        &self,
        filter: &ChangeFilter,
        before: Option<Revision>,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<ChangeOfPast>, PastError>;
}
