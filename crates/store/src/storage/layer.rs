//! Layers: stores in front of another one, which change some of its answers.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::contract::{Backend, Commits, Feed, Reads, Registry, Upkeep};
use super::history::History;
use super::{
    AuditQuery, AuditRemoval, AuditRow, Batch, BlockStream, ChangeFilter, ChangeOfPast, Changes, Clock,
    Commit, Error, HighWaterMark, Holding, Key, Moment, OpenError, PastError, Precision, Present, ResourceId,
    Row, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey, Version,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// Declares [`Layer`] with a method for each one of the contract, which calls the inner store unless a layer says otherwise,
/// and makes every layer a [`Backend`].
macro_rules! layers {
    ($($part:ident {
        $(fn $plain:ident() -> $value:ty;)*
        $(async fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*
    })*) => {
        /// A store in front of another one. It implements only the methods of the contract that it changes.
        #[async_trait]
        pub trait Layer: Send + Sync + 'static {
            /// The store behind this one.
            fn inner(&self) -> &dyn Backend;

            $(
                $(fn $plain(&self) -> $value {
                    self.inner().$plain()
                })*
                $(async fn $name(&self, $($argument: $type),*) $(-> $answer)? {
                    self.inner().$name($($argument),*).await
                })*
            )*
        }

        $(
            #[async_trait]
            impl<L: Layer> $part for L {
                $(fn $plain(&self) -> $value {
                    Layer::$plain(self)
                })*
                $(async fn $name(&self, $($argument: $type),*) $(-> $answer)? {
                    Layer::$name(self, $($argument),*).await
                })*
            }
        )*
    };
}

layers! {
    Commits {
        fn pipeline_depth() -> usize;
        async fn commit_under(batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error>;
    }
    Reads {
        async fn clock() -> Result<Clock, Error>;
        async fn size() -> Result<Option<u64>, Error>;
        async fn scan(scan: Scan, at: Revision) -> Result<RowStream, Error>;
        async fn live_revisions(resources: &[ResourceId], at: Revision) -> Result<Vec<Vec<Revision>>, Error>;
        async fn rows_of(revisions: Vec<Revision>) -> Result<BlockStream, Error>;
        async fn lag_at(at: Revision) -> Result<i64, Error>;
        async fn sequence_of(revision: i64) -> Result<Revision, Error>;
        async fn count(scan: &Scan, at: Revision) -> Result<u64, Error>;
        async fn stale_rows(stale: &Stale, after: (&str, &str), limit: u32) -> Result<Vec<StaleRow>, Error>;
        async fn stale_count(stale: &Stale) -> Result<u64, Error>;
    }
    History {
        async fn present() -> Result<Present, PastError>;
        async fn raise_floors(others: Revision, own: &[(ResourceId, Revision)]) -> Result<(), PastError>;
        async fn resources() -> Result<Vec<(ResourceId, GroupResource)>, PastError>;
        async fn holdings() -> Result<Vec<Holding>, PastError>;
        async fn nth_change(resource: ResourceId, before: u64) -> Result<Option<Revision>, PastError>;
        async fn unswept() -> Result<u64, PastError>;
        async fn thin() -> Result<(), PastError>;
        async fn moment_at(ms: i64) -> Result<Moment, PastError>;
        async fn moment_of(revision: Revision) -> Result<(Moment, Precision), PastError>;
        async fn floor(resource: ResourceId, namespace: Option<&str>) -> Result<Revision, PastError>;
        async fn scan_past(scan: Scan, at: Revision) -> Result<RowStream, PastError>;
        async fn row_past(key: &Key, at: Revision) -> Result<Option<Row>, PastError>;
        async fn count_past(scan: &Scan, at: Revision) -> Result<u64, PastError>;
        async fn versions_of(key: &Key, before: Option<Revision>, limit: u32) -> Result<Vec<Version>, PastError>;
        async fn changes_between(
            filter: &ChangeFilter,
            before: Option<Revision>,
            after: Revision,
            limit: u32
        ) -> Result<Vec<ChangeOfPast>, PastError>;
    }
    Feed {
        fn shared() -> bool;
        async fn changes(after: Revision, resource: Option<ResourceId>, limit: u32) -> Result<Changes, Error>;
        async fn hint();
    }
    Upkeep {
        fn name() -> &'static str;
        async fn hold_to(mark: &Arc<HighWaterMark>) -> Result<(), OpenError>;
        async fn compact(to: Revision) -> Result<Clock, Error>;
        async fn oldest_change() -> Result<Option<Revision>, Error>;
        async fn sweep(limit: u32) -> Result<Swept, Error>;
        async fn reclaim() -> Result<(), Error>;
        async fn advance_clock(floor: Revision) -> Result<Clock, Error>;
        async fn broken() -> Arc<str>;
        async fn close();
    }
    Registry {
        async fn resource_ids(resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error>;
        async fn token_keys(now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error>;
        async fn add_audit_rows(rows: Vec<AuditRow>) -> Result<(), Error>;
        async fn audit_rows(query: &AuditQuery) -> Result<Vec<Bytes>, Error>;
        async fn remove_audit_rows(removal: AuditRemoval) -> Result<u64, Error>;
    }
}
