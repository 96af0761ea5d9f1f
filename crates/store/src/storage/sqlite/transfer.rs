//! Copying a whole store out of SQLite while a server may be running, and filling a new store.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::sync::mpsc;

use super::error::unavailable;
use super::write_connection::HandedOver;
use super::{BUSY_TIMEOUT, MIGRATIONS, Sqlite, files};
use crate::codec::sealed::ENCRYPTED;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::inventory::{self, Extent, Inventory, LongObject};
use crate::storage::shared::snapshot_reads;
use crate::storage::stale::PROTOBUF;
use crate::storage::stream::stream;
use crate::storage::transfer::{
    Arrivals, COUNTS, Counts, Error, Export, Length, Meter, ObjectRow, Received, Record, Step, StoredObject,
    compare,
};
use crate::storage::{self, AuditQuery, OpenError, ResourceId, TokenKey, migrations, transfer};

/// The page cache, in KiB (negative in SQLite's terms), of the connection that fills a store: for pages that were
/// written and for sorting keys.
const IMPORT_CACHE: &str = "-65536";
/// Objects inserted by one statement.
const ROWS_AT_ONCE: usize = 100;

/// The migration from which on the clock has a lag.
const COUNTING: i64 = 10;

snapshot_reads!(Sqlite, Path, SqliteConnection, storage::audit::OTHERS_ON_SQLITE, 11);

impl Sqlite {
    /// Fills this store, which must be new, in one transaction, and closes it.
    ///
    /// It does so without a write-ahead log: the rollback journal of a file that was almost empty stays small, and each
    /// page is written once instead of twice. SQLite syncs the file before it removes the journal.
    pub async fn import(&self, export: Export, meter: &Meter) -> Result<Counts, Error> {
        let HandedOver { options, files } = self.writer.hand_over().await?;
        let options = options.journal_mode(SqliteJournalMode::Delete).synchronous(SqliteSynchronous::Extra);
        let options = options.pragma("cache_size", IMPORT_CACHE);
        let mut connection = options.connect().await.map_err(unavailable)?;
        let imported = import(&mut connection, export, meter).await;
        // Servers leave a database in WAL mode. A file that is still empty is left as a server expects a new one.
        let log = sqlx::query("PRAGMA journal_mode = WAL").execute(&mut connection).await;
        let closed = connection.close().await;
        drop(files);
        let counts = imported?;
        log.map_err(unavailable)?;
        closed.map_err(unavailable)?;
        Ok(counts)
    }
}

/// The size of the database in bytes. A file has no clock.
async fn extent(connection: &mut SqliteConnection) -> Result<Extent, Error> {
    let pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    let bytes: i64 = sqlx::query_scalar(pages).fetch_one(connection).await.map_err(unavailable)?;
    Ok(Extent { bytes: bytes.unsigned_abs(), clock: None })
}

async fn snapshot(path: &Path) -> Result<Snapshot, Error> {
    let url = format!("sqlite:{}", path.display());
    let unreachable =
        |source: sqlx::Error| OpenError::Unreachable { url: url.clone(), source: source.into() };
    files::refuse_links(path).map_err(|error| error.of(&url))?;
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let options = options.disable_statement_logging();
    let mut connection = options.connect().await.map_err(unreachable)?;
    let newest = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations");
    let schema: i64 = newest.fetch_one(&mut connection).await.map_err(unreachable)?;
    migrations::refuse_newer(&MIGRATIONS, schema)?;
    sqlx::query("BEGIN").execute(&mut connection).await.map_err(unavailable)?;
    // The release before counts no lag.
    let clock = match schema >= COUNTING {
        true => sqlx::query_as("SELECT revision, lag FROM clock"),
        false => sqlx::query_as("SELECT revision, CAST(0 AS bigint) FROM clock"),
    };
    let (revision, lag): (i64, i64) = clock.fetch_one(&mut connection).await.map_err(unavailable)?;
    Ok(Snapshot { connection, revision: Revision(revision as u64), lag, schema })
}

async fn import(connection: &mut SqliteConnection, export: Export, meter: &Meter) -> Result<Counts, Error> {
    let mut received = Received::nothing_of(&export);
    let Export { length, mut batches, .. } = export;
    meter.expect(length);
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(unavailable)?;
    refuse_used(&mut transaction).await?;
    sqlx::query("DELETE FROM token_keys").execute(&mut *transaction).await.map_err(unavailable)?;
    let indexes = drop_indexes(&mut transaction).await?;
    let mut ids = HashMap::new();
    while let Some(batch) = batches.next().await {
        let Arrivals { keys, objects, removed } = Arrivals::of(batch?, &mut received, meter);
        for key in keys {
            insert_key(&mut transaction, key).await?;
        }
        insert_objects(&mut transaction, objects, &mut ids).await?;
        for revision in removed {
            let delete =
                sqlx::query("DELETE FROM objects WHERE resource_version = ?").bind(revision.0 as i64);
            delete.execute(&mut *transaction).await.map_err(unavailable)?;
        }
    }
    meter.step(Step::Indexing);
    for index in indexes {
        sqlx::query(AssertSqlSafe(index)).execute(&mut *transaction).await.map_err(unavailable)?;
    }
    // No history comes with the objects.
    sqlx::query(
        "UPDATE clock SET revision = ?1, compacted = ?1, lag = ?2, committed_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER); \
         DELETE FROM marks; INSERT INTO marks (at_ms, revision) SELECT committed_ms, revision FROM clock; \
         DELETE FROM floors; INSERT INTO floors (resource, revision) SELECT 0, compacted FROM clock",
    )
    .bind(received.clock().0 as i64)
    .bind(received.lag)
    .execute(&mut *transaction)
    .await
    .map_err(unavailable)?;
    let written = sqlx::query_as(COUNTS).fetch_all(&mut *transaction).await.map_err(unavailable)?;
    compare(&received.counts, written)?;
    meter.step(Step::Syncing);
    transaction.commit().await.map_err(unavailable)?;
    Ok(received.counts)
}

pub(super) async fn refuse_used(connection: &mut SqliteConnection) -> Result<(), Error> {
    let (used, clock): (bool, i64) = sqlx::query_as(
        "SELECT revision > 1 OR EXISTS (SELECT 1 FROM objects) OR EXISTS (SELECT 1 FROM changes), revision FROM clock",
    )
    .fetch_one(connection)
    .await
    .map_err(unavailable)?;
    if used { Err(Error::NotEmpty(Revision(clock as u64))) } else { Ok(()) }
}

/// Drops the indexes of `objects`, and returns the statements that create them again: sorting all keys at the end takes
/// a fraction of the time of inserting each in its place.
async fn drop_indexes(connection: &mut SqliteConnection) -> Result<Vec<String>, storage::Error> {
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'objects' AND sql IS NOT NULL",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(unavailable)?;
    for (name, _) in &indexes {
        let dropped = sqlx::query(AssertSqlSafe(format!("DROP INDEX \"{name}\"")));
        dropped.execute(&mut *connection).await.map_err(unavailable)?;
    }
    Ok(indexes.into_iter().map(|(_, sql)| sql).collect())
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

/// Inserts objects. `ids` caches the ids of the resources that have occurred so far.
async fn insert_objects(
    connection: &mut SqliteConnection,
    objects: Vec<StoredObject>,
    ids: &mut HashMap<GroupResource, ResourceId>,
) -> Result<(), storage::Error> {
    for object in &objects {
        if !ids.contains_key(&object.resource) {
            let id = resource_id(connection, &object.resource).await?;
            ids.insert(object.resource.clone(), id);
        }
    }
    let mut objects = objects.into_iter().peekable();
    while objects.peek().is_some() {
        let rows: Vec<_> = objects.by_ref().take(ROWS_AT_ONCE).collect();
        insert_rows(connection, rows, ids).await?;
    }
    Ok(())
}

async fn insert_rows(
    connection: &mut SqliteConnection,
    rows: Vec<StoredObject>,
    ids: &HashMap<GroupResource, ResourceId>,
) -> Result<(), storage::Error> {
    let values = vec!["(?, ?, ?, ?, 0, ?, ?, ?)"; rows.len()].join(", ");
    let sql = format!(
        "INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
         VALUES {values}"
    );
    let mut insert = sqlx::query(AssertSqlSafe(sql));
    for row in rows {
        insert = insert
            .bind(row.revision.0 as i64)
            .bind(ids.get(&row.resource).map(|id| id.0))
            .bind(row.namespace)
            .bind(row.name)
            .bind(row.uid)
            .bind(row.stored_version)
            .bind(row.value);
    }
    insert.execute(connection).await.map(drop).map_err(unavailable)
}

pub(super) async fn resource_id(
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
