//! Audit events on PostgreSQL.

use bytes::Bytes;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::{corrupt, unavailable};
use crate::storage::{AuditQuery, AuditRemoval, AuditRow, Error};

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

/// Removes events that are too old or too many.
pub async fn remove(connection: &mut PgConnection, removal: AuditRemoval) -> Result<u64, Error> {
    let AuditRemoval { before, most, limit } = removal;
    let too_old = "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE at < $1 ORDER BY at LIMIT $2)";
    let too_many = "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events \
                    WHERE id <= (SELECT max(id) FROM audit_events) - $1 ORDER BY id LIMIT $2)";
    let mut removed = 0;
    for (sql, bound) in [(too_old, before), (too_many, i64::try_from(most).unwrap_or(i64::MAX))] {
        let done = sqlx::query(sql).bind(bound).bind(i64::from(limit)).execute(&mut *connection).await;
        removed += done.map_err(unavailable)?.rows_affected();
    }
    Ok(removed)
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
