//! Rows in an encoding of old, on SQLite.

use sqlx::Row as _;
use sqlx::sqlite::{SqlitePool, SqliteRow};

use super::error::{corrupt, unavailable};
use crate::revision::Revision;
use crate::storage::stale::PROTOBUF;
use crate::storage::{Error, Key, Stale, StaleRow};

pub async fn rows(
    pool: &SqlitePool,
    stale: &Stale,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<StaleRow>, Error> {
    let rows = sqlx::query(include_str!("../sql/sqlite/stale_rows.sql"))
        .bind(stale.resource.0)
        .bind(after.0)
        .bind(after.1)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(stale.in_protobuf())
        .bind(PROTOBUF)
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await
        .map_err(unavailable)?;
    let row = |row: &SqliteRow| -> Result<StaleRow, sqlx::Error> {
        let key = Key::new(stale.resource, row.try_get(0)?, row.try_get(1)?);
        Ok(StaleRow { key, revision: Revision(row.try_get::<i64, _>(2)? as u64) })
    };
    rows.iter().map(row).collect::<Result<_, _>>().map_err(corrupt)
}

pub async fn count(pool: &SqlitePool, stale: &Stale) -> Result<u64, Error> {
    let count: i64 = sqlx::query_scalar(include_str!("../sql/sqlite/stale_count.sql"))
        .bind(stale.resource.0)
        .bind(stale.through.0 as i64)
        .bind(&*stale.api_version)
        .bind(stale.in_protobuf())
        .bind(PROTOBUF)
        .fetch_one(pool)
        .await
        .map_err(unavailable)?;
    Ok(count as u64)
}
