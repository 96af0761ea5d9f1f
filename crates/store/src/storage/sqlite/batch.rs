//! A batch on SQLite: two calls of several statements. Their texts exist once for each power of two of mutations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use super::error::{corrupt, unavailable};
use super::{audit, checkpoint, registration};
use crate::revision::Revision;
use crate::storage::commit::{LARGEST_BATCH, audit_rows, required_keys};
use crate::storage::history::Told;
use crate::storage::judge::Write;
use crate::storage::{Change, ChangeKind, Error, Fence, Key, Mutation, RegistryChange};

/// SQL texts for batches of 1, 2, 4, … [`LARGEST_BATCH`] mutations. A shorter batch is padded with NULLs, which the
/// statements skip, so that a few prepared statements serve every length.
pub struct Statements {
    sizes: Vec<Texts>,
}

/// The texts for one size.
#[derive(Clone)]
pub struct Texts {
    size: usize,
    /// Begins a batch without required keys.
    begin: Arc<str>,
    /// Begins a batch with one required key, as when objects are deleted in one namespace.
    begin_requiring: Arc<str>,
    /// Begins a batch with two required keys, as when objects are created in one namespace.
    begin_requiring_two: Arc<str>,
    finish: Arc<str>,
}

/// A transaction that holds the write lock.
pub struct Begun {
    pub base: Revision,
    pub compacted: Revision,
    /// The stamp of the newest commit.
    pub committed_ms: i64,
    /// The live version of every mutation's key, and then of every [required key](required_keys).
    pub live: Vec<Option<Revision>>,
    /// Whether the fence's registration exists; false without a fence.
    pub registered: bool,
}

/// The time of a batch, and the writers of its writes.
pub struct Stamp {
    pub committed_ms: i64,
    pub told: Told,
}

/// The keys of a batch with three or more required keys are padded so that there is room for at least this many.
const FEW: usize = 16;

impl Statements {
    pub fn new() -> Self {
        let sizes = (0..=LARGEST_BATCH.ilog2()).map(|power| Texts::new(1 << power)).collect();
        Self { sizes }
    }

    /// The texts for a batch of `len` mutations. For more than [`LARGEST_BATCH`] they are made on the spot.
    pub fn for_len(&self, len: usize) -> Cow<'_, Texts> {
        let size = len.max(1).next_power_of_two();
        let known = self.sizes.get(size.ilog2() as usize);
        known.map_or_else(|| Cow::Owned(Texts::new(size)), Cow::Borrowed)
    }
}

impl Texts {
    fn new(size: usize) -> Self {
        let [begin, begin_requiring, begin_requiring_two] =
            [0, 1, 2].map(|more| begin_sql(size + more).into());
        Self { size, begin, begin_requiring, begin_requiring_two, finish: finish_sql(size).into() }
    }

    /// The text that begins a batch with this many required keys. Only a few different numbers are used, since each
    /// makes a prepared statement of its own.
    fn begin(&self, required: usize) -> Arc<str> {
        match required {
            0 => self.begin.clone(),
            1 => self.begin_requiring.clone(),
            2 => self.begin_requiring_two.clone(),
            more => begin_sql(self.size + more.next_power_of_two().max(FEW)).into(),
        }
    }
}

/// Takes the write lock, reads the clock, checks the fence's registration, and finds the newest version of each key.
/// The result is a single row, since each row costs a message between threads. Versions are given as
/// `index:2×version+deleted`, separated by commas, for those keys that have one.
fn begin_sql(size: usize) -> String {
    let keys = values(size, |row, sql| {
        let _ = write!(sql, "({row},?,?,?)");
    });
    format!(
        "BEGIN IMMEDIATE; \
         SELECT (SELECT revision FROM clock), \
           (SELECT COUNT(*) FROM servers WHERE id = ? AND incarnation = ?), group_concat(k.column1 || ':' || \
           (SELECT o.resource_version * 2 + o.deleted FROM objects o \
            WHERE o.resource = k.column2 AND o.namespace = k.column3 AND o.name = k.column4 \
            ORDER BY o.resource_version DESC LIMIT 1)), (SELECT compacted FROM clock), \
           (SELECT committed_ms FROM clock) FROM (VALUES {keys}) k"
    )
}

/// Parameters of a row of `changes`, which `objects` needs too, and parameters that only `objects` needs. None is
/// numbered: SQLite keeps numbered parameters in a list, and sqlx asks for the name of each, which searches that list.
const CHANGE: &str = "(?,?,?,?,?,?,?)";
const CHANGE_LEN: usize = 7;
const OBJECT: &str = "(?,?,?,?)";
const OBJECT_LEN: usize = 4;
/// Parameters per key in the text that begins a batch.
const KEY_LEN: usize = 3;

/// Writes both tables, a mark if the last commit was in another second, and the clock, commits, and tells how full the log is. Columns that both tables have are sent
/// once, and the batch's stamp is sent twice. A NULL version marks padding. A violated constraint would be a bug and rolls the transaction back: with the
/// default, OR ABORT, SQLite would copy every page before it changes it, to be able to undo one statement, and for a
/// large batch that journal goes to a temporary file.
fn finish_sql(size: usize) -> String {
    let objects = values(size, |_, sql| sql.push_str(OBJECT));
    let changes = values(size, |_, sql| sql.push_str(CHANGE));
    let deleted = ChangeKind::Deleted.code();
    format!(
        "INSERT OR ROLLBACK INTO changes \
             (resource_version, resource, namespace, name, event, previous_version, writer, committed_ms) \
           SELECT *, ? FROM (VALUES {changes}) WHERE column1 IS NOT NULL; \
         INSERT OR IGNORE INTO marks (at_ms, revision) \
           SELECT k.committed_ms, k.revision FROM clock k CROSS JOIN (SELECT ? AS now) s \
           WHERE k.committed_ms / 1000 <> s.now / 1000; \
         INSERT OR ROLLBACK INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
           SELECT c.resource_version, c.resource, c.namespace, c.name, c.event = {deleted}, v.column2, v.column3, v.column4 \
           FROM (VALUES {objects}) v CROSS JOIN changes c ON c.resource_version = v.column1; \
         UPDATE clock SET (revision, committed_ms) = \
           (SELECT resource_version, committed_ms FROM changes ORDER BY resource_version DESC LIMIT 1); COMMIT; {}",
        checkpoint::FRAMES
    )
}

fn values(size: usize, mut row: impl FnMut(usize, &mut String)) -> String {
    let mut sql = String::with_capacity(size * 40);
    for index in 0..size {
        if index > 0 {
            sql.push(',');
        }
        row(index, &mut sql);
    }
    sql
}

/// Opens the transaction.
pub async fn begin(
    connection: &mut SqliteConnection,
    texts: &Texts,
    mutations: &[Mutation],
    fence: Option<&Fence>,
) -> Result<Begun, Error> {
    let required = required_keys(mutations);
    let arguments = keys(mutations, &required, fence).map_err(unbound)?;
    let query = sqlx::query_with(AssertSqlSafe(texts.begin(required.len())), arguments);
    let row = query.fetch_one(connection).await.map_err(unavailable)?;
    let base: Option<i64> = row.try_get(0).map_err(corrupt)?;
    let base = base.ok_or_else(|| Error::Corrupt("the clock has no row".into()))?;
    let registered: i64 = row.try_get(1).map_err(corrupt)?;
    let found: Option<&str> = row.try_get(2).map_err(corrupt)?;
    // Keys are bound one after the other, so the padding comes last.
    let mut live = vec![None; mutations.len() + required.len()];
    for pair in found.unwrap_or_default().split_terminator(',') {
        let (index, version) =
            version_of(pair).ok_or_else(|| Error::Corrupt("a version is not a number".into()))?;
        if let Some(slot) = live.get_mut(index) {
            *slot = version;
        }
    }
    let compacted: i64 = row.try_get(3).map_err(corrupt)?;
    let committed_ms: i64 = row.try_get(4).map_err(corrupt)?;
    let [base, compacted] = [base, compacted].map(|revision| Revision(revision as u64));
    Ok(Begun { base, compacted, committed_ms, live, registered: registered == 1 })
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
    let arguments = rows(texts, mutations, writes, stamp).map_err(unbound)?;
    let query = sqlx::query_with(AssertSqlSafe(texts.finish.clone()), arguments);
    checkpoint::frames_of(&query.fetch_one(connection).await.map_err(unavailable)?)
}

/// Adds the rows of a batch's writers that the table may lack, in the transaction that is open.
async fn insert_authors(connection: &mut SqliteConnection, stamp: &Stamp) -> Result<(), sqlx::Error> {
    let Stamp { committed_ms, told } = stamp;
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

/// Binds the keys. Unbound parameters are NULL, which no key is.
fn keys(
    mutations: &[Mutation],
    required: &[&Key],
    fence: Option<&Fence>,
) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = with_room(2 + (mutations.len() + required.len()) * KEY_LEN);
    arguments.add(fence.map(|fence| &*fence.server))?;
    arguments.add(fence.map(|fence| &*fence.incarnation))?;
    for key in mutations.iter().map(|mutation| &mutation.key).chain(required.iter().copied()) {
        arguments.add(key.resource.0)?;
        arguments.add(key.namespace.clone())?;
        arguments.add(key.name.clone())?;
    }
    Ok(arguments)
}

fn rows(
    texts: &Texts,
    mutations: &[Mutation],
    writes: &[Write],
    Stamp { committed_ms, told }: &Stamp,
) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = with_room(2 + texts.size * CHANGE_LEN + writes.len() * OBJECT_LEN);
    arguments.add(*committed_ms)?;
    for (write, author) in writes.iter().zip(&told.ids) {
        let key = &mutations[write.index].key;
        arguments.add(write.revision.0 as i64)?;
        arguments.add(key.resource.0)?;
        arguments.add(key.namespace.clone())?;
        arguments.add(key.name.clone())?;
        arguments.add(write.kind.code())?;
        arguments.add(write.previous.map(|version| version.0 as i64))?;
        arguments.add(*author)?;
    }
    for _ in 0..(texts.size - writes.len()) * CHANGE_LEN {
        arguments.add(None::<i64>)?;
    }
    arguments.add(*committed_ms)?;
    for write in writes {
        arguments.add(write.revision.0 as i64)?;
        match mutations[write.index].change.settled() {
            Change::Put { uid, stored_version, value } => {
                arguments.add(uid.clone())?;
                arguments.add(stored_version.clone())?;
                arguments.add(&**value.bytes())?;
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
