//! The store with its values opened: what everybody but [`Encryption`] itself reads from.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;

use super::Encryption;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{
    Backend, BlockStream, ChangeRow, Changes, Error, Layer, ResourceId, Row, RowStream, Scan,
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
impl Layer for Opening {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

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
}
