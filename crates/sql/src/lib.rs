//! SELECT statements over tables that a program has in memory.
//!
//! A [`Catalog`] offers tables by name; [`run`] executes one statement in a SQLite database of its own, in memory, whose
//! tables are virtual: no row is copied before the statement asks for it, and no file is attached. Equality on a column,
//! as joins need it, is answered by a hash index that is built at the first probe and dropped with the statement.
//!
//! Statements come from clients and are not trusted: an authorizer lets through reads of the catalog's tables and a list
//! of functions ([`connection`]), limits bound text, columns and values, and [`Watch`] ends a statement at any time.
//! Unsafe code is in [`virtual_table`] alone.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

mod connection;
mod functions;
mod index;
mod plan;
mod statement;
mod virtual_table;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use self::functions::{Function, parse_span};
pub use self::statement::{ResultColumn, Sink, Statement, Summary, run};

/// The most columns that a table may have.
pub const MAX_COLUMNS: usize = 2_000;

/// The tables of a statement.
pub trait Catalog: Send + Sync {
    /// The names of all tables.
    fn names(&self) -> Vec<String>;

    /// A table, when a statement mentions it first. An error fails the statement.
    fn table(&self, name: &str) -> Result<Arc<dyn Table>, Error>;

    /// Views, each with its SELECT.
    fn views(&self) -> &[(&'static str, &'static str)];

    /// Functions beside those of this crate.
    fn functions(&self) -> Vec<Function>;
}

/// A table of a [`Catalog`].
pub trait Table: Send + Sync {
    fn columns(&self) -> &[Column];

    /// The columns of the key, from its beginning: rows are found by a prefix of them without a scan.
    fn key(&self) -> &[usize];

    /// Whether the first column is hidden and names the time of the rows: `pods('2026-11-22T10:00:00Z')`.
    fn has_times(&self) -> bool {
        false
    }

    /// An estimate of the number of rows.
    fn size(&self) -> u64;

    /// The rows that [`Lookup`] wants. Others may be among them: SQLite looks again.
    fn rows(&self, lookup: &Lookup) -> Result<Rows, Error>;
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: Cow<'static, str>,
    pub kind: ColumnType,
    /// Whether `SELECT *` leaves the column out.
    pub is_hidden: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Integer,
    Real,
    Text,
    /// Values of several types.
    Any,
}

impl ColumnType {
    /// The type as SQLite declares it; empty for values of any type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
            Self::Any => "",
        }
    }
}

/// The rows that a scan wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The time of the rows as the statement spells it; `None` for the time of the statement.
    pub at: Option<String>,
    /// The values of the first columns of [`Table::key`]: one of each set.
    pub key: Vec<BTreeSet<String>>,
}

/// An iterator over rows, which an error ends.
pub type Rows = Box<dyn Iterator<Item = Result<Arc<dyn Row>, Error>> + Send>;

/// A row of a [`Table`].
pub trait Row: Send + Sync {
    /// The value of a column, by its place among [`Table::columns`]. That of the time is never asked for.
    fn cell(&self, column: usize) -> Result<Cell<'_>, Error>;
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The text of a value, NULL if there is none.
    pub fn maybe_text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Null, Self::text)
    }
}

/// The end of a statement before its last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time is over.
    Deadline,
    /// Nobody waits for its rows any more.
    Gone,
}

/// The view of a statement that may end it. Asked every few thousand steps.
pub trait Watch: Send + Sync {
    fn stop(&self) -> Option<Stop>;

    /// Counts rows that were read from a table.
    fn scanned(&self, rows: u64);
}

/// Why a statement fails.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The statement's own fault, in SQLite's words.
    #[error("{message}")]
    Statement {
        message: String,
        /// The byte of the statement at which the fault was found.
        offset: Option<usize>,
    },
    #[error("the statement was stopped: {0:?}")]
    Stopped(Stop),
    #[error("{0}")]
    TooLarge(String),
    /// A table's error.
    #[error("{0}")]
    Table(Arc<dyn std::error::Error + Send + Sync>),
    #[error("SQLite failed: {0}")]
    Engine(String),
}

impl Error {
    pub fn statement(message: impl Into<String>) -> Self {
        Self::Statement { message: message.into(), offset: None }
    }

    pub fn table(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Table(Arc::new(error))
    }
}
