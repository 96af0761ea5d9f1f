//! Compaction and the repair of the clock on SQLite. All of it runs on the writing connection, in short turns.

use std::fs::File;
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row as _, Sqlite, Transaction};

use super::error::{corrupt, passes, unavailable};
use super::{checkpoint, files, reads};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{Clock, Error, ResourceId, TokenKey, token_key};

/// Pages returned in one turn: 2 MB.
const PAGES_A_TURN: i64 = 256;
/// Free pages that are kept for future writes, as a fraction of the file: one eighth.
const SLACK_SHARE: i64 = 8;

/// Begins a transaction that writes.
pub async fn begin(connection: &mut SqliteConnection) -> Result<Transaction<'_, Sqlite>, Error> {
    connection.begin_with("BEGIN IMMEDIATE").await.map_err(unavailable)
}

pub async fn compact(connection: &mut SqliteConnection, to: Revision) -> Result<Clock, Error> {
    sqlx::query("UPDATE clock SET compacted = MAX(compacted, MIN(revision, ?))")
        .bind(to.0 as i64)
        .execute(&mut *connection)
        .await
        .map_err(unavailable)?;
    reads::clock(connection).await
}

pub async fn sweep(connection: &mut SqliteConnection, limit: u32) -> Result<u64, Error> {
    let mut transaction = begin(connection).await?;
    let mut swept = 0;
    for (resource, floor) in floors(&mut transaction).await? {
        let rest = u64::from(limit).saturating_sub(swept);
        if rest == 0 {
            break;
        }
        swept += sweep_resource(&mut transaction, resource, floor, rest).await?;
    }
    transaction.commit().await.map_err(unavailable)?;
    Ok(swept)
}

/// The resources that have changes, with their floors.
async fn floors(connection: &mut SqliteConnection) -> Result<Vec<(ResourceId, Revision)>, Error> {
    let floors = sqlx::query_as(include_str!("../sql/history/floors.sql")).fetch_all(connection);
    let floors: Vec<(i32, i64)> = floors.await.map_err(unavailable)?;
    Ok(floors.into_iter().map(|(id, floor)| (ResourceId(id), Revision(floor as u64))).collect())
}

/// Removes up to `limit` changes of a resource at or below its floor, and the rows that they made dead.
async fn sweep_resource(
    connection: &mut SqliteConnection,
    resource: ResourceId,
    floor: Revision,
    limit: u64,
) -> Result<u64, Error> {
    let slice = sqlx::query(
        "SELECT COUNT(*), MAX(resource_version) FROM (SELECT resource_version FROM changes \
         WHERE resource = ? AND resource_version <= ? ORDER BY resource_version LIMIT ?)",
    )
    .bind(resource.0)
    .bind(floor.0 as i64)
    .bind(limit as i64)
    .fetch_one(&mut *connection)
    .await
    .map_err(unavailable)?;
    let count: i64 = slice.try_get(0).map_err(corrupt)?;
    let last: Option<i64> = slice.try_get(1).map_err(corrupt)?;
    let Some(last) = last else { return Ok(0) };
    let mut removal = sqlx::query(
        "DELETE FROM objects WHERE resource_version IN (SELECT previous_version FROM changes \
           WHERE resource = ? AND resource_version <= ? AND previous_version IS NOT NULL); \
         DELETE FROM objects WHERE resource_version IN (SELECT resource_version FROM changes \
           WHERE resource = ? AND resource_version <= ? AND event = 2); \
         DELETE FROM segments WHERE end_version IN (SELECT resource_version FROM changes \
           WHERE resource = ? AND resource_version <= ?); \
         DELETE FROM changes WHERE resource_version IN (SELECT resource_version FROM changes \
           WHERE resource = ? AND resource_version <= ?)",
    );
    for _ in 0..4 {
        removal = removal.bind(resource.0).bind(last);
    }
    removal.execute(connection).await.map_err(unavailable)?;
    Ok(count as u64)
}

/// Returns one turn's worth of free pages to the file system, all of them or none. Returns whether there are more.
pub async fn reclaim(connection: &mut SqliteConnection) -> Result<bool, Error> {
    let pages: i64 =
        sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await.map_err(unavailable)?;
    let free: i64 =
        sqlx::query_scalar("PRAGMA freelist_count").fetch_one(&mut *connection).await.map_err(unavailable)?;
    let excess = free - (pages / SLACK_SHARE).max(PAGES_A_TURN);
    if excess > 0 {
        // The pragma frees a page per step, so all of its rows must be read.
        sqlx::query("PRAGMA incremental_vacuum(256)").fetch_all(connection).await.map_err(unavailable)?;
    }
    Ok(excess > PAGES_A_TURN)
}

/// Makes durable what an earlier process has left in the log, and moves it into the file. Waits for readers of an older
/// state. If there is not enough space, the log stays as it is; its content is on the disk then, too.
pub async fn fold(connection: &mut SqliteConnection, log: &Arc<File>, url: &str) -> Result<(), sqlx::Error> {
    if log.metadata()?.len() == 0 {
        return Ok(());
    }
    // The lock keeps tools from writing to the log meanwhile.
    let transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let log = log.clone();
    let written = tokio::task::spawn_blocking(move || files::write_again(&log)).await;
    written.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))??;
    transaction.rollback().await?;
    loop {
        match checkpoint::fold(connection).await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                tracing::warn!(store = url, "waiting for whoever reads an older state, such as a backup")
            }
            Err(error) if passes(&error) => {
                tracing::warn!(store = url, %error, "the log cannot be folded now");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

pub async fn advance_clock(connection: &mut SqliteConnection, floor: Revision) -> Result<Clock, Error> {
    let mut transaction = begin(connection).await?;
    let moved = sqlx::query("UPDATE clock SET revision = ?1, compacted = ?1 WHERE revision < ?1")
        .bind(floor.0 as i64)
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    if moved.rows_affected() > 0 {
        // What was lost between the newest commit that survived and this revision cannot be told from what never was, so the
        // past begins here.
        sqlx::query("UPDATE floors SET revision = ?1")
            .bind(floor.0 as i64)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)?;
    reads::clock(connection).await
}

pub async fn resource_ids(
    connection: &mut SqliteConnection,
    resources: &[GroupResource],
) -> Result<Vec<ResourceId>, Error> {
    let mut transaction = begin(connection).await?;
    let mut ids = Vec::with_capacity(resources.len());
    for resource in resources {
        // The UPDATE changes nothing, but makes RETURNING answer for rows that exist already.
        let id: i32 = sqlx::query_scalar(
            "INSERT INTO resources (api_group, plural) VALUES (?, ?) \
             ON CONFLICT (api_group, plural) DO UPDATE SET plural = excluded.plural RETURNING id",
        )
        .bind(&*resource.group)
        .bind(&*resource.plural)
        .fetch_one(&mut *transaction)
        .await
        .map_err(unavailable)?;
        ids.push(ResourceId(id));
    }
    transaction.commit().await.map_err(unavailable)?;
    Ok(ids)
}

pub async fn token_keys(
    connection: &mut SqliteConnection,
    now: i64,
    max_age: i64,
) -> Result<Vec<TokenKey>, Error> {
    let mut transaction = begin(connection).await?;
    let rows: Vec<(i64, i64, Vec<u8>)> =
        sqlx::query_as("SELECT id, created_at, secret FROM token_keys ORDER BY id DESC")
            .fetch_all(&mut *transaction)
            .await
            .map_err(unavailable)?;
    let rotation = token_key::rotate(rows, 0, now, max_age);
    if let Some(key) = &rotation.added {
        sqlx::query("INSERT INTO token_keys (id, created_at, secret) VALUES (?, ?, ?)")
            .bind(key.id)
            .bind(key.created_at)
            .bind(&*key.secret)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
        sqlx::query("DELETE FROM token_keys WHERE id < ?")
            .bind(rotation.oldest())
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)?;
    Ok(rotation.keys)
}
