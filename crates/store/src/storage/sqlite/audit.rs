//! Audit events on SQLite.

use std::fmt::Write as _;

use bytes::Bytes;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use super::error::{corrupt, unavailable};
use crate::storage::audit::{removals, sources};
use crate::storage::{AuditQuery, AuditRemoval, AuditRing, AuditRow, Error};

/// Adds events in the transaction that is open. Their number is padded to a power of two, so that a few prepared statements
/// serve every number.
pub async fn insert(connection: &mut SqliteConnection, rows: &[&AuditRow]) -> Result<(), sqlx::Error> {
    insert_into(connection, AuditRing::Writes, rows).await
}

/// The insertion of [`insert`], into the tables that the events name.
pub async fn insert_each(connection: &mut SqliteConnection, rows: &[AuditRow]) -> Result<(), sqlx::Error> {
    for ring in [AuditRing::Writes, AuditRing::Others] {
        let some: Vec<&AuditRow> = rows.iter().filter(|row| row.ring == ring).collect();
        insert_into(connection, ring, &some).await?;
    }
    Ok(())
}

async fn insert_into(
    connection: &mut SqliteConnection,
    ring: AuditRing,
    rows: &[&AuditRow],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let size = rows.len().next_power_of_two();
    let mut sql = format!(
        "INSERT OR ROLLBACK INTO {} (at, username, verb, object, event, size) \
         SELECT *, length(column5) FROM (VALUES ",
        ring.table()
    );
    for index in 0..size {
        let _ = write!(sql, "{}(?,?,?,?,?)", if index > 0 { "," } else { "" });
    }
    sql.push_str(") WHERE column1 IS NOT NULL");
    let mut arguments = SqliteArguments::default();
    arguments.reserve(size * 5, 0);
    for row in rows {
        bind(&mut arguments, row).map_err(sqlx::Error::Encode)?;
    }
    for _ in 0..(size - rows.len()) * 5 {
        arguments.add(None::<i64>).map_err(sqlx::Error::Encode)?;
    }
    sqlx::query_with(AssertSqlSafe(sql), arguments).execute(connection).await.map(drop)
}

fn bind(arguments: &mut SqliteArguments, row: &AuditRow) -> Result<(), sqlx::error::BoxDynError> {
    arguments.add(row.at)?;
    arguments.add(row.user.clone())?;
    arguments.add(row.verb.clone())?;
    arguments.add(row.object.clone())?;
    arguments.add(&row.event[..])
}

/// Removes events that are too old, too many or too large.
pub async fn remove(connection: &mut SqliteConnection, removal: AuditRemoval) -> Result<u64, Error> {
    let mut removed = 0;
    for (sql, bound) in removals(&removal, "?1", "?2") {
        let done = sqlx::query(AssertSqlSafe(sql)).bind(bound).bind(removal.limit);
        removed += done.execute(&mut *connection).await.map_err(unavailable)?.rows_affected();
    }
    Ok(removed)
}

/// The newest events that are asked for, the oldest of them first.
pub async fn find(
    connection: &mut SqliteConnection,
    query: &AuditQuery,
    has_others: bool,
) -> Result<Vec<Bytes>, Error> {
    let (object, prefix) = query.object_and_prefix();
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT event FROM {} WHERE at >= ?1 AND (?2 IS NULL OR username = ?2) AND (?3 IS NULL OR verb = ?3) \
         AND (?4 IS NULL OR object = ?4 OR substr(object, 1, length(?5)) = ?5) ORDER BY at DESC, id DESC LIMIT ?6",
        sources(has_others)
    )))
    .bind(query.since)
    .bind(query.user.as_deref())
    .bind(query.verb.as_deref())
    .bind(object)
    .bind(prefix)
    .bind(query.limit)
    .fetch_all(connection)
    .await
    .map_err(unavailable)?;
    let event =
        |row: &sqlx::sqlite::SqliteRow| row.try_get::<Vec<u8>, _>(0).map(Bytes::from).map_err(corrupt);
    rows.iter().rev().map(event).collect()
}
