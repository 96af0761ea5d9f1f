//! Audit events on PostgreSQL.

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::{corrupt, unavailable};
use crate::storage::{AuditQuery, AuditRow, Error};

/// Adds events in the transaction that is open.
pub async fn insert(connection: &mut PgConnection, rows: &[&AuditRow]) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let texts = |pick: fn(&AuditRow) -> &str| rows.iter().map(|row| pick(row)).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO audit_events (at, username, verb, object, event) \
         SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[])",
    )
    .bind(rows.iter().map(|row| row.at).collect::<Vec<_>>())
    .bind(texts(|row| &row.user))
    .bind(texts(|row| &row.verb))
    .bind(texts(|row| &row.object))
    .bind(rows.iter().map(|row| &row.event[..]).collect::<Vec<_>>())
    .execute(connection)
    .await
    .map(drop)
}

/// Removes up to `limit` events from before a time.
pub async fn remove(connection: &mut PgConnection, before: i64, limit: u32) -> Result<u64, Error> {
    let removed = sqlx::query(
        "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE at < $1 ORDER BY at LIMIT $2)",
    )
    .bind(before)
    .bind(i64::from(limit))
    .execute(connection)
    .await
    .map_err(unavailable)?;
    Ok(removed.rows_affected())
}

/// The newest events that are asked for, the oldest of them first.
pub async fn find(connection: &mut PgConnection, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
    let (object, prefix) = query.object_and_prefix();
    let rows = sqlx::query(
        "SELECT event FROM audit_events WHERE at >= $1 AND ($2::text IS NULL OR username = $2) \
         AND ($3::text IS NULL OR verb = $3) AND ($4::text IS NULL OR object = $4 OR starts_with(object, $5)) \
         ORDER BY at DESC, id DESC LIMIT $6",
    )
    .bind(query.since)
    .bind(query.user.as_deref())
    .bind(query.verb.as_deref())
    .bind(object)
    .bind(prefix)
    .bind(i64::from(query.limit))
    .fetch_all(connection)
    .await
    .map_err(unavailable)?;
    let event = |row: &PgRow| row.try_get::<Vec<u8>, _>(0).map(Bytes::from).map_err(corrupt);
    rows.iter().rev().map(event).collect()
}
