//! Filling a new file with a part of a store's history.

use std::collections::HashMap;

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::Sqlite;
use super::error::unavailable;
use super::transfer::{refuse_used, resource_id};
use super::write_connection::HandedOver;
use crate::storage::recording::{RecordedChange, RecordedVersion, Span};
use crate::storage::transfer::Error;
use crate::storage::{self, Author, Moment, ResourceId};

/// A new file that is being filled with a part of a store's history. It is complete when it is finished.
pub struct Recorder {
    connection: SqliteConnection,
    ids: HashMap<crate::schema::names::GroupResource, ResourceId>,
    /// Kept until the file is complete, so that no server opens it before.
    handed_over: HandedOver,
}

impl Sqlite {
    /// Begins to fill this store, which must be new.
    pub async fn recorder(&self) -> Result<Recorder, Error> {
        let handed_over = self.writer.hand_over().await?;
        let mut connection = handed_over.options.connect().await.map_err(unavailable)?;
        refuse_used(&mut connection).await?;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await.map_err(unavailable)?;
        Ok(Recorder { connection, ids: HashMap::new(), handed_over })
    }
}

impl Recorder {
    /// Adds a version, in any order.
    pub async fn add(&mut self, version: RecordedVersion) -> Result<(), Error> {
        let resource = match self.ids.get(&version.resource) {
            Some(id) => *id,
            None => {
                let id = resource_id(&mut self.connection, &version.resource).await?;
                self.ids.insert(version.resource.clone(), id);
                id
            }
        };
        let is_deletion = version.value.is_empty();
        if let Some(change) = &version.change {
            self.add_change(resource, &version, change).await?;
        }
        sqlx::query(
            "INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(version.revision.0 as i64)
        .bind(resource.0)
        .bind(version.namespace)
        .bind(version.name)
        .bind(is_deletion)
        .bind(version.uid)
        .bind(version.stored_version)
        .bind(version.value)
        .execute(&mut self.connection)
        .await
        .map_err(unavailable)?;
        Ok(())
    }

    async fn add_change(
        &mut self,
        resource: ResourceId,
        version: &RecordedVersion,
        change: &RecordedChange,
    ) -> Result<(), storage::Error> {
        let author = change.writer.clone().map(Author::new);
        if let Some(author) = &author {
            let [username, impersonator, verb, subresource, manager, client] = author.writer().texts();
            sqlx::query("INSERT OR IGNORE INTO writers VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
                .bind(author.id())
                .bind(username)
                .bind(impersonator)
                .bind(verb)
                .bind(subresource)
                .bind(manager)
                .bind(client)
                .bind(change.committed_ms)
                .execute(&mut self.connection)
                .await
                .map_err(unavailable)?;
        }
        sqlx::query(
            "INSERT INTO changes \
                 (resource_version, resource, namespace, name, event, previous_version, writer, committed_ms) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(version.revision.0 as i64)
        .bind(resource.0)
        .bind(&version.namespace)
        .bind(&version.name)
        .bind(change.kind.code() as i64)
        .bind(change.previous.map(|revision| revision.0 as i64))
        .bind(author.map(|author| author.id()))
        .bind(change.committed_ms)
        .execute(&mut self.connection)
        .await
        .map_err(unavailable)?;
        // The last revision of each second.
        self.mark(Moment { revision: version.revision, committed_ms: change.committed_ms }).await
    }

    async fn mark(&mut self, moment: Moment) -> Result<(), storage::Error> {
        let second = moment.committed_ms - moment.committed_ms.rem_euclid(1000);
        sqlx::query("DELETE FROM marks WHERE at_ms BETWEEN ?1 AND ?1 + 999 OR revision = ?2")
            .bind(second)
            .bind(moment.revision.0 as i64)
            .execute(&mut self.connection)
            .await
            .map_err(unavailable)?;
        sqlx::query("INSERT INTO marks (at_ms, revision) VALUES (?, ?)")
            .bind(moment.committed_ms)
            .bind(moment.revision.0 as i64)
            .execute(&mut self.connection)
            .await
            .map_err(unavailable)?;
        Ok(())
    }

    /// Makes the file the store of the span whose versions have been added.
    pub async fn finish(mut self, span: Span) -> Result<(), Error> {
        sqlx::query("DELETE FROM marks WHERE revision < ?")
            .bind(span.from.revision.0 as i64)
            .execute(&mut self.connection)
            .await
            .map_err(unavailable)?;
        for moment in [span.from, span.until] {
            let has_mark =
                sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM marks WHERE at_ms / 1000 = ? / 1000)")
                    .bind(moment.committed_ms);
            let has_mark: bool = has_mark.fetch_one(&mut self.connection).await.map_err(unavailable)?;
            if !has_mark {
                self.mark(moment).await?;
            }
        }
        sqlx::query(
            "UPDATE clock SET revision = ?1, compacted = ?2, committed_ms = ?3; \
             DELETE FROM floors; INSERT INTO floors (resource, revision) VALUES (0, ?2)",
        )
        .bind(span.until.revision.0 as i64)
        .bind(span.from.revision.0 as i64)
        .bind(span.until.committed_ms)
        .execute(&mut self.connection)
        .await
        .map_err(unavailable)?;
        sqlx::query("COMMIT").execute(&mut self.connection).await.map_err(unavailable)?;
        sqlx::query("PRAGMA journal_mode = DELETE")
            .execute(&mut self.connection)
            .await
            .map_err(unavailable)?;
        self.connection.close().await.map_err(unavailable)?;
        drop(self.handed_over);
        Ok(())
    }
}
