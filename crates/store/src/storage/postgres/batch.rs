//! A batch on PostgreSQL: lock the clock, read the keys, write everything, commit. It takes four round trips, and more
//! if the registry changes.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::TryFutureExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Executor, Row as _};

use super::error::{corrupt, unavailable};
use super::listener::Channel;
use super::pool::short;
use super::{audit, registration};
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;
use crate::storage::commit::{audit_rows, required_keys};
use crate::storage::judge::Write;
use crate::storage::{Change, Error, Fence, Mutation, RegistryChange};

/// A transaction that holds the clock's lock.
pub struct Begun {
    pub base: Revision,
    pub compacted: Revision,
    /// The transaction's id, with which its outcome can be asked for later.
    pub transaction: String,
    /// The position in the write-ahead log up to which the disk had everything; all earlier commits lie before it.
    pub flushed: u64,
}

/// What a batch is judged by.
pub struct JudgeInput {
    /// The live version of every mutation's key, and then of every [required key](required_keys).
    pub live: Vec<Option<Revision>>,
    /// Whether the fence's registration exists; false without a fence.
    pub registered: bool,
    /// The newest format of values that every registered server can read. If no server is registered, unknown servers
    /// may be reading, so it is the format that every release can read.
    pub format: ValueFormat,
}

/// When a batch failed.
pub enum Failure {
    /// Before COMMIT was sent: nothing was written.
    Before(Error),
    /// COMMIT was sent, and its answer is missing.
    During(Error),
}

/// Opens a transaction and takes the clock's lock.
pub async fn begin(connection: &mut PgConnection) -> Result<Begun, Error> {
    let clock = connection
        .fetch_one(sqlx::raw_sql(
            "BEGIN; SELECT revision, pg_current_xact_id()::text, \
             (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint, compacted FROM clock FOR UPDATE",
        ))
        .await
        .map_err(unavailable)?;
    let base: i64 = clock.try_get(0).map_err(corrupt)?;
    let flushed: i64 = clock.try_get(2).map_err(corrupt)?;
    let compacted: i64 = clock.try_get(3).map_err(corrupt)?;
    let transaction = clock.try_get(1).map_err(corrupt)?;
    let [base, compacted] = [base, compacted].map(|revision| Revision(revision as u64));
    Ok(Begun { base, compacted, transaction, flushed: flushed as u64 })
}

/// Reads the live versions and the registrations while the lock is held. The read needs a snapshot of its own: with the
/// snapshot of the statement that took the lock, it would miss what others committed while that statement waited.
pub async fn look_up(
    connection: &mut PgConnection,
    mutations: &[Mutation],
    fence: Option<&Fence>,
) -> Result<JudgeInput, Error> {
    let required = required_keys(mutations);
    let keys = || mutations.iter().map(|mutation| &mutation.key).chain(required.iter().copied());
    let rows = sqlx::query(include_str!("../sql/postgres/live_versions.sql"))
        .bind(keys().map(|key| key.resource.0).collect::<Vec<_>>())
        .bind(keys().map(|key| &*key.namespace).collect::<Vec<_>>())
        .bind(keys().map(|key| &*key.name).collect::<Vec<_>>())
        .bind(fence.map(|fence| &*fence.server))
        .bind(fence.map(|fence| &*fence.incarnation))
        .fetch_all(connection)
        .await
        .map_err(unavailable)?;
    let mut live = vec![None; mutations.len() + required.len()];
    let mut registered = false;
    let mut format = ValueFormat::Plain;
    for row in rows {
        let ordinal: i64 = row.try_get(0).map_err(corrupt)?;
        let found: Option<i64> = row.try_get(1).map_err(corrupt)?;
        if ordinal == 0 {
            registered = found == Some(1);
            let common: Option<i32> = row.try_get(2).map_err(corrupt)?;
            if fence.is_some() {
                format = common.map_or(ValueFormat::NEWEST, ValueFormat::up_to);
            }
        } else if let (Some(slot), Some(found)) = (live.get_mut(ordinal as usize - 1), found) {
            *slot = (found & 1 == 0).then_some(Revision((found >> 1) as u64));
        }
    }
    Ok(JudgeInput { live, registered, format })
}

/// The values of these versions. Makes no query for none.
pub async fn values_of(
    connection: &mut PgConnection,
    versions: &[Revision],
) -> Result<HashMap<Revision, Bytes>, Error> {
    if versions.is_empty() {
        return Ok(HashMap::new());
    }
    let list: Vec<i64> = versions.iter().map(|version| version.0 as i64).collect();
    let rows = sqlx::query(include_str!("../sql/postgres/rows_of.sql"))
        .bind(list)
        .fetch_all(connection)
        .await
        .map_err(unavailable)?;
    let value = |row: &PgRow| -> Result<(Revision, Bytes), sqlx::Error> {
        let (version, value): (i64, &[u8]) = (row.try_get(2)?, row.try_get(3)?);
        Ok((Revision(version as u64), Bytes::copy_from_slice(value)))
    };
    rows.iter().map(value).collect::<Result<_, _>>().map_err(corrupt)
}

/// Writes what passed and commits. If there is nothing to write, rolls back.
pub async fn finish(
    connection: &mut PgConnection,
    channel: &Channel,
    mutations: &[Mutation],
    verdict: (&[Write], ValueFormat),
    registry: Option<&RegistryChange>,
) -> Result<(), Failure> {
    let (writes, format) = verdict;
    if writes.is_empty() && registry.is_none() {
        let ended = connection.execute(sqlx::raw_sql("ROLLBACK"));
        return short(ended.map_err(unavailable)).await.map(drop).map_err(Failure::Before);
    }
    if !writes.is_empty() {
        let inserted = insert(connection, channel, mutations, writes, format);
        short(inserted.map_err(unavailable)).await.map_err(Failure::Before)?;
    }
    if let Some(change) = registry {
        let changed = registration::change(connection, change);
        short(changed.map_err(unavailable)).await.map_err(Failure::Before)?;
    }
    let committed = connection.execute(sqlx::raw_sql("COMMIT"));
    short(committed.map_err(unavailable)).await.map(drop).map_err(Failure::During)
}

async fn insert(
    connection: &mut PgConnection,
    channel: &Channel,
    mutations: &[Mutation],
    writes: &[Write],
    format: ValueFormat,
) -> Result<(), sqlx::Error> {
    audit::insert(connection, &audit_rows(mutations, writes)).await?;
    let keys = || writes.iter().map(|write| &mutations[write.index].key);
    let stored = |pick: fn(&Change) -> &str| {
        writes.iter().map(|write| pick(mutations[write.index].change.settled())).collect::<Vec<_>>()
    };
    let values = |write: &Write| match mutations[write.index].change.settled() {
        Change::Put { draft, .. } => draft.value_in(format),
        Change::Delete | Change::Count(_) => bytes::Bytes::new(),
    };
    let values: Vec<bytes::Bytes> = writes.iter().map(values).collect();
    sqlx::query(include_str!("../sql/postgres/write_batch.sql"))
        .bind(writes.iter().map(|write| write.revision.0 as i64).collect::<Vec<_>>())
        .bind(keys().map(|key| key.resource.0).collect::<Vec<_>>())
        .bind(keys().map(|key| &*key.namespace).collect::<Vec<_>>())
        .bind(keys().map(|key| &*key.name).collect::<Vec<_>>())
        .bind(stored(uid))
        .bind(stored(stored_version))
        .bind(values.iter().map(|value| &value[..]).collect::<Vec<_>>())
        .bind(writes.iter().map(|write| write.kind.code()).collect::<Vec<_>>())
        .bind(writes.iter().map(|write| write.previous.map(|v| v.0 as i64)).collect::<Vec<_>>())
        .bind(writes.last().map_or(0, |write| write.revision.0 as i64))
        .bind(&*channel.name)
        .bind(&*channel.sender)
        .execute(connection)
        .await
        .map(drop)
}

fn uid(change: &Change) -> &str {
    match change {
        Change::Put { uid, .. } => uid,
        Change::Delete | Change::Count(_) => "",
    }
}

fn stored_version(change: &Change) -> &str {
    match change {
        Change::Put { stored_version, .. } => stored_version,
        Change::Delete | Change::Count(_) => "",
    }
}
