//! The texts of the statements of a batch. They exist once for each power of two of mutations.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use super::checkpoint;
use crate::storage::ChangeKind;
use crate::storage::commit::LARGEST_BATCH;

/// SQL texts for batches of 1, 2, 4, … [`LARGEST_BATCH`] mutations. A shorter batch is padded with NULLs, which the
/// statements skip, so that a few prepared statements serve every length.
pub struct Statements {
    sizes: Vec<Texts>,
}

/// The texts for one size.
#[derive(Clone)]
pub struct Texts {
    pub size: usize,
    /// Begins a batch without required keys.
    begin: Arc<str>,
    /// Begins a batch with one required key, as when objects are deleted in one namespace.
    begin_requiring: Arc<str>,
    /// Begins a batch with two required keys, as when objects are created in one namespace.
    begin_requiring_two: Arc<str>,
    pub finish: Arc<str>,
}

/// The most mutations that one statement writes, far below SQLite's limit of parameters. A longer batch, which is a single
/// long unit, takes several.
const MOST_AT_ONCE: usize = 2048;
/// The most keys that one statement looks up.
pub const MOST_KEYS: usize = 4 * MOST_AT_ONCE;

/// The keys of a batch with three or more required keys are padded so that there is room for at least this many.
const FEW: usize = 16;

impl Statements {
    pub fn new() -> Self {
        let sizes = (0..=LARGEST_BATCH.ilog2()).map(|power| Texts::new(1 << power)).collect();
        Self { sizes }
    }

    /// The texts for a batch of `len` mutations. For more than [`LARGEST_BATCH`] they are made on the spot.
    pub fn for_len(&self, len: usize) -> Cow<'_, Texts> {
        let size = len.clamp(1, MOST_AT_ONCE).next_power_of_two();
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
    pub fn begin(&self, required: usize) -> Arc<str> {
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
pub fn begin_sql(size: usize) -> String {
    format!(
        "BEGIN IMMEDIATE; \
         SELECT (SELECT revision FROM clock), \
           (SELECT COUNT(*) FROM servers WHERE id = ? AND incarnation = ?), {VERSIONS}, \
           (SELECT compacted FROM clock), (SELECT committed_ms FROM clock), (SELECT lag FROM clock) \
         FROM (VALUES {}) k",
        key_values(size)
    )
}

/// Finds the newest version of each key in a transaction that has begun.
pub fn look_up_sql(size: usize) -> String {
    format!("SELECT {VERSIONS} FROM (VALUES {}) k", key_values(size))
}

const VERSIONS: &str = "group_concat(k.column1 || ':' || \
     (SELECT o.resource_version * 2 + o.deleted FROM objects o \
      WHERE o.resource = k.column2 AND o.namespace = k.column3 AND o.name = k.column4 \
      ORDER BY o.resource_version DESC LIMIT 1))";

fn key_values(size: usize) -> String {
    values(size, |row, sql| {
        let _ = write!(sql, "({row},?,?,?)");
    })
}

/// Parameters of a row of `changes`, which `objects` needs too, and parameters that only `objects` needs. None is
/// numbered: SQLite keeps numbered parameters in a list, and sqlx asks for the name of each, which searches that list.
const CHANGE: &str = "(?,?,?,?,?,?,?,?)";
pub const CHANGE_LEN: usize = 8;
const OBJECT: &str = "(?,?,?,?)";
pub const OBJECT_LEN: usize = 4;
/// Parameters per key in the text that begins a batch.
pub const KEY_LEN: usize = 3;

/// Writes both tables, a mark if the last commit was in another second, and the clock, commits, and tells how full the
/// log is. Columns that both tables have are sent once, and the batch's stamp is sent twice. A NULL version marks padding. A violated constraint would be a bug and rolls the transaction back: with the
/// default, OR ABORT, SQLite would copy every page before it changes it, to be able to undo one statement, and for a
/// large batch that journal goes to a temporary file.
fn finish_sql(size: usize) -> String {
    format!(
        "{}; \
         INSERT OR IGNORE INTO marks (at_ms, revision) \
           SELECT k.committed_ms, k.revision FROM clock k CROSS JOIN (SELECT ? AS now) s \
           WHERE k.committed_ms / 1000 <> s.now / 1000; \
         UPDATE clock SET lag = ?, (revision, committed_ms) = \
           (SELECT resource_version, committed_ms FROM changes ORDER BY resource_version DESC LIMIT 1); \
         {}; COMMIT; {}",
        insert_changes_sql(size),
        insert_objects_sql(size),
        checkpoint::FRAMES
    )
}

/// Writes a part of both tables; more is to come.
pub fn write_part_sql(size: usize) -> String {
    format!("{}; {}", insert_changes_sql(size), insert_objects_sql(size))
}

fn insert_changes_sql(size: usize) -> String {
    let changes = values(size, |_, sql| sql.push_str(CHANGE));
    format!(
        "INSERT OR ROLLBACK INTO changes \
             (resource_version, resource, namespace, name, event, previous_version, writer, uncounted, committed_ms) \
           SELECT *, ? FROM (VALUES {changes}) WHERE column1 IS NOT NULL"
    )
}

fn insert_objects_sql(size: usize) -> String {
    let objects = values(size, |_, sql| sql.push_str(OBJECT));
    let deleted = ChangeKind::Deleted.code();
    format!(
        "INSERT OR ROLLBACK INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
           SELECT c.resource_version, c.resource, c.namespace, c.name, c.event = {deleted}, v.column2, v.column3, v.column4 \
           FROM (VALUES {objects}) v CROSS JOIN changes c ON c.resource_version = v.column1"
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
