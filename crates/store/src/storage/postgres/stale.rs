//! Rows stored in an outdated encoding, on PostgreSQL.

use super::error::unavailable;
use super::pool::Pool;
use crate::storage::{Error, Stale, StaleRow};

pub async fn rows(
    pool: &Pool,
    stale: &Stale,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<StaleRow>, Error> {
    let (prefix, wanted) = stale.wanted();
    let mut connection = pool.acquire().await?;
    let found = sqlx::query_as(include_str!("../sql/postgres/stale_rows.sql"))
        .bind(stale.resource.0)
        .bind(after.0)
        .bind(after.1)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(wanted)
        .bind(prefix)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(unavailable)?;
    Ok(stale.rows(found))
}

pub async fn count(pool: &Pool, stale: &Stale) -> Result<u64, Error> {
    let (prefix, wanted) = stale.wanted();
    let mut connection = pool.acquire().await?;
    let count: i64 = sqlx::query_scalar(include_str!("../sql/postgres/stale_count.sql"))
        .bind(stale.resource.0)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(wanted)
        .bind(prefix)
        .fetch_one(&mut *connection)
        .await
        .map_err(unavailable)?;
    Ok(count as u64)
}
