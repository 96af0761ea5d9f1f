//! The store with its values opened: what everybody but [`Encryption`] itself reads from.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::Encryption;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{
    AuditQuery, AuditRemoval, AuditRow, Backend, Batch, BlockStream, ChangeRow, Changes, Clock, Commit,
    Error, HighWaterMark, OpenError, ResourceId, Row, RowStream, Scan, Stale, StaleRow, Swept, Terms,
    TokenKey,
};

/// Values are opened where rows are read; all else is the store's own. Values come sealed to the commit.
pub struct Opening {
    pub inner: Arc<dyn Backend>,
    pub encryption: Encryption,
}

impl Opening {
    async fn open_change(&self, row: ChangeRow) -> ChangeRow {
        let ChangeRow { revision, key, kind, value, previous } = row;
        let open = |value: Bytes| self.encryption.open(key.resource, &key.namespace, &key.name, value);
        let value = match value {
            Some(value) => Some(open(value).await),
            None => None,
        };
        let previous = match previous {
            Some((revision, value)) => Some((revision, open(value).await)),
            None => None,
        };
        ChangeRow { revision, key, kind, value, previous }
    }
}

async fn open_row(encryption: &Encryption, mut row: Row) -> Row {
    let value = std::mem::take(&mut row.value);
    row.value = encryption.open(row.resource, &row.namespace, &row.name, value).await;
    row
}

#[async_trait]
impl Backend for Opening {
    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        let (rows, encryption) = (self.inner.scan(scan, at).await?, self.encryption.clone());
        Ok(Box::pin(rows.then(move |row| {
            let encryption = encryption.clone();
            async move { Ok(open_row(&encryption, row?).await) }
        })))
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        let (blocks, encryption) = (self.inner.rows_of(revisions).await?, self.encryption.clone());
        Ok(Box::pin(blocks.then(move |block| {
            let encryption = encryption.clone();
            async move {
                let mut rows = Vec::new();
                for row in block? {
                    rows.push(open_row(&encryption, row).await);
                }
                Ok(rows)
            }
        })))
    }

    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        let found = self.inner.changes(after, resource, limit).await?;
        let mut rows = Vec::with_capacity(found.rows.len());
        for row in found.rows {
            rows.push(self.open_change(row).await);
        }
        Ok(Changes { rows, through: found.through })
    }

    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        let ids = self.inner.resource_ids(resources).await?;
        self.encryption.note(resources, &ids);
        Ok(ids)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn pipeline_depth(&self) -> usize {
        self.inner.pipeline_depth()
    }

    async fn hold_to(&self, mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        self.inner.hold_to(mark).await
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        self.inner.commit_under(batch, terms).await
    }

    async fn clock(&self) -> Result<Clock, Error> {
        self.inner.clock().await
    }

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        self.inner.live_revisions(resources, at).await
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
