//! Reads on SQLite. Each opens a read transaction, checks the clock in it, and reads from that one snapshot. Commits in
//! the snapshot that are not `durable` yet are ignored.

use std::borrow::Cow;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, Sqlite, Transaction};
use tokio::sync::mpsc;

use super::error::{corrupt, unavailable};
use crate::revision::Revision;
use crate::storage::shared::shared_queries;
use crate::storage::stream::{Blocks, Offered, ROWS_AHEAD, give_up, offer, stream};
use crate::storage::{
    BlockStream, ChangeKind, ChangeRow, Changes, Clock, Counting, Error, Key, ResourceId, Row, RowStream,
    Scan, Stale, StaleRow,
};

/// How many revisions one statement asks for: as many rows as sqlx fetches ahead of its reader. With more, sqlx's
/// thread and the reader would alternate, and each row would cost two thread switches.
const REVISIONS_AT_ONCE: usize = 50;

/// The bytes of the database's pages.
pub async fn size(pool: &SqlitePool) -> Result<u64, Error> {
    let size = sqlx::query_scalar("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    let size: i64 = size.fetch_one(pool).await.map_err(unavailable)?;
    Ok(size.unsigned_abs())
}

pub async fn oldest_change(pool: &SqlitePool) -> Result<Option<Revision>, Error> {
    let oldest: Option<i64> = sqlx::query_scalar("SELECT MIN(resource_version) FROM changes")
        .fetch_one(pool)
        .await
        .map_err(unavailable)?;
    Ok(oldest.map(|revision| Revision(revision as u64)))
}

pub async fn scan(
    pool: &SqlitePool,
    durable: Revision,
    scan: Scan,
    at: Revision,
) -> Result<RowStream, Error> {
    Ok(rows_at(snapshot(pool, durable, at).await?, scan, at))
}

/// The live rows of `scan` as of `at`, at or after the watch horizon, which can be read in this transaction.
fn rows_at(transaction: Transaction<'static, Sqlite>, scan: Scan, at: Revision) -> RowStream {
    let sql = match scan.namespace {
        None => include_str!("../sql/sqlite/list_at_revision.sql"),
        Some(_) => include_str!("../sql/sqlite/list_namespace_at_revision.sql"),
    };
    rows(transaction, sql.into(), scan, at, |row, resource, _| live_row(row, resource))
}

/// The rows of a statement that binds resource, revision, namespace, name and limit.
pub fn rows(
    mut transaction: Transaction<'static, Sqlite>,
    sql: Cow<'static, str>,
    scan: Scan,
    at: Revision,
    read: fn(SqliteRow, ResourceId, Revision) -> Result<Row, Error>,
) -> RowStream {
    let (sender, receiver) = mpsc::channel(ROWS_AHEAD);
    stream(receiver, async move {
        let (namespace, name) = scan.start();
        let limit = scan.limit.map_or(-1, i64::from);
        let mut rows = sqlx::query(AssertSqlSafe(sql))
            .bind(scan.resource.0)
            .bind(at.0 as i64)
            .bind(namespace)
            .bind(name)
            .bind(limit)
            .fetch(&mut *transaction);
        loop {
            let Some(row) = rows.next().await else { return };
            let row = row.map_err(unavailable).and_then(|row| read(row, scan.resource, at));
            let failed = row.is_err();
            match offer(&sender, row).await {
                Offered::Taken if !failed => {}
                Offered::Taken | Offered::Gone => return,
                Offered::Stalled => break,
            }
        }
        drop(rows);
        drop(transaction);
        give_up(&sender).await;
    })
}

pub async fn live_revisions(
    pool: &SqlitePool,
    durable: Revision,
    resources: &[ResourceId],
    at: Revision,
) -> Result<Vec<Vec<Revision>>, Error> {
    let mut transaction = snapshot(pool, durable, at).await?;
    let mut live = Vec::with_capacity(resources.len());
    for resource in resources {
        let revisions: Option<String> = sqlx::query_scalar(include_str!("../sql/sqlite/live_revisions.sql"))
            .bind(resource.0)
            .bind(at.0 as i64)
            .fetch_one(&mut *transaction)
            .await
            .map_err(unavailable)?;
        live.push(revisions.as_deref().map_or_else(|| Ok(Vec::new()), revisions_of)?);
    }
    Ok(live)
}

/// Parses numbers that are separated by commas.
fn revisions_of(list: &str) -> Result<Vec<Revision>, Error> {
    let revision = |text: &str| text.parse().map(Revision);
    let parsed: Result<_, std::num::ParseIntError> = list.split(',').map(revision).collect();
    parsed.map_err(|error| Error::Corrupt(format!("objects.resource_version: {error}").into()))
}

pub async fn rows_of(pool: &SqlitePool, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
    let mut connection = pool.acquire().await.map_err(unavailable)?;
    let (mut blocks, receiver) = Blocks::new();
    Ok(stream(receiver, async move {
        let read = read_rows(&mut connection, &revisions, &mut blocks).await;
        blocks.end(read).await;
    }))
}

async fn read_rows(
    connection: &mut SqliteConnection,
    revisions: &[Revision],
    blocks: &mut Blocks,
) -> Result<(), Error> {
    for revisions in revisions.chunks(REVISIONS_AT_ONCE) {
        let list: Vec<String> = revisions.iter().map(Revision::to_string).collect();
        let mut rows = sqlx::query(include_str!("../sql/sqlite/rows_of.sql"))
            .bind(format!("[{}]", list.join(",")))
            .fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(unavailable)? {
            let resource = ResourceId(row.try_get(4).map_err(corrupt)?);
            blocks.push(live_row(row, resource)?).await?;
        }
    }
    Ok(())
}

pub async fn count(pool: &SqlitePool, durable: Revision, scan: &Scan, at: Revision) -> Result<u64, Error> {
    count_at(&mut *snapshot(pool, durable, at).await?, scan, at).await
}

/// How many live rows `scan` has as of `at`, which can be read in this connection's snapshot.
pub async fn count_at(connection: &mut SqliteConnection, scan: &Scan, at: Revision) -> Result<u64, Error> {
    let sql = match scan.namespace {
        None => include_str!("../sql/sqlite/count_at_revision.sql"),
        Some(_) => include_str!("../sql/sqlite/count_namespace_at_revision.sql"),
    };
    let (namespace, name) = scan.start();
    let count: i64 = sqlx::query_scalar(sql)
        .bind(scan.resource.0)
        .bind(at.0 as i64)
        .bind(namespace)
        .bind(name)
        .fetch_one(connection)
        .await
        .map_err(unavailable)?;
    Ok(count as u64)
}

pub async fn changes(
    pool: &SqlitePool,
    durable: Revision,
    after: Revision,
    resource: Option<ResourceId>,
    mut limit: u32,
) -> Result<Changes, Error> {
    let mut transaction = pool.begin().await.map_err(unavailable)?;
    let clock = durable_clock(&mut transaction, durable).await?;
    clock.check_feed(after)?;
    loop {
        let query = match resource {
            None => sqlx::query(include_str!("../sql/sqlite/changes.sql")).bind(after.0 as i64),
            Some(resource) => sqlx::query(include_str!("../sql/sqlite/changes_of_resource.sql"))
                .bind(after.0 as i64)
                .bind(resource.0),
        };
        let mut rows: Vec<ChangeRow> = query
            .bind(limit)
            .fetch(&mut *transaction)
            .map_err(unavailable)
            .and_then(async |row| change_row(&row))
            .try_collect()
            .await?;
        rows.truncate(rows.partition_point(|row| row.revision <= clock.revision));
        match Changes::new(rows, limit, after, clock.revision) {
            Some(changes) => return Ok(changes),
            None => limit = limit.saturating_mul(2),
        }
    }
}

/// The clock as it stood at the newest durable commit, or at the newest one that the connection sees.
pub async fn durable_clock(connection: &mut SqliteConnection, durable: Revision) -> Result<Clock, Error> {
    let clock = sqlx::query_as(include_str!("../sql/sqlite/durable_clock.sql")).bind(durable.0 as i64);
    clock.fetch_one(connection).await.map(clock_of).map_err(unavailable)
}

/// A read transaction in which `at` is neither compacted nor in the future.
pub async fn snapshot(
    pool: &SqlitePool,
    durable: Revision,
    at: Revision,
) -> Result<Transaction<'static, Sqlite>, Error> {
    let mut transaction = pool.begin().await.map_err(unavailable)?;
    durable_clock(&mut transaction, durable).await?.check(at)?;
    Ok(transaction)
}

shared_queries!(SqliteConnection, SqliteRow, 0);
