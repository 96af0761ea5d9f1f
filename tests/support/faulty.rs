//! A store whose changefeed fails, or hides a change, or whose commits contradict what it lists.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{
    AuditQuery, AuditRemoval, AuditRow, Backend, Batch, BlockStream, Changes, Clock, Commit, Error, Outcome,
    ResourceId, RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey,
};
use tokio::sync::RwLock;

pub struct Faulty {
    pub inner: Arc<dyn Backend>,
    /// How many reads of the changefeed fail from now on.
    pub failing: AtomicU64,
    /// The number of reads of the changefeed.
    pub reads: AtomicU64,
    /// The revision of the change that is hidden.
    pub hidden: AtomicU64,
    /// The resources of each load.
    pub loads: Mutex<Vec<Vec<ResourceId>>>,
    pub reads_panic: AtomicBool,
    pub commits_panic: AtomicBool,
    /// No change of the registry is committed, as if what it is for were not as it is read.
    pub refuses_registrations: AtomicBool,
    /// Whoever holds this to write holds up all commits.
    pub commits: RwLock<()>,
    /// The number of commits that have begun.
    pub begun: AtomicU64,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            failing: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            hidden: AtomicU64::new(0),
            loads: Mutex::default(),
            reads_panic: AtomicBool::new(false),
            commits_panic: AtomicBool::new(false),
            refuses_registrations: AtomicBool::new(false),
            commits: RwLock::default(),
            begun: AtomicU64::new(0),
        })
    }
}

#[async_trait]
impl Backend for Faulty {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn pipeline_depth(&self) -> usize {
        self.inner.pipeline_depth()
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        assert!(!self.commits_panic.load(SeqCst), "a commit, on purpose");
        self.begun.fetch_add(1, SeqCst);
        let _turn = self.commits.read().await;
        if terms.registry.is_some() && self.refuses_registrations.load(SeqCst) {
            let base = self.inner.clock().await?.revision;
            return Ok(Commit {
                base,
                outcomes: vec![Outcome::Conflict { found: None }; batch.close().len()],
            });
        }
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
        self.loads.lock().expect("never poisoned").push(resources.to_vec());
        self.inner.live_revisions(resources, at).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        self.inner.rows_of(revisions).await
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
        self.reads.fetch_add(1, SeqCst);
        let mut changes = self.inner.changes(after, resource, limit).await?;
        // Fails only after the read: later commits are not in any read that succeeds.
        assert!(!self.reads_panic.load(SeqCst), "a read, on purpose");
        let failing = self.failing.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if failing.is_ok() {
            return Err(Error::Unavailable("on purpose".into()));
        }
        let hidden = self.hidden.load(SeqCst);
        changes.rows.retain(|row| row.revision.0 != hidden);
        Ok(changes)
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

    async fn broken(&self) -> Arc<str> {
        self.inner.broken().await
    }

    fn shared(&self) -> bool {
        self.inner.shared()
    }

    async fn close(&self) {
        self.inner.close().await
    }
}
