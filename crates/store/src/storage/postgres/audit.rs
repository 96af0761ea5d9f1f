//! Audit events on PostgreSQL.

use bytes::Bytes;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::error::unavailable;
use crate::storage::audit::{removals, selection};
use crate::storage::shared::shared_audit;
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

shared_audit!(PgConnection);
