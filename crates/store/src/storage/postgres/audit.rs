//! Audit events on PostgreSQL.

use bytes::Bytes;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::error::{corrupt, unavailable};
use crate::storage::audit::{removals, sources};
use crate::storage::{AuditQuery, AuditRemoval, AuditRing, AuditRow, Error};

/// Adds events, each to the table that it names.
pub async fn insert(connection: &mut PgConnection, rows: &[AuditRow]) -> Result<(), sqlx::Error> {
    for ring in [AuditRing::Writes, AuditRing::Others] {
        let some: Vec<&AuditRow> = rows.iter().filter(|row| row.ring == ring).collect();
        insert_into(connection, ring, &some).await?;
    }
    Ok(())
}

async fn insert_into(
    connection: &mut PgConnection,
    ring: AuditRing,
    rows: &[&AuditRow],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let texts = |pick: fn(&AuditRow) -> &str| rows.iter().map(|row| pick(row)).collect::<Vec<_>>();
    // Sizes of writes' events are the database's.
    let (more, selected) = match ring {
        AuditRing::Writes => ("", "*"),
        AuditRing::Others => (", size", "*, octet_length(event)"),
    };
    let sql = format!(
        "INSERT INTO {} (at, username, verb, object, event{more}) SELECT {selected} \
         FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[]) AS t (at, username, verb, object, event)",
        ring.table()
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(rows.iter().map(|row| row.at).collect::<Vec<_>>())
        .bind(texts(|row| &row.user))
        .bind(texts(|row| &row.verb))
        .bind(texts(|row| &row.object))
        .bind(rows.iter().map(|row| &row.event[..]).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map(drop)
}

/// Removes events that are too old, too many or too large.
pub async fn remove(connection: &mut PgConnection, removal: AuditRemoval) -> Result<u64, Error> {
    let mut removed = 0;
    for (sql, bound) in removals(&removal, "$1", "$2") {
        let done = sqlx::query(AssertSqlSafe(sql)).bind(bound).bind(i64::from(removal.limit));
        removed += done.execute(&mut *connection).await.map_err(unavailable)?.rows_affected();
    }
    Ok(removed)
}

/// The newest events that are asked for, the oldest of them first.
pub async fn find(
    connection: &mut PgConnection,
    query: &AuditQuery,
    has_others: bool,
) -> Result<Vec<Bytes>, Error> {
    let (object, prefix) = query.object_and_prefix();
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT event FROM {} WHERE at >= $1 AND ($2::text IS NULL OR username = $2) \
         AND ($3::text IS NULL OR verb = $3) AND ($4::text IS NULL OR object = $4 OR starts_with(object, $5)) \
         ORDER BY at DESC, id DESC LIMIT $6",
        sources(has_others)
    )))
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
