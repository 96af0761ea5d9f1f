//! The contract of a database, in six traits. A [`Backend`] has all of them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    AuditQuery, AuditRemoval, AuditRow, Batch, BlockStream, Changes, Clock, Commit, Error, HighWaterMark,
    History, Mutation, OpenError, ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
    Units,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// The contract of a database. Calls may be cancelled at any await, except [`Commits::commit_under`], which must be driven
/// to its end (the writer does that).
pub trait Backend: Commits + Reads + History + Feed + Upkeep + Registry {}

impl<T: Commits + Reads + History + Feed + Upkeep + Registry> Backend for T {}

/// Commits of batches, the only way in which objects change.
#[async_trait]
pub trait Commits: Send + Sync + 'static {
    /// Seals the batch when its turn comes, judges its units in order inside a transaction that holds the clock's lock,
    /// and writes those that pass under `terms`. They are durable on return. If the batch has not been sealed on return,
    /// none of its units was looked at.
    ///
    /// A clock below the floor means that the database has lost commits: [`Error::Regressed`]. If the server's fence is
    /// lost, the mutations that the fence does not exempt fail, and a change of the registry fails together with the
    /// whole batch: [`Error::Fenced`]. If the connection breaks before the batch is answered, this call finds out whether
    /// it was committed before it returns.
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error>;

    /// Commits mutations, each a unit of its own, that need no registration.
    async fn commit(&self, batch: &[Mutation], floor: Revision) -> Result<Commit, Error> {
        let terms = Terms { floor, ..Terms::default() };
        self.commit_under(&mut Units::from(batch.to_vec()), terms).await
    }

    /// How many batches may be committed at the same time.
    fn pipeline_depth(&self) -> usize;
}

/// Reads of states.
#[async_trait]
pub trait Reads: Send + Sync + 'static {
    /// The clock, newer than every commit answered by any replica before the call.
    async fn clock(&self) -> Result<Clock, Error>;

    /// The bytes that the database takes, without its write-ahead log; of a fork in memory those of its values; `None` for
    /// any other store in memory.
    async fn size(&self) -> Result<Option<u64>, Error>;

    /// The live rows of `scan` as of `at`, in key order, from one snapshot.
    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error>;

    /// For each resource, the revisions of its live rows as of `at`, in key order. All come from one snapshot.
    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error>;

    /// The rows with these revisions. A revision's row never changes, so no snapshot is needed. Rows that have been
    /// swept meanwhile are left out.
    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error>;

    /// How many changes up to `at` take no revision in etcd's terms; see [`Counting`](super::Counting). `at` may be every
    /// revision from the watch horizon on.
    async fn lag_at(&self, at: Revision) -> Result<i64, Error>;

    /// The last revision at which `revision` is the newest one in etcd's terms, and at which no unit is cut in two. Fails
    /// below the watch horizon, and above the clock, with revisions in etcd's terms.
    async fn sequence_of(&self, revision: i64) -> Result<Revision, Error>;

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
}

/// The changefeed: all writes of all servers, in revision order.
#[async_trait]
pub trait Feed: Send + Sync + 'static {
    /// Up to `limit` changes after `after`, which must be a revision that was committed once; more than `limit`, or less,
    /// where it would separate changes that [share](super::Counting::Shared) a revision. For one resource, the rows carry the values that the changes replaced; for all resources (`None`) they do not.
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error>;

    /// Returns when another server may have committed something. It is only a hint: it may come late, or although
    /// nothing was committed.
    async fn hint(&self);

    /// Whether other servers can commit to the same database.
    fn shared(&self) -> bool;
}

/// Maintenance of the database, and its life cycle.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// `sqlite`, `postgres` or `memory`, for logs and metrics.
    fn name(&self) -> &'static str;

    /// From now on, compares the database with what the mark remembers of it, and refuses a different database.
    async fn hold_to(&self, _mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        Ok(())
    }

    /// Raises `compacted`, the watch horizon, to `to`, but never lowers it and never raises it beyond the clock. No row goes
    /// by that: see [`History::raise_floors`].
    async fn compact(&self, to: Revision) -> Result<Clock, Error>;

    /// The revision of the oldest change that has not been swept, whether it is kept or not.
    async fn oldest_change(&self) -> Result<Option<Revision>, Error>;

    /// Removes up to `limit` changes at or below the floors of their resources, and the rows that they made dead. Does not wait for the
    /// disk: if a crash brings rows back, they are swept again.
    async fn sweep(&self, limit: u32) -> Result<Swept, Error>;

    /// Returns free disk space to the file system and bounds the write-ahead log, as far as the database does not do
    /// that by itself. Each call does its work completely or not at all.
    async fn reclaim(&self) -> Result<(), Error>;

    /// Raises the clock to at least `floor`, and the watch horizon with it. The floors stay, since what has survived is still
    /// true. Called when a database has come back
    /// without commits that it had acknowledged.
    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error>;

    /// Returns once the contents of the database cannot be relied on any more, with the reason. The server must end
    /// then.
    async fn broken(&self) -> Arc<str> {
        std::future::pending().await
    }

    /// Closes all connections.
    async fn close(&self);
}

/// Small tables that servers keep beside objects: numbers of resources, keys of continue tokens, audit events.
#[async_trait]
pub trait Registry: Send + Sync + 'static {
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
}
