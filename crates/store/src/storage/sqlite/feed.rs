//! The changefeed on SQLite, whose only writer is this process.

use async_trait::async_trait;

use super::{Sqlite, reads};
use crate::revision::Revision;
use crate::storage::{Changes, Error, Feed, ResourceId};

#[async_trait]
impl Feed for Sqlite {
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        reads::changes(&self.readers, self.writer.durable(), after, resource, limit).await
    }

    /// Never returns: no other server commits to this file.
    async fn hint(&self) {
        std::future::pending().await
    }

    fn shared(&self) -> bool {
        false
    }
}
