//! Audit events on SQLite.

use std::fmt::Write as _;

use bytes::Bytes;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe};

use super::error::unavailable;
use crate::storage::audit::{removals, selection};
use crate::storage::shared::shared_audit;
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

shared_audit!(SqliteConnection);
