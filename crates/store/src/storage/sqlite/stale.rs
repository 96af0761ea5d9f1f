//! Rows stored in an outdated encoding, on SQLite.

use sqlx::sqlite::SqlitePool;

use super::error::unavailable;
use crate::storage::{Error, Stale, StaleRow};

pub async fn rows(
    pool: &SqlitePool,
    stale: &Stale,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<StaleRow>, Error> {
    let (prefix, wanted) = stale.wanted();
    let found = sqlx::query_as(include_str!("../sql/sqlite/stale_rows.sql"))
        .bind(stale.resource.0)
        .bind(after.0)
        .bind(after.1)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(wanted)
        .bind(prefix)
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await
        .map_err(unavailable)?;
    Ok(stale.rows(found))
}

pub async fn count(pool: &SqlitePool, stale: &Stale) -> Result<u64, Error> {
    let (prefix, wanted) = stale.wanted();
    let count: i64 = sqlx::query_scalar(include_str!("../sql/sqlite/stale_count.sql"))
        .bind(stale.resource.0)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(wanted)
        .bind(prefix)
        .fetch_one(pool)
        .await
        .map_err(unavailable)?;
    Ok(count as u64)
}
