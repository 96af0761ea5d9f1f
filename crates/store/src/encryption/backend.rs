//! The store with its values opened: what everybody but [`Encryption`] itself reads from.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::Encryption;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{
    Backend, BlockStream, ChangeRow, Changes, Error, Key, Layer, PastError, ResourceId, Row, RowStream, Scan,
    Version,
};

/// Values are opened where rows are read; all else is the store's own. Values come sealed to the commit.
pub struct Opening {
    pub inner: Arc<dyn Backend>,
    pub encryption: Encryption,
}

impl Opening {
    fn opened(&self, rows: RowStream) -> RowStream {
        let encryption = self.encryption.clone();
        Box::pin(rows.then(move |row| {
            let encryption = encryption.clone();
            async move { Ok(open_row(&encryption, row?).await) }
        }))
    }

    async fn open_change(&self, row: ChangeRow) -> ChangeRow {
        let ChangeRow { revision, key, kind, value, previous, counting } = row;
        let open = |value: Bytes| self.encryption.open(key.resource, &key.namespace, &key.name, value);
        let value = match value {
            Some(value) => Some(open(value).await),
            None => None,
        };
        let previous = match previous {
            Some((revision, value)) => Some((revision, open(value).await)),
            None => None,
        };
        ChangeRow { revision, key, kind, value, previous, counting }
    }
}

async fn open_row(encryption: &Encryption, mut row: Row) -> Row {
    let value = std::mem::take(&mut row.value);
    row.value = encryption.open(row.resource, &row.namespace, &row.name, value).await;
    row
}

#[async_trait]
impl Layer for Opening {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        Ok(self.opened(self.inner.scan(scan, at).await?))
    }

    async fn scan_past(&self, scan: Scan, at: Revision) -> Result<RowStream, PastError> {
        Ok(self.opened(self.inner.scan_past(scan, at).await?))
    }

    async fn row_past(&self, key: &Key, at: Revision) -> Result<Option<Row>, PastError> {
        match self.inner.row_past(key, at).await? {
            Some(row) => Ok(Some(open_row(&self.encryption, row).await)),
            None => Ok(None),
        }
    }

    async fn versions_of(
        &self,
        key: &Key,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Version>, PastError> {
        let mut versions = self.inner.versions_of(key, before, limit).await?;
        for version in versions.iter_mut().filter(|version| !version.deleted) {
            version.row = open_row(&self.encryption, version.row.clone()).await;
        }
        Ok(versions)
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
        let mut found = self.inner.changes(after, resource, limit).await?;
        let mut rows = Vec::with_capacity(found.rows.len());
        for row in std::mem::take(&mut found.rows) {
            rows.push(self.open_change(row).await);
        }
        Ok(Changes { rows, ..found })
    }

    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        let ids = self.inner.resource_ids(resources).await?;
        self.encryption.note(resources, &ids);
        Ok(ids)
    }
}
