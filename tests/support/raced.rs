//! A store in which something happens between a caller's decision to write and the commit, as another server would do it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{
    Backend, Batch, Changes, Clock, Commit, Error, Mutation, ResourceId, RowStream, Scan, Stale, StaleRow,
    Swept, Terms, TokenKey,
};

/// Runs before each commit, with the store below and the mutations that are about to be judged.
pub type Race = dyn Fn(Arc<dyn Backend>, Vec<Mutation>) -> BoxFuture<'static, ()> + Send + Sync;

pub struct Raced {
    pub inner: Arc<dyn Backend>,
    pub race: Box<Race>,
}

#[async_trait]
impl Backend for Raced {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn pipeline_depth(&self) -> usize {
        self.inner.pipeline_depth()
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        (self.race)(self.inner.clone(), batch.close().to_vec()).await;
        self.inner.commit_under(batch, terms).await
    }

    async fn clock(&self) -> Result<Clock, Error> {
        self.inner.clock().await
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        self.inner.scan(scan, at).await
    }

    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error> {
        self.inner.count(scan, at).await
    }

    async fn stale_rows(
        &self,
        stale: &Stale,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error> {
        self.inner.stale_rows(stale, after, limit).await
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        self.inner.stale_count(stale).await
    }

    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        self.inner.changes(after, resource, limit).await
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        self.inner.compact(to).await
    }

    async fn oldest_change(&self) -> Result<Option<Revision>, Error> {
        self.inner.oldest_change().await
    }

    async fn sweep(&self, limit: u32) -> Result<Swept, Error> {
        self.inner.sweep(limit).await
    }

    async fn reclaim(&self) -> Result<(), Error> {
        self.inner.reclaim().await
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        self.inner.advance_clock(floor).await
    }

    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        self.inner.resource_ids(resources).await
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        self.inner.token_keys(now, max_age).await
    }

    async fn hint(&self) {
        self.inner.hint().await
    }

    fn shared(&self) -> bool {
        // Somebody else writes here.
        true
    }

    async fn close(&self) {
        self.inner.close().await
    }
}
