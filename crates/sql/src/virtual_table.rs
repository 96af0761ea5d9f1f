//! Tables of a catalog as virtual tables of SQLite: the one module with unsafe code.
//!
//! `rusqlite::vtab` calls the traits here from SQLite. They are unsafe to implement because SQLite and rusqlite treat the
//! structs as `sqlite3_vtab` and `sqlite3_vtab_cursor`: they are `repr(C)` and begin with that struct, which is all that
//! is promised. No panic leaves the traits' methods, since C code is above them.
#![allow(unsafe_code, reason = "rusqlite's traits of virtual tables are unsafe to implement")]

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fallible_iterator::FallibleIterator as _;
use rusqlite::ffi::{Error as Code, SQLITE_CONSTRAINT, SQLITE_ERROR};
use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, VTab, VTabConnection, VTabCursor, eponymous_only_module,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error as SqliteError, Result as SqliteResult};

use crate::functions::{cell, output};
use crate::index::{Bucket, HashIndex, MOST_ROWS};
use crate::plan::{Equality, Plan};
use crate::{Catalog, Cell, Error, Lookup, Row, Rows, Table, Watch};

/// Rows that are read from a table between two looks at the [`Watch`].
const ROWS_AT_ONCE: u64 = 256;
/// The most keys that one scan looks up; more are found by a scan of all rows.
const MOST_KEYS: usize = 10_000;

/// The parts of a statement that its tables share.
pub struct Shared {
    pub watch: Arc<dyn Watch>,
    /// The error of a table, of which SQLite keeps only the text.
    failure: Mutex<Option<Error>>,
    /// The tables that the statement mentions.
    opened: Mutex<Vec<Arc<dyn Table>>>,
    /// The rows that indexes hold.
    indexed: AtomicU64,
}

impl Shared {
    pub fn new(watch: Arc<dyn Watch>) -> Self {
        Self { watch, failure: Mutex::default(), opened: Mutex::default(), indexed: AtomicU64::new(0) }
    }

    pub fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    pub fn opened(&self) -> Vec<Arc<dyn Table>> {
        lock(&self.opened).clone()
    }

    /// Runs what SQLite has called. Keeps an error, and makes one of a panic.
    fn guard<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> SqliteResult<T> {
        let done = catch_unwind(AssertUnwindSafe(work));
        done.unwrap_or_else(|panic| Err(Error::Engine(panic_text(&*panic)))).map_err(|error| {
            let text = error.to_string();
            lock(&self.failure).get_or_insert(error);
            SqliteError::SqliteFailure(Code::new(SQLITE_ERROR), Some(text))
        })
    }

    fn check(&self) -> Result<(), Error> {
        self.watch.stop().map_or(Ok(()), |stop| Err(Error::Stopped(stop)))
    }

    /// Makes room for a row in an index.
    fn grow(&self) -> Result<(), Error> {
        if self.indexed.fetch_add(1, Ordering::Relaxed) < MOST_ROWS {
            return Ok(());
        }
        Err(Error::TooLarge(format!("the joins of the statement need more than {MOST_ROWS} rows in memory")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a table panicked").to_owned()
}

/// A table's name, and where the table comes from.
struct Origin {
    name: String,
    catalog: Arc<dyn Catalog>,
    shared: Arc<Shared>,
}

/// Offers a table to the statements of a connection, as a table and as a function of the time.
pub fn register(
    connection: &Connection,
    name: &str,
    catalog: &Arc<dyn Catalog>,
    shared: &Arc<Shared>,
) -> SqliteResult<()> {
    let origin = Origin { name: name.to_owned(), catalog: catalog.clone(), shared: shared.clone() };
    connection.create_module(name, eponymous_only_module::<VirtualTable>(), Some(origin))
}

#[repr(C)]
struct VirtualTable {
    base: sqlite3_vtab,
    table: Arc<dyn Table>,
    shared: Arc<Shared>,
    indexes: Arc<Indexes>,
}

/// Hash indexes by the time of their rows and their columns.
type Indexes = Mutex<HashMap<(Option<String>, Vec<usize>), Arc<HashIndex>>>;

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab`.
unsafe impl VTab<'_> for VirtualTable {
    type Aux = Origin;
    type Cursor = Cursor;

    fn connect(_: &mut VTabConnection, origin: Option<&Origin>, _: &[&[u8]]) -> SqliteResult<(String, Self)> {
        let Some(Origin { name, catalog, shared }) = origin else {
            return Err(SqliteError::ModuleError("a table without a catalog".to_owned()));
        };
        let table = shared.guard(|| catalog.table(name))?;
        lock(&shared.opened).push(table.clone());
        let columns: Vec<String> = table
            .columns()
            .iter()
            .map(|column| {
                let hidden = if column.is_hidden { " HIDDEN" } else { "" };
                format!("\"{}\" {}{hidden}", column.name.replace('"', "\"\""), column.kind.as_str())
            })
            .collect();
        let declaration = format!("CREATE TABLE x({})", columns.join(", "));
        let (shared, indexes) = (shared.clone(), Arc::default());
        Ok((declaration, Self { base: sqlite3_vtab::default(), table, shared, indexes }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> SqliteResult<()> {
        let equalities = equalities(info);
        let Ok(plan) = Plan::of(&*self.table, &equalities) else {
            return Err(SqliteError::SqliteFailure(Code::new(SQLITE_CONSTRAINT), None));
        };
        for (place, equality) in plan.arguments().enumerate() {
            if equality.is_list {
                info.set_in_constraint(equality.at, true)?;
            }
            let is_time = plan.time.is_some_and(|time| time.at == equality.at);
            let mut usage = info.constraint_usage(equality.at);
            usage.set_argv_index(place as c_int + 1);
            usage.set_omit(is_time);
        }
        let (cost, rows) = plan.estimate(&*self.table);
        info.set_estimated_cost(cost);
        info.set_estimated_rows(rows);
        info.set_idx_str(&plan.encode());
        Ok(())
    }

    fn open(&mut self) -> SqliteResult<Cursor> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            table: self.table.clone(),
            shared: self.shared.clone(),
            indexes: self.indexes.clone(),
            at: None,
            rows: Box::new(std::iter::empty()),
            row: None,
            read: 0,
        })
    }
}

/// The equalities that SQLite offers, in its order.
fn equalities(info: &IndexInfo) -> Vec<Equality> {
    let constraints: Vec<(usize, usize, bool)> = info
        .constraints()
        .enumerate()
        .filter(|(_, one)| one.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ)
        .filter_map(|(at, one)| Some((at, usize::try_from(one.column()).ok()?, one.is_usable())))
        .collect();
    let is_exact = |at: usize| info.collation(at).is_ok_and(|collation| collation == "BINARY");
    constraints
        .into_iter()
        .filter(|(at, ..)| is_exact(*at))
        .map(|(at, column, is_usable)| Equality {
            at,
            column,
            is_usable,
            is_constant: matches!(info.rhs_value(at), Ok(Some(_))),
            is_list: info.is_in_constraint(at).unwrap_or_default(),
        })
        .collect()
}

#[repr(C)]
struct Cursor {
    base: sqlite3_vtab_cursor,
    table: Arc<dyn Table>,
    shared: Arc<Shared>,
    indexes: Arc<Indexes>,
    /// The time of the rows as the statement spells it.
    at: Option<String>,
    rows: Rows,
    /// The row on which the cursor stands; `None` behind the last one.
    row: Option<Arc<dyn Row>>,
    read: u64,
}

/// The values of a scan's arguments.
struct Arguments {
    time: Option<Cell<'static>>,
    key: Vec<Vec<Cell<'static>>>,
    hashed: Vec<Vec<Cell<'static>>>,
}

impl Arguments {
    fn of(plan: &Plan, filters: &Filters<'_>) -> SqliteResult<Self> {
        let mut at = 0;
        let mut take = |equality: &Equality| -> SqliteResult<Vec<Cell<'static>>> {
            let place = at;
            at += 1;
            if equality.is_list {
                let mut cells = Vec::new();
                let mut values = filters.in_values(place)?;
                while let Some(value) = values.next()? {
                    cells.push(owned(value)?);
                }
                return Ok(cells);
            }
            let value = filters.iter().nth(place).unwrap_or(ValueRef::Null);
            Ok(vec![owned(value)?])
        };
        let time = match &plan.time {
            Some(time) => take(time)?.pop(),
            None => None,
        };
        let key = plan.key.iter().map(&mut take).collect::<SqliteResult<_>>()?;
        let hashed = plan.hashed.iter().map(take).collect::<SqliteResult<_>>()?;
        Ok(Self { time, key, hashed })
    }
}

fn owned(value: ValueRef<'_>) -> SqliteResult<Cell<'static>> {
    Ok(match cell(value)? {
        Cell::Null => Cell::Null,
        Cell::Integer(value) => Cell::Integer(value),
        Cell::Real(value) => Cell::Real(value),
        Cell::Text(text) => Cell::text(text.into_owned()),
    })
}

impl Cursor {
    fn find(&mut self, plan: &Plan, arguments: Arguments) -> Result<Rows, Error> {
        self.at = match arguments.time {
            None => None,
            Some(Cell::Text(time)) => Some(time.into_owned()),
            // A time that is NULL has no rows, as NULL equals nothing.
            Some(Cell::Null) => return Ok(Box::new(std::iter::empty())),
            Some(Cell::Integer(_) | Cell::Real(_)) => {
                return Err(Error::statement("a time is a text such as '2026-11-22T10:00:00Z'"));
            }
        };
        if let [column, ..] = &plan.hashed[..] {
            let columns: Vec<usize> = plan.hashed.iter().map(|equality| equality.column).collect();
            let index = self.index(&columns)?;
            if column.is_list {
                let list = arguments.hashed.first().map(Vec::as_slice).unwrap_or_default();
                let buckets: BTreeSet<Bucket> = list.iter().filter_map(Bucket::of).collect();
                let found: Vec<_> =
                    buckets.into_iter().flat_map(|bucket| index.get(&[bucket]).to_vec()).map(Ok).collect();
                return Ok(Box::new(found.into_iter()));
            }
            let key: Option<Vec<Bucket>> =
                arguments.hashed.iter().map(|cells| cells.first().and_then(Bucket::of)).collect();
            let found = key.map(|key| index.get(&key).to_vec()).unwrap_or_default();
            return Ok(Box::new(found.into_iter().map(Ok)));
        }
        self.table.rows(&Lookup { at: self.at.clone(), key: key_of(arguments.key) })
    }

    /// The hash index on some columns, which is built now if it is the first time.
    fn index(&self, columns: &[usize]) -> Result<Arc<HashIndex>, Error> {
        let name = (self.at.clone(), columns.to_vec());
        if let Some(index) = lock(&self.indexes).get(&name) {
            return Ok(index.clone());
        }
        let rows = self.table.rows(&Lookup { at: self.at.clone(), key: Vec::new() })?;
        let mut read = 0;
        let shared = &self.shared;
        let index = HashIndex::build(rows, columns, || {
            read += 1;
            if read % ROWS_AT_ONCE == 0 {
                shared.watch.scanned(ROWS_AT_ONCE);
                shared.check()?;
            }
            shared.grow()
        })?;
        shared.watch.scanned(read % ROWS_AT_ONCE);
        let index = Arc::new(index);
        lock(&self.indexes).insert(name, index.clone());
        Ok(index)
    }

    fn step(&mut self) -> Result<(), Error> {
        self.row = self.rows.next().transpose()?;
        if self.row.is_some() {
            self.read += 1;
            if self.read.is_multiple_of(ROWS_AT_ONCE) {
                self.shared.watch.scanned(ROWS_AT_ONCE);
                self.shared.check()?;
            }
        }
        Ok(())
    }
}

/// The prefix of a key to look up. SQLite compares again, so that a set that is too long may be left out.
fn key_of(arguments: Vec<Vec<Cell<'static>>>) -> Vec<BTreeSet<String>> {
    let text = |cell: Cell<'static>| match cell {
        Cell::Text(text) => Some(text.into_owned()),
        Cell::Integer(value) => Some(value.to_string()),
        // Names are no numbers with a point.
        Cell::Null | Cell::Real(_) => None,
    };
    let mut keys = 1_usize;
    let sets = arguments.into_iter().map(|cells| cells.into_iter().filter_map(text).collect());
    sets.take_while(|set: &BTreeSet<String>| {
        keys = keys.saturating_mul(set.len().max(1));
        keys <= MOST_KEYS
    })
    .collect()
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.shared.watch.scanned(self.read % ROWS_AT_ONCE);
    }
}

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, _: c_int, plan: Option<&str>, filters: &Filters<'_>) -> SqliteResult<()> {
        let plan = Plan::decode(plan.unwrap_or_default());
        let arguments = Arguments::of(&plan, filters)?;
        let shared = self.shared.clone();
        shared.guard(|| {
            self.rows = self.find(&plan, arguments)?;
            self.step()
        })
    }

    fn next(&mut self) -> SqliteResult<()> {
        let shared = self.shared.clone();
        shared.guard(|| self.step())
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> SqliteResult<()> {
        let column = column as usize;
        if column == 0 && self.table.has_times() {
            return context.set_result(&self.at);
        }
        let Some(row) = &self.row else { return Ok(()) };
        let value = self.shared.guard(|| row.cell(column))?;
        context.set_result(&output(value))
    }

    fn rowid(&self) -> SqliteResult<i64> {
        Ok(self.read as i64)
    }
}
