//! A store in which something happens between a caller's decision to write and the commit, as another server might
//! cause it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{
    AuditQuery, AuditRemoval, AuditRow, Backend, Batch, BlockStream, Changes, Clock, Commit, Error, Mutation,
    ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
};
use tokio::sync::{Notify, Semaphore};

/// Called before each commit, with the wrapped store and the mutations that are about to be judged.
pub type Race = dyn Fn(Arc<dyn Backend>, Vec<Mutation>) -> BoxFuture<'static, ()> + Send + Sync;

pub struct Raced {
    pub inner: Arc<dyn Backend>,
    pub race: Box<Race>,
    /// If set, blocks of rows need permits.
    pub blocks: Option<Arc<Blocks>>,
}

impl Raced {
    /// A store on which `race` is called before each commit.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        inner: Arc<dyn Backend>,
        race: impl Fn(Arc<dyn Backend>, Vec<Mutation>) -> F + Send + Sync + 'static,
    ) -> Arc<Self> {
        let race: Box<Race> = Box::new(move |backend, batch| Box::pin(race(backend, batch)));
        Arc::new(Self { inner, race, blocks: None })
    }
}

/// Lets blocks of rows pass, one per permit.
pub struct Blocks {
    pub permits: Semaphore,
    /// Notified when a block waits for a permit.
    pub stalled: Notify,
}

impl Blocks {
    pub fn new(permits: usize) -> Self {
        Self { permits: Semaphore::new(permits), stalled: Notify::new() }
    }

    async fn pass(&self) {
        if self.permits.available_permits() == 0 {
            self.stalled.notify_one();
        }
        self.permits.acquire().await.expect("never closed").forget();
    }
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

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        self.inner.live_revisions(resources, at).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        let blocks = self.inner.rows_of(revisions).await?;
        let Some(gate) = self.blocks.clone() else { return Ok(blocks) };
        Ok(Box::pin(blocks.then(move |block| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                block
            }
        })))
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

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        self.inner.add_audit_rows(rows).await
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        self.inner.audit_rows(query).await
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        self.inner.remove_audit_rows(removal).await
    }

    async fn size(&self) -> Result<Option<u64>, Error> {
        self.inner.size().await
    }

    async fn hint(&self) {
        self.inner.hint().await
    }

    fn shared(&self) -> bool {
        // The test writes like another server.
        true
    }

    async fn close(&self) {
        self.inner.close().await
    }
}
