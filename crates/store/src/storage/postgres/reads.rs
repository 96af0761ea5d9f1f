//! Reads on PostgreSQL. Each checks the clock in the snapshot from which it reads: the snapshot of a read transaction,
//! or of its only statement.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{TryFutureExt, TryStreamExt};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Postgres, Row as _, Transaction};
use tokio::sync::{mpsc, oneshot};

use super::error::{corrupt, unavailable};
use super::lent::Lent;
use super::pool::{Pool, long, short};
use crate::revision::Revision;
use crate::storage::history::PastError;
use crate::storage::shared::shared_queries;
use crate::storage::stream::{Blocks, Offered, ROWS_AHEAD, give_up, offer, stream};
use crate::storage::{
    BlockStream, ChangeKind, ChangeRow, Changes, Clock, Counting, Error, Key, ResourceId, Row, RowStream,
    Scan, Stale, StaleRow,
};

/// How many revisions one statement asks for.
const REVISIONS_AT_ONCE: usize = 2000;

/// Begins a transaction with one snapshot for the check of the clock and for the rows.
pub const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The number of the newest migration; an error if there is no schema yet.
pub async fn newest_migration(connection: &mut PgConnection) -> Result<i64, Error> {
    let newest = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations");
    newest.fetch_one(connection).await.map_err(unavailable)
}

pub async fn scan(pool: &Pool, scan: Scan, at: Revision) -> Result<RowStream, Error> {
    let begin: Begin =
        Box::new(move |connection| Box::pin(async move { Ok(short(snapshot(connection, at)).await?) }));
    scan_from(pool, scan, at, begin).await.map_err(PastError::into_error)
}

/// Begins a read transaction, in which the state that is wanted can be read.
pub type Begin = Box<
    dyn for<'a> FnOnce(&'a mut Lent) -> BoxFuture<'a, Result<Transaction<'a, Postgres>, PastError>> + Send,
>;

pub async fn scan_from(pool: &Pool, scan: Scan, at: Revision, begin: Begin) -> Result<RowStream, PastError> {
    let mut connection = pool.acquire().await?;
    let (sender, receiver) = mpsc::channel(ROWS_AHEAD);
    let (opened, begun) = oneshot::channel();
    let rows = stream(receiver, async move {
        let mut transaction = match begin(&mut connection).await {
            Ok(transaction) => transaction,
            Err(error) => return drop(opened.send(Err(error))),
        };
        let _ = opened.send(Ok(()));
        let sql = match scan.namespace {
            None => include_str!("../sql/postgres/list_at_revision.sql"),
            Some(_) => include_str!("../sql/postgres/list_namespace_at_revision.sql"),
        };
        let (namespace, name) = scan.start();
        let limit = scan.limit.map(i64::from);
        let mut rows = sqlx::query(sql)
            .bind(scan.resource.0)
            .bind(at.0 as i64)
            .bind(namespace)
            .bind(name)
            .bind(limit)
            .fetch(&mut *transaction);
        loop {
            let row = match long(rows.try_next().map_err(unavailable)).await {
                Ok(Some(row)) => live_row(row, scan.resource),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            let failed = row.is_err();
            match offer(&sender, row).await {
                Offered::Taken if !failed => {}
                Offered::Taken | Offered::Gone => return,
                Offered::Stalled => break,
            }
        }
        drop(rows);
        drop(transaction);
        drop(connection);
        give_up(&sender).await;
    });
    // The sender is dropped only if the query's task has died.
    begun.await.map_err(|_| PastError::from(Error::Closed))??;
    Ok(rows)
}

pub async fn live_revisions(
    pool: &Pool,
    resources: &[ResourceId],
    at: Revision,
) -> Result<Vec<Vec<Revision>>, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = snapshot(&mut connection, at).await?;
    let found: Vec<(i32, Vec<i64>)> = sqlx::query_as(include_str!("../sql/postgres/live_revisions.sql"))
        .bind(at.0 as i64)
        .fetch_all(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let mut found: HashMap<i32, Vec<i64>> = found.into_iter().collect();
    let mut of = |resource: &ResourceId| found.remove(&resource.0).unwrap_or_default();
    let revisions = |list: Vec<i64>| list.into_iter().map(|revision| Revision(revision as u64)).collect();
    Ok(resources.iter().map(|resource| revisions(of(resource))).collect())
}

pub async fn rows_of(pool: &Pool, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
    let mut connection = pool.acquire().await?;
    let (mut blocks, receiver) = Blocks::new();
    Ok(stream(receiver, async move {
        let read = read_rows(&mut connection, &revisions, &mut blocks).await;
        if read.is_err() {
            connection.discard();
        }
        blocks.end(read).await;
    }))
}

async fn read_rows(
    connection: &mut PgConnection,
    revisions: &[Revision],
    blocks: &mut Blocks,
) -> Result<(), Error> {
    for revisions in revisions.chunks(REVISIONS_AT_ONCE) {
        let list: Vec<i64> = revisions.iter().map(|revision| revision.0 as i64).collect();
        let mut rows =
            sqlx::query(include_str!("../sql/postgres/rows_of.sql")).bind(list).fetch(&mut *connection);
        while let Some(row) = long(rows.try_next().map_err(unavailable)).await? {
            let resource = ResourceId(row.try_get(4).map_err(corrupt)?);
            blocks.push(live_row(row, resource)?).await?;
        }
    }
    Ok(())
}

pub async fn count(pool: &Pool, scan: &Scan, at: Revision) -> Result<u64, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = snapshot(&mut connection, at).await?;
    count_at(&mut transaction, scan, at).await
}

/// How many live rows `scan` has as of `at`, which can be read in this connection's snapshot.
pub async fn count_at(connection: &mut PgConnection, scan: &Scan, at: Revision) -> Result<u64, Error> {
    let sql = match scan.namespace {
        None => include_str!("../sql/postgres/count_at_revision.sql"),
        Some(_) => include_str!("../sql/postgres/count_namespace_at_revision.sql"),
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
    pool: &Pool,
    after: Revision,
    resource: Option<ResourceId>,
    mut limit: u32,
) -> Result<Changes, Error> {
    let mut connection = pool.acquire().await?;
    loop {
        let (rows, current) = page_of_changes(&mut connection, after, resource, limit).await?;
        match Changes::new(rows, limit, after, current) {
            Some(changes) => return Ok(changes),
            None => limit = limit.saturating_mul(2),
        }
    }
}

/// The changes after a revision, as many as the limit allows, and the newest revision.
async fn page_of_changes(
    connection: &mut PgConnection,
    after: Revision,
    resource: Option<ResourceId>,
    limit: u32,
) -> Result<(Vec<ChangeRow>, Revision), Error> {
    let query = match resource {
        None => sqlx::query(include_str!("../sql/postgres/changes.sql")).bind(after.0 as i64),
        Some(resource) => sqlx::query(include_str!("../sql/postgres/changes_of_resource.sql"))
            .bind(after.0 as i64)
            .bind(resource.0),
    };
    let mut found = query.bind(i64::from(limit)).fetch(connection);
    let mut current = None;
    let mut rows = Vec::new();
    // Reads row by row, since values may be large. Each row has a limit of time, since nothing fresh can be read while
    // the feed hangs.
    while let Some(row) = short(found.try_next().map_err(unavailable)).await? {
        if current.is_none() {
            let clock = clock_of_row(&row)?;
            clock.check_feed(after)?;
            current = Some(clock.revision);
        }
        if row.try_get::<Option<i64>, _>(3).map_err(corrupt)?.is_some() {
            rows.push(change_row(&row)?);
        }
    }
    let current = current.ok_or_else(|| Error::Corrupt("there is no clock".into()))?;
    Ok((rows, current))
}

/// The clock in the first columns of a row.
fn clock_of_row(row: &PgRow) -> Result<Clock, Error> {
    let column = |index: usize| row.try_get::<i64, _>(index).map_err(corrupt);
    Ok(clock_of((column(0)?, column(1)?, column(2)?)))
}

pub async fn lag_at_revision(pool: &Pool, at: Revision) -> Result<i64, Error> {
    let mut connection = pool.acquire().await?;
    lag_at(&mut *snapshot(&mut connection, at).await?, at).await
}

pub async fn sequence(pool: &Pool, revision: i64) -> Result<Revision, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin(SNAPSHOT).await.map_err(unavailable)?;
    let clock = clock(&mut transaction).await?;
    sequence_of(&mut transaction, clock, revision).await
}

/// A read transaction in which `at` is neither compacted nor in the future.
async fn snapshot(connection: &mut Lent, at: Revision) -> Result<Transaction<'_, Postgres>, Error> {
    let mut transaction = connection.begin(SNAPSHOT).await.map_err(unavailable)?;
    clock(&mut transaction).await?.check(at)?;
    Ok(transaction)
}

shared_queries!(PgConnection, PgRow, 3);
