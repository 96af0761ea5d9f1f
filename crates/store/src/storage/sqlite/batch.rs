//! A batch on SQLite: two calls of several statements.

use std::collections::HashMap;

use bytes::Bytes;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use super::error::{corrupt, unavailable};
use super::statements::{
    CHANGE_LEN, KEY_LEN, MOST_KEYS, OBJECT_LEN, Texts, begin_sql, look_up_sql, write_part_sql,
};
use super::{audit, checkpoint, registration};
use crate::revision::Revision;
use crate::storage::commit::{audit_rows, required_keys};
use crate::storage::history::Told;
use crate::storage::judge::Write;
use crate::storage::sequence::stamped;
use crate::storage::{Change, Error, Fence, Key, Mutation, RegistryChange, UnchangedRange};

/// A transaction that holds the write lock.
pub struct Begun {
    pub base: Revision,
    pub compacted: Revision,
    pub lag: i64,
    /// The stamp of the newest commit.
    pub committed_ms: i64,
    /// The live version of every mutation's key, and then of every [required key](required_keys).
    pub live: Vec<Option<Revision>>,
    /// Whether the fence's registration exists; false without a fence.
    pub registered: bool,
}

/// The time of a batch, the clock's lag after it, and the writers of its writes.
pub struct Stamp {
    pub committed_ms: i64,
    pub lag: i64,
    pub told: Told,
}

/// Opens the transaction.
pub async fn begin(
    connection: &mut SqliteConnection,
    texts: &Texts,
    mutations: &[Mutation],
    fence: Option<&Fence>,
) -> Result<Begun, Error> {
    let required = required_keys(mutations);
    let keys: Vec<&Key> =
        mutations.iter().map(|mutation| &mutation.key).chain(required.iter().copied()).collect();
    let (first, rest) = keys.split_at(keys.len().min(MOST_KEYS));
    let text = match mutations.len() <= texts.size && rest.is_empty() {
        true => texts.begin(required.len()),
        false => begin_sql(MOST_KEYS).into(),
    };
    let arguments = begin_arguments(first, fence).map_err(unbound)?;
    let query = sqlx::query_with(AssertSqlSafe(text), arguments);
    let row = query.fetch_one(&mut *connection).await.map_err(unavailable)?;
    let base: Option<i64> = row.try_get(0).map_err(corrupt)?;
    let base = base.ok_or_else(|| Error::Corrupt("the clock has no row".into()))?;
    let registered: i64 = row.try_get(1).map_err(corrupt)?;
    let found: Option<&str> = row.try_get(2).map_err(corrupt)?;
    let mut live = vec![None; keys.len()];
    note_versions(found, &mut live)?;
    for (part, keys) in rest.chunks(MOST_KEYS).enumerate() {
        let arguments = look_up_arguments(keys).map_err(unbound)?;
        let query = sqlx::query_with(AssertSqlSafe(look_up_sql(MOST_KEYS)), arguments);
        let row = query.fetch_one(&mut *connection).await.map_err(unavailable)?;
        note_versions(row.try_get(0).map_err(corrupt)?, &mut live[(part + 1) * MOST_KEYS..])?;
    }
    let compacted: i64 = row.try_get(3).map_err(corrupt)?;
    let committed_ms: i64 = row.try_get(4).map_err(corrupt)?;
    let lag: i64 = row.try_get(5).map_err(corrupt)?;
    let [base, compacted] = [base, compacted].map(|revision| Revision(revision as u64));
    Ok(Begun { base, compacted, lag, committed_ms, live, registered: registered == 1 })
}

/// Whether each of these ranges has changed. Makes a query for each.
pub async fn changed(
    connection: &mut SqliteConnection,
    ranges: impl Iterator<Item = &UnchangedRange>,
) -> Result<Vec<bool>, Error> {
    let mut changed = Vec::new();
    for UnchangedRange { resource, start, stop, since } in ranges {
        let found = sqlx::query_scalar(include_str!("../sql/sqlite/range_changed.sql"))
            .bind(resource.0)
            .bind(i64::try_from(since.0).unwrap_or(i64::MAX))
            .bind(&**start)
            .bind(stop.as_deref())
            .fetch_one(&mut *connection);
        changed.push(found.await.map_err(unavailable)?);
    }
    Ok(changed)
}

/// The values of these versions. Makes no query for none.
pub async fn values_of(
    connection: &mut SqliteConnection,
    versions: &[Revision],
) -> Result<HashMap<Revision, Bytes>, Error> {
    if versions.is_empty() {
        return Ok(HashMap::new());
    }
    let list: Vec<String> = versions.iter().map(Revision::to_string).collect();
    let rows = sqlx::query(include_str!("../sql/sqlite/rows_of.sql"))
        .bind(format!("[{}]", list.join(",")))
        .fetch_all(connection)
        .await
        .map_err(unavailable)?;
    let value = |row: &SqliteRow| -> Result<(Revision, Bytes), sqlx::Error> {
        let (version, value): (i64, &[u8]) = (row.try_get(2)?, row.try_get(3)?);
        Ok((Revision(version as u64), Bytes::copy_from_slice(value)))
    };
    rows.iter().map(value).collect::<Result<_, _>>().map_err(corrupt)
}

/// Notes the versions of keys, which are bound one after the other, so that padding comes last.
fn note_versions(found: Option<&str>, live: &mut [Option<Revision>]) -> Result<(), Error> {
    for pair in found.unwrap_or_default().split_terminator(',') {
        let (index, version) =
            version_of(pair).ok_or_else(|| Error::Corrupt("a version is not a number".into()))?;
        if let Some(slot) = live.get_mut(index) {
            *slot = version;
        }
    }
    Ok(())
}

/// `index:2 × version + deleted`
fn version_of(pair: &str) -> Option<(usize, Option<Revision>)> {
    let (index, found) = pair.split_once(':')?;
    let found: u64 = found.parse().ok()?;
    Some((index.parse().ok()?, (found & 1 == 0).then_some(Revision(found >> 1))))
}

/// Rolls a transaction back in which no mutation passed.
pub async fn rollback(connection: &mut SqliteConnection) -> Result<(), Error> {
    sqlx::query("ROLLBACK").execute(connection).await.map_err(unavailable)?;
    Ok(())
}

/// Writes what passed and commits. Returns the number of frames in the log. After an error it is unknown whether the
/// batch was committed.
pub async fn finish(
    connection: &mut SqliteConnection,
    texts: &Texts,
    mutations: &[Mutation],
    writes: &[Write],
    registry: Option<&RegistryChange>,
    stamp: &Stamp,
) -> Result<u32, Error> {
    if let Some(change) = registry {
        registration::change(connection, change).await.map_err(unavailable)?;
    }
    if writes.is_empty() {
        sqlx::query("COMMIT").execute(&mut *connection).await.map_err(unavailable)?;
        return checkpoint::frames(connection).await;
    }
    audit::insert(connection, &audit_rows(mutations, writes)).await.map_err(unavailable)?;
    insert_authors(connection, stamp).await.map_err(unavailable)?;
    let (middle, last) = writes.split_at((writes.len() - 1) / texts.size * texts.size);
    let mut authors = stamp.told.ids.iter().copied();
    for part in middle.chunks(texts.size) {
        let arguments = rows(texts, mutations, part, &mut authors, stamp, Part::Middle).map_err(unbound)?;
        let query = sqlx::query_with(AssertSqlSafe(write_part_sql(texts.size)), arguments);
        query.execute(&mut *connection).await.map_err(unavailable)?;
    }
    let arguments = rows(texts, mutations, last, &mut authors, stamp, Part::Last).map_err(unbound)?;
    let query = sqlx::query_with(AssertSqlSafe(texts.finish.clone()), arguments);
    checkpoint::frames_of(&query.fetch_one(connection).await.map_err(unavailable)?)
}

/// The part of a batch that a statement writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Middle,
    /// The part with which the clock is set and the batch is committed.
    Last,
}

/// Adds the rows of a batch's writers that the table may lack, in the transaction that is open.
async fn insert_authors(connection: &mut SqliteConnection, stamp: &Stamp) -> Result<(), sqlx::Error> {
    let Stamp { committed_ms, told, .. } = stamp;
    if told.new.is_empty() {
        return Ok(());
    }
    let rows = vec!["(?,?,?,?,?,?,?,?)"; told.new.len()].join(",");
    let sql = format!(
        "INSERT INTO writers (id, username, impersonator, verb, subresource, manager, client, used_ms) VALUES {rows} \
         ON CONFLICT (id) DO UPDATE SET used_ms = excluded.used_ms"
    );
    let mut arguments = SqliteArguments::default();
    for author in &told.new {
        arguments.add(author.id()).map_err(sqlx::Error::Encode)?;
        for text in author.writer().texts() {
            arguments.add(text).map_err(sqlx::Error::Encode)?;
        }
        arguments.add(*committed_ms).map_err(sqlx::Error::Encode)?;
    }
    // New writers are rare and their number varies: the statement is not kept.
    let insert = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(false);
    insert.execute(connection).await.map(drop)
}

fn begin_arguments(keys: &[&Key], fence: Option<&Fence>) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = with_room(2 + keys.len() * KEY_LEN);
    arguments.add(fence.map(|fence| &*fence.server))?;
    arguments.add(fence.map(|fence| &*fence.incarnation))?;
    bind_keys(&mut arguments, keys)?;
    Ok(arguments)
}

fn look_up_arguments(keys: &[&Key]) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = with_room(keys.len() * KEY_LEN);
    bind_keys(&mut arguments, keys)?;
    Ok(arguments)
}

/// Binds the keys. Unbound parameters are NULL, which no key is.
fn bind_keys(arguments: &mut SqliteArguments, keys: &[&Key]) -> Result<(), BoxDynError> {
    for key in keys {
        arguments.add(key.resource.0)?;
        arguments.add(key.namespace.clone())?;
        arguments.add(key.name.clone())?;
    }
    Ok(())
}

fn rows(
    texts: &Texts,
    mutations: &[Mutation],
    writes: &[Write],
    authors: &mut impl Iterator<Item = Option<i64>>,
    Stamp { committed_ms, lag, .. }: &Stamp,
    part: Part,
) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = with_room(3 + texts.size * CHANGE_LEN + writes.len() * OBJECT_LEN);
    arguments.add(*committed_ms)?;
    for (write, author) in writes.iter().zip(authors) {
        let key = &mutations[write.index].key;
        arguments.add(write.revision.0 as i64)?;
        arguments.add(key.resource.0)?;
        arguments.add(key.namespace.clone())?;
        arguments.add(key.name.clone())?;
        arguments.add(write.kind.code())?;
        arguments.add(write.previous.map(|version| version.0 as i64))?;
        arguments.add(author)?;
        arguments.add(mutations[write.index].counting.code())?;
    }
    for _ in 0..(texts.size - writes.len()) * CHANGE_LEN {
        arguments.add(None::<i64>)?;
    }
    if part == Part::Last {
        arguments.add(*committed_ms)?;
        arguments.add(*lag)?;
    }
    for write in writes {
        arguments.add(write.revision.0 as i64)?;
        match mutations[write.index].change.settled() {
            Change::Put { uid, stored_version, value } => {
                arguments.add(uid.clone())?;
                arguments.add(stored_version.clone())?;
                match value.is_stamped() {
                    true => arguments.add(&*stamped(write.etcd_revision, value.bytes()))?,
                    false => arguments.add(&**value.bytes())?,
                }
            }
            Change::Delete | Change::Count(_) => {
                arguments.add("")?;
                arguments.add("")?;
                arguments.add(&b""[..])?;
            }
        }
    }
    Ok(arguments)
}

/// Reserves room for all arguments at once: growing step by step, tens of thousands of bytes for a large batch, costs
/// more than all the binding.
fn with_room(len: usize) -> SqliteArguments {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(len, 0);
    arguments
}

fn unbound(error: BoxDynError) -> Error {
    unavailable(sqlx::Error::Encode(error))
}
