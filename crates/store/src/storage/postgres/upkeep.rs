//! Compaction, the clock's repair, and the small tables on PostgreSQL. Every replica may call these at any time.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row as _, Transaction};

use super::error::{corrupt, unavailable};
use super::pool::Pool;
use super::{reads, whole};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{Clock, Error, ResourceId, TokenKey, token_key};

/// Nobody asks what became of a batch for so long.
const FORGET_BATCHES: &str = "DELETE FROM batches WHERE at < now() - interval '1 day'";

async fn begin(connection: &mut PgConnection) -> Result<Transaction<'_, sqlx::Postgres>, Error> {
    connection.begin().await.map_err(unavailable)
}

pub async fn compact(pool: &Pool, to: Revision) -> Result<Clock, Error> {
    let mut connection = pool.acquire().await?;
    let to = whole::number(Some(to.0 as i64));
    let statement =
        format!("UPDATE clock SET compacted = LEAST(revision, {to}) WHERE compacted < LEAST(revision, {to})");
    whole::run(&mut connection, statement).await.map_err(unavailable)?;
    reads::clock(&mut connection).await
}

pub async fn oldest_change(pool: &Pool) -> Result<Option<Revision>, Error> {
    let mut connection = pool.acquire().await?;
    let oldest: Option<i64> = sqlx::query_scalar("SELECT MIN(resource_version) FROM changes")
        .fetch_one(&mut *connection)
        .await
        .map_err(unavailable)?;
    Ok(oldest.map(|revision| Revision(revision as u64)))
}

/// Only one replica sweeps at a time; for the others there is nothing to do.
pub async fn sweep(pool: &Pool, limit: u32) -> Result<u64, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = begin(&mut connection).await?;
    // If a crash brings rows back, they are swept again. So the commit waits neither for the disk nor for a standby.
    sqlx::query("SET LOCAL synchronous_commit = off")
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let mine = sqlx::query("SELECT FROM turns WHERE work = 'sweep' FOR UPDATE SKIP LOCKED")
        .fetch_optional(&mut *transaction)
        .await
        .map_err(unavailable)?;
    if mine.is_none() {
        return Ok(0);
    }
    let row = sqlx::query(
        "WITH slice AS (
             DELETE FROM changes WHERE resource_version IN (
                 SELECT resource_version FROM changes
                 WHERE resource_version <= (SELECT compacted FROM clock)
                 ORDER BY resource_version LIMIT $1)
             RETURNING resource_version, previous_version, event
         ), dead AS (
             DELETE FROM objects WHERE resource_version IN (
                 SELECT previous_version FROM slice WHERE previous_version IS NOT NULL
                 UNION ALL SELECT resource_version FROM slice WHERE event = 2)
         )
         SELECT COUNT(*) FROM slice",
    )
    .bind(i64::from(limit))
    .fetch_one(&mut *transaction)
    .await
    .map_err(unavailable)?;
    transaction.commit().await.map_err(unavailable)?;
    whole::run(&mut connection, FORGET_BATCHES.to_owned()).await.map_err(unavailable)?;
    let swept: i64 = row.try_get(0).map_err(corrupt)?;
    Ok(swept as u64)
}

pub async fn advance_clock(pool: &Pool, floor: Revision) -> Result<Clock, Error> {
    let mut connection = pool.acquire().await?;
    let floor = whole::number(Some(floor.0 as i64));
    let statement =
        format!("UPDATE clock SET revision = {floor}, compacted = {floor} WHERE revision < {floor}");
    whole::run(&mut connection, statement).await.map_err(unavailable)?;
    reads::clock(&mut connection).await
}

pub async fn resource_ids(pool: &Pool, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
    let mut connection = pool.acquire().await?;
    let groups: Vec<&str> = resources.iter().map(|resource| &*resource.group).collect();
    let plurals: Vec<&str> = resources.iter().map(|resource| &*resource.plural).collect();
    sqlx::query(
        // Rows are inserted in a fixed order: servers that start at the same time would otherwise deadlock on each
        // other's rows.
        "INSERT INTO resources (api_group, plural) SELECT * FROM unnest($1::text[], $2::text[]) ORDER BY 1, 2 \
         ON CONFLICT DO NOTHING",
    )
    .bind(&groups)
    .bind(&plurals)
    .execute(&mut *connection)
    .await
    .map_err(unavailable)?;
    let ids: Vec<i32> = sqlx::query_scalar(
        "SELECT r.id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (api_group, plural, i) \
         JOIN resources r ON r.api_group = k.api_group AND r.plural = k.plural ORDER BY k.i",
    )
    .bind(&groups)
    .bind(&plurals)
    .fetch_all(&mut *connection)
    .await
    .map_err(unavailable)?;
    Ok(ids.into_iter().map(ResourceId).collect())
}

pub async fn token_keys(pool: &Pool, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = begin(&mut connection).await?;
    // Replicas that rotate at the same time must see each other's key.
    sqlx::query("LOCK TABLE token_keys IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let rows: Vec<(i32, i64, Vec<u8>)> =
        sqlx::query_as("SELECT id, created_at, secret FROM token_keys ORDER BY id DESC")
            .fetch_all(&mut *transaction)
            .await
            .map_err(unavailable)?;
    let rows = rows.into_iter().map(|(id, at, secret)| (i64::from(id), at, secret)).collect();
    let rotation = token_key::rotate(rows, now, max_age);
    if let Some(key) = &rotation.added {
        sqlx::query("INSERT INTO token_keys (id, created_at, secret) VALUES ($1, $2, $3)")
            .bind(key.id as i32)
            .bind(key.created_at)
            .bind(&*key.secret)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
        sqlx::query("DELETE FROM token_keys WHERE id < $1")
            .bind(rotation.oldest() as i32)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)?;
    Ok(rotation.keys)
}
