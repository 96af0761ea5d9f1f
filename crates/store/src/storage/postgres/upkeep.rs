//! Compaction, the clock's repair, and the small tables on PostgreSQL. Every replica may call these at any time.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryFutureExt as _;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use super::error::{corrupt, unavailable};
use super::numbers::Numbers;
use super::pool::{Pool, long, short};
use super::{Postgres, audit, checked, not_opened, reads, whole};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{
    AuditQuery, AuditRemoval, AuditRow, Clock, Error, HighWaterMark, OpenError, Registry, ResourceId, Swept,
    TokenKey, Upkeep, token_key,
};

/// Nobody asks what became of a batch for so long.
const FORGET_BATCHES: &str = "DELETE FROM batches WHERE at < now() - interval '1 day'";

#[async_trait]
impl Upkeep for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn hold_to(&self, mark: &Arc<HighWaterMark>) -> Result<(), OpenError> {
        self.connector.hold_to(mark);
        let looked = self.pool.try_acquire().await;
        looked.map_err(|error| not_opened(self.database.shown(), error))?;
        self.connector.lineage().settle();
        Ok(())
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        short(compact(&self.pool, to)).await
    }

    async fn oldest_change(&self) -> Result<Option<Revision>, Error> {
        short(oldest_change(&self.pool)).await
    }

    async fn sweep(&self, limit: u32) -> Result<Swept, Error> {
        let begun = Instant::now();
        let changes = long(sweep(&self.pool, limit)).await?;
        Ok(Swept { changes, took: begun.elapsed() })
    }

    /// Does nothing: autovacuum does the work.
    async fn reclaim(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        short(advance_clock(&self.pool, floor)).await
    }

    async fn close(&self) {
        self.listener.stop();
        self.pool.close().await;
    }
}

#[async_trait]
impl Registry for Postgres {
    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        short(resource_ids(&self.pool, self.connector.numbers(), resources)).await
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        short(token_keys(&self.pool, now, max_age)).await
    }

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let added = short(audit::insert(&mut connection, &rows).map_err(unavailable)).await;
        checked(connection, added)
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        let mut connection = self.pool.acquire().await?;
        let found = long(audit::find(&mut connection, query, true)).await;
        checked(connection, found)
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        let mut connection = self.pool.acquire().await?;
        let removed = long(audit::remove(&mut connection, removal)).await;
        checked(connection, removed)
    }
}

async fn compact(pool: &Pool, to: Revision) -> Result<Clock, Error> {
    let mut connection = pool.acquire().await?;
    let to = whole::number(Some(to.0 as i64));
    let statement =
        format!("UPDATE clock SET compacted = LEAST(revision, {to}) WHERE compacted < LEAST(revision, {to})");
    whole::run(&mut connection, statement).await.map_err(unavailable)?;
    reads::clock(&mut connection).await
}

async fn oldest_change(pool: &Pool) -> Result<Option<Revision>, Error> {
    let mut connection = pool.acquire().await?;
    let oldest: Option<i64> = sqlx::query_scalar("SELECT MIN(resource_version) FROM changes")
        .fetch_one(&mut *connection)
        .await
        .map_err(unavailable)?;
    Ok(oldest.map(|revision| Revision(revision as u64)))
}

/// The bytes of the schema's tables, with their indexes.
pub async fn size(pool: &Pool) -> Result<u64, Error> {
    let mut connection = pool.acquire().await?;
    let size: i64 = sqlx::query_scalar(
        "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(unavailable)?;
    Ok(size.unsigned_abs())
}

/// Only one replica sweeps at a time; for the others there is nothing to do.
async fn sweep(pool: &Pool, limit: u32) -> Result<u64, Error> {
    let mut connection = pool.acquire().await?;
    let floors = include_str!("../sql/history/floors.sql");
    // If a crash brings rows back, they are swept again. So the commit waits neither for the disk nor for a standby.
    let statement = format!(
        "BEGIN;
         SET LOCAL synchronous_commit = off;
         WITH mine AS MATERIALIZED (
             SELECT FROM turns WHERE work = 'sweep by floors' FOR UPDATE SKIP LOCKED
         ), due (id, floor) AS ({floors}
         ), slice AS (
             DELETE FROM changes WHERE EXISTS (SELECT FROM mine) AND resource_version IN (
                 SELECT c.resource_version FROM due CROSS JOIN LATERAL (
                     SELECT n.resource_version FROM changes n
                     WHERE n.resource = due.id AND n.resource_version <= due.floor
                     ORDER BY n.resource_version LIMIT {limit}) c
                 LIMIT {limit})
             RETURNING resource_version, previous_version, event
         ), dead AS (
             DELETE FROM objects WHERE resource_version IN (
                 SELECT previous_version FROM slice WHERE previous_version IS NOT NULL
                 UNION ALL SELECT resource_version FROM slice WHERE event = 2)
         ), dead_segments AS (
             DELETE FROM segments WHERE end_version IN (SELECT resource_version FROM slice)
         )
         SELECT COUNT(*) FROM slice;
         COMMIT"
    );
    let rows = connection.run_transaction(statement).await.map_err(unavailable)?;
    whole::run(&mut connection, FORGET_BATCHES.to_owned()).await.map_err(unavailable)?;
    let swept: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(corrupt)?;
    Ok(swept as u64)
}

async fn advance_clock(pool: &Pool, floor: Revision) -> Result<Clock, Error> {
    let mut connection = pool.acquire().await?;
    let floor = whole::number(Some(floor.0 as i64));
    let statement =
        // What was lost between the newest commit that survived and this revision cannot be told from what never was, so the
        // past begins here.
        format!(
            "WITH moved AS (UPDATE clock SET revision = {floor}, compacted = {floor} WHERE revision < {floor} RETURNING 1) \
             UPDATE floors SET revision = {floor} WHERE EXISTS (SELECT FROM moved)"
        );
    whole::run(&mut connection, statement).await.map_err(unavailable)?;
    reads::clock(&mut connection).await
}

async fn resource_ids(
    pool: &Pool,
    numbers: &Numbers,
    resources: &[GroupResource],
) -> Result<Vec<ResourceId>, Error> {
    let mut connection = pool.acquire().await?;
    let mut known = ids(&mut connection, resources).await?;
    let new: Vec<String> = (resources.iter().zip(&known).filter(|(_, id)| id.is_none()))
        .map(|(new, _)| format!("({}, {})", whole::text(&new.group), whole::text(&new.plural)))
        .collect();
    if !new.is_empty() {
        // Rows are inserted in a fixed order: servers that start at the same time would otherwise deadlock on each
        // other's rows.
        let insert = format!(
            "INSERT INTO resources (api_group, plural) SELECT * FROM (VALUES {}) AS new ORDER BY 1, 2 \
             ON CONFLICT DO NOTHING",
            new.join(", ")
        );
        whole::run(&mut connection, insert).await.map_err(unavailable)?;
        known = ids(&mut connection, resources).await?;
    }
    let known: Option<Vec<ResourceId>> = known.into_iter().collect();
    let known = known.ok_or_else(|| Error::Corrupt("a resource has no row".into()))?;
    // Noted first: a standby that was promoted meanwhile may not have them, and one that is promoted from now on gets them.
    numbers.note(resources, &known);
    if !connection.is_current() {
        return Err(Error::Unavailable("the database has been promoted".into()));
    }
    Ok(known)
}

/// The numbers of resources; `None` for those that have none yet.
async fn ids(
    connection: &mut PgConnection,
    resources: &[GroupResource],
) -> Result<Vec<Option<ResourceId>>, Error> {
    let groups: Vec<&str> = resources.iter().map(|resource| &*resource.group).collect();
    let plurals: Vec<&str> = resources.iter().map(|resource| &*resource.plural).collect();
    let ids: Vec<Option<i32>> = sqlx::query_scalar(
        "SELECT r.id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (api_group, plural, i) \
         LEFT JOIN resources r ON r.api_group = k.api_group AND r.plural = k.plural ORDER BY k.i",
    )
    .bind(&groups)
    .bind(&plurals)
    .fetch_all(connection)
    .await
    .map_err(unavailable)?;
    Ok(ids.into_iter().map(|id| id.map(ResourceId)).collect())
}

/// The keys of tokens. Of replicas that rotate at the same time, one adds its key, and the others take it.
async fn token_keys(pool: &Pool, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
    let mut connection = pool.acquire().await?;
    loop {
        let rows: Vec<(i32, i64, Vec<u8>)> =
            sqlx::query_as("SELECT id, created_at, secret FROM token_keys ORDER BY id DESC")
                .fetch_all(&mut *connection)
                .await
                .map_err(unavailable)?;
        let rows = rows.into_iter().map(|(id, at, secret)| (i64::from(id), at, secret)).collect();
        let rotation = token_key::rotate(rows, connection.timeline(), now, max_age);
        let Some(key) = &rotation.added else { return Ok(rotation.keys) };
        let add = format!(
            "INSERT INTO token_keys (id, created_at, secret) VALUES ({}, {}, {}) ON CONFLICT DO NOTHING; \
             DELETE FROM token_keys WHERE id < {}",
            key.id,
            key.created_at,
            whole::bytes(&key.secret),
            rotation.oldest()
        );
        whole::run(&mut connection, add).await.map_err(unavailable)?;
        let stored: Option<Vec<u8>> = sqlx::query_scalar("SELECT secret FROM token_keys WHERE id = $1")
            .bind(key.id as i32)
            .fetch_optional(&mut *connection)
            .await
            .map_err(unavailable)?;
        if stored.as_deref() == Some(&*key.secret) {
            return Ok(rotation.keys);
        }
    }
}
