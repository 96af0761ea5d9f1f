//! Finds out whether a batch was committed whose COMMIT was not answered.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::error::{corrupt, unavailable};
use crate::storage::judge::Write;
use crate::storage::{Change, ChangeKind, Error, Mutation};

/// The fate of a batch.
pub enum Fate {
    Committed,
    Aborted,
    InProgress,
    /// The database cannot tell any more.
    Forgotten,
}

/// Asks the database. If it says that the transaction was aborted, that is certain. If it says "committed", that proves
/// nothing, since after a crash or a failover the ids of transactions that left no trace in the log are used again;
/// then the batch's rows decide.
pub async fn of(
    connection: &mut PgConnection,
    transaction: &str,
    mutations: &[Mutation],
    writes: &[Write],
) -> Result<Fate, Error> {
    // An id above the snapshot's maximum was given out before a crash and forgotten in it.
    let status: Option<String> = sqlx::query_scalar(
        "SELECT CASE WHEN $1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) \
         THEN pg_xact_status($1::text::xid8) END",
    )
    .bind(transaction)
    .fetch_one(&mut *connection)
    .await
    .map_err(unavailable)?;
    match status.as_deref() {
        Some("aborted") => Ok(Fate::Aborted),
        Some("in progress") => Ok(Fate::InProgress),
        _ => written(connection, mutations, writes).await,
    }
}

/// Returns once everything that this session's cluster has committed is where `synchronous_standby_names` wants it.
/// Visible rows do not prove that: if a backend is ended while it waits for a standby, its rows become visible at once.
/// The message written here disturbs nobody, and its commit waits behind all earlier commits; a transaction that only
/// takes an id would not wait.
pub async fn confirm(connection: &mut PgConnection) -> Result<(), Error> {
    let message = sqlx::query("SELECT pg_logical_emit_message(true, 'rowplane', '')");
    message.execute(connection).await.map(drop).map_err(unavailable)
}

/// Whether the rows at the batch's revisions were written by the batch.
async fn written(
    connection: &mut PgConnection,
    mutations: &[Mutation],
    writes: &[Write],
) -> Result<Fate, Error> {
    let Some(first) = writes.first() else { return Ok(Fate::Forgotten) };
    let rows = sqlx::query(include_str!("../sql/postgres/rows_at.sql"))
        .bind(writes.iter().map(|write| write.revision.0 as i64).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .map_err(unavailable)?;
    for row in &rows {
        let newest: i64 = row.try_get(0).map_err(corrupt)?;
        if (newest as u64) < first.revision.0 {
            return Ok(Fate::Aborted);
        }
        let found: Option<i64> = row.try_get(1).map_err(corrupt)?;
        let written = writes.iter().find(|write| found == Some(write.revision.0 as i64));
        // One row decides, since a batch is committed wholly or not at all.
        if let Some(write) = written {
            let mutation = &mutations[write.index];
            let key = &mutation.key;
            let deleted: bool = row.try_get(5).map_err(corrupt)?;
            let value: &[u8] = row.try_get(6).map_err(corrupt)?;
            let same = row.try_get::<i32, _>(2).map_err(corrupt)? == key.resource.0
                && row.try_get::<&str, _>(3).map_err(corrupt)? == &*key.namespace
                && row.try_get::<&str, _>(4).map_err(corrupt)? == &*key.name
                && deleted == (write.kind == ChangeKind::Deleted)
                && match mutation.change.settled() {
                    Change::Put { draft, .. } => draft.is_stored_as(value),
                    Change::Delete | Change::Count(_) => true,
                };
            return Ok(if same { Fate::Committed } else { Fate::Aborted });
        }
    }
    // Others have committed since then, and compaction has removed the rows.
    Ok(Fate::Forgotten)
}
