//! Rows in an encoding of old, on PostgreSQL.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::error::{corrupt, unavailable};
use super::pool::Pool;
use crate::revision::Revision;
use crate::storage::stale::PROTOBUF;
use crate::storage::{Error, Key, Stale, StaleRow};

pub async fn rows(
    pool: &Pool,
    stale: &Stale,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<StaleRow>, Error> {
    let mut connection = pool.acquire().await?;
    let rows = sqlx::query(include_str!("../sql/postgres/stale_rows.sql"))
        .bind(stale.resource.0)
        .bind(after.0)
        .bind(after.1)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(stale.in_protobuf())
        .bind(PROTOBUF)
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(unavailable)?;
    let row = |row: &PgRow| -> Result<StaleRow, sqlx::Error> {
        let key = Key::new(stale.resource, row.try_get(0)?, row.try_get(1)?);
        Ok(StaleRow { key, revision: Revision(row.try_get::<i64, _>(2)? as u64) })
    };
    rows.iter().map(row).collect::<Result<_, _>>().map_err(corrupt)
}

pub async fn count(pool: &Pool, stale: &Stale) -> Result<u64, Error> {
    let mut connection = pool.acquire().await?;
    let count: i64 = sqlx::query_scalar(include_str!("../sql/postgres/stale_count.sql"))
        .bind(stale.resource.0)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(stale.in_protobuf())
        .bind(PROTOBUF)
        .fetch_one(&mut *connection)
        .await
        .map_err(unavailable)?;
    Ok(count as u64)
}
