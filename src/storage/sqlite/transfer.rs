//! Moving a whole store out of SQLite, beside a server that may be running, and into it.

use std::path::Path;

use futures_util::{StreamExt, TryStreamExt};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::mpsc;

use super::error::unavailable;
use super::{BUSY_TIMEOUT, MIGRATIONS, Sqlite, files, reads};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::inventory::{self, Inventory};
use crate::storage::stale::PROTOBUF;
use crate::storage::stream::{ROWS_AHEAD, stream};
use crate::storage::transfer::{
    COUNTS, Counts, Error, Export, LIVE_OBJECTS, RECORDS_AT_ONCE, Record, StoredObject, TOKEN_KEYS,
    clock_after, compare,
};
use crate::storage::{self, OpenError, ResourceId, TokenKey, migrations, transfer};

impl Sqlite {
    /// The newest state of the store in this file, from one snapshot. Takes no lock: a server goes on writing.
    pub async fn export(path: &Path) -> Result<Export, Error> {
        let Snapshot { mut connection, revision, .. } = snapshot(path).await?;
        let (sender, receiver) = mpsc::channel(ROWS_AHEAD);
        let records = stream(receiver, async move { send(&mut connection, &sender).await });
        Ok(Export { revision, records })
    }

    /// What is in the store, from one snapshot. Takes no lock either.
    pub async fn inventory(path: &Path) -> Result<Inventory, Error> {
        let Snapshot { mut connection, revision, schema } = snapshot(path).await?;
        let stored = sqlx::query_as(include_str!("../sql/stored_versions.sql")).bind(PROTOBUF);
        let stored = stored.fetch_all(&mut connection).await.map_err(unavailable)?;
        let registered = match schema >= inventory::REGISTRY {
            true => sqlx::query_as(include_str!("../sql/registered_versions.sql"))
                .fetch_all(&mut connection)
                .await
                .map_err(unavailable)?,
            false => Vec::new(),
        };
        Ok(Inventory::new(revision, stored, registered))
    }

    /// Fills this store, which has to be new. All of it is one transaction.
    pub async fn import(&self, export: Export) -> Result<Counts, Error> {
        let mut turn = self.desk.turn().await?;
        let counts = import(&mut turn.connection, export).await?;
        let revision = reads::clock(&mut turn.connection).await?.revision;
        turn.finish(Some(revision)).await?.flush().await?;
        Ok(counts)
    }
}

/// A connection that holds a snapshot of a store that is only read.
struct Snapshot {
    connection: SqliteConnection,
    revision: Revision,
    /// The newest migration of its schema.
    schema: i64,
}

async fn snapshot(path: &Path) -> Result<Snapshot, Error> {
    let url = format!("sqlite:{}", path.display());
    let unreachable = |source| OpenError::Unreachable { url: url.clone(), source };
    files::refuse_links(path).map_err(|error| error.of(&url))?;
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let options = options.disable_statement_logging();
    let mut connection = options.connect().await.map_err(unreachable)?;
    let newest = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations");
    let schema: i64 = newest.fetch_one(&mut connection).await.map_err(unreachable)?;
    migrations::refuse_newer(&MIGRATIONS, schema)?;
    sqlx::query("BEGIN").execute(&mut connection).await.map_err(unavailable)?;
    let revision = reads::clock(&mut connection).await?.revision;
    Ok(Snapshot { connection, revision, schema })
}

/// Sends everything in the snapshot that the connection holds, until nobody listens.
async fn send(connection: &mut SqliteConnection, records: &mpsc::Sender<Result<Record, Error>>) {
    let keys = sqlx::query_as(TOKEN_KEYS).fetch_all(&mut *connection).await.map_err(unavailable);
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => return drop(records.send(Err(error.into())).await),
    };
    let objects = sqlx::query_as(LIVE_OBJECTS).fetch(connection).map_err(unavailable);
    transfer::send(keys, objects, records).await;
}

async fn import(connection: &mut SqliteConnection, export: Export) -> Result<Counts, Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(unavailable)?;
    let (used, clock): (bool, i64) = sqlx::query_as(
        "SELECT revision > 1 OR EXISTS (SELECT 1 FROM objects) OR EXISTS (SELECT 1 FROM changes), revision FROM clock",
    )
    .fetch_one(&mut *transaction)
    .await
    .map_err(unavailable)?;
    if used {
        return Err(Error::NotEmpty(Revision(clock as u64)));
    }
    sqlx::query("DELETE FROM token_keys").execute(&mut *transaction).await.map_err(unavailable)?;
    let mut read = Counts::new();
    let mut records = export.records.chunks(RECORDS_AT_ONCE);
    while let Some(chunk) = records.next().await {
        for record in chunk {
            match record? {
                Record::TokenKey(key) => insert_key(&mut transaction, key).await?,
                Record::Object(object) => {
                    *read.entry(object.resource.clone()).or_default() += 1;
                    insert_object(&mut transaction, object).await?;
                }
            }
        }
    }
    let clock = clock_after(export.revision).0 as i64;
    sqlx::query("UPDATE clock SET revision = ?, compacted = ?")
        .bind(clock)
        .bind(clock)
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let written = sqlx::query_as(COUNTS).fetch_all(&mut *transaction).await.map_err(unavailable)?;
    compare(&read, written)?;
    transaction.commit().await.map_err(unavailable)?;
    Ok(read)
}

async fn insert_key(connection: &mut SqliteConnection, key: TokenKey) -> Result<(), storage::Error> {
    sqlx::query("INSERT INTO token_keys (id, created_at, secret) VALUES (?, ?, ?)")
        .bind(key.id)
        .bind(key.created_at)
        .bind(key.secret)
        .execute(connection)
        .await
        .map(drop)
        .map_err(unavailable)
}

async fn insert_object(
    connection: &mut SqliteConnection,
    object: StoredObject,
) -> Result<(), storage::Error> {
    let id = resource_id(connection, &object.resource).await?;
    sqlx::query(
        "INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
         VALUES (?, ?, ?, ?, 0, ?, ?, ?)",
    )
    .bind(object.revision.0 as i64)
    .bind(id.0)
    .bind(object.namespace)
    .bind(object.name)
    .bind(object.uid)
    .bind(object.stored_version)
    .bind(object.value)
    .execute(connection)
    .await
    .map(drop)
    .map_err(unavailable)
}

async fn resource_id(
    connection: &mut SqliteConnection,
    resource: &GroupResource,
) -> Result<ResourceId, storage::Error> {
    let id: i32 = sqlx::query_scalar(
        "INSERT INTO resources (api_group, plural) VALUES (?, ?) \
         ON CONFLICT (api_group, plural) DO UPDATE SET plural = excluded.plural RETURNING id",
    )
    .bind(&*resource.group)
    .bind(&*resource.plural)
    .fetch_one(connection)
    .await
    .map_err(unavailable)?;
    Ok(ResourceId(id))
}
