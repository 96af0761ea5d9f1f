//! One statement, from its text to its last row.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::types::{Type, Value};
use rusqlite::{Error as SqliteError, ErrorCode, Row, Statement as Prepared};

use crate::functions::cell;
use crate::virtual_table::Shared;
use crate::{Catalog, Cell, Error, Watch, connection};

/// A statement and its parameters.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    pub text: &'a str,
    /// The values of `?1`, `?2` and so on.
    pub parameters: Vec<Cell<'a>>,
    /// The time of the statement, for functions.
    pub now: Timestamp,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    pub name: String,
    /// The type that the column was declared with; that of the first value where the column is computed, or `NULL`.
    pub kind: String,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub rows: u64,
}

/// Takes the rows of an answer. An error ends the statement.
pub trait Sink {
    /// Called once, before the first row.
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), Error>;

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}

/// Runs a statement on this thread.
pub fn run(
    catalog: &Arc<dyn Catalog>,
    statement: &Statement<'_>,
    watch: &Arc<dyn Watch>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let shared = Arc::new(Shared::new(watch.clone()));
    let explain = |error: SqliteError| explain(error, statement.text, &**catalog, &shared);
    let connection = connection::open(catalog, &shared, statement.now)
        .map_err(|error| Error::Engine(error.to_string()))?;
    if statement.text.len() > 64 << 10 {
        return Err(Error::TooLarge("a statement may have at most 65536 bytes".to_owned()));
    }
    let mut prepared = connection.prepare(statement.text).map_err(explain)?;
    if prepared.column_count() == 0 {
        return Err(Error::statement("this is not a SELECT"));
    }
    bind(&mut prepared, &statement.parameters).map_err(|error| match error {
        Bind::Count(error) => error,
        Bind::Sqlite(error) => explain(error),
    })?;
    let mut columns: Vec<ResultColumn> = prepared
        .columns()
        .iter()
        .map(|column| ResultColumn {
            name: column.name().to_owned(),
            kind: column.decl_type().unwrap_or_default().to_owned(),
        })
        .collect();
    let (mut rows, mut count) = (prepared.raw_query(), 0);
    loop {
        let row = rows.next().map_err(explain)?;
        if count == 0 {
            columns
                .iter_mut()
                .enumerate()
                .filter(|(_, column)| column.kind.is_empty())
                .for_each(|(at, column)| column.kind = row.map_or("NULL", |row| type_of(row, at)).to_owned());
            sink.columns(&columns)?;
        }
        let Some(row) = row else { return Ok(Summary { rows: count }) };
        count += 1;
        let mut cells = Vec::with_capacity(columns.len());
        for at in 0..columns.len() {
            cells.push(row.get_ref(at).and_then(cell).map_err(explain)?);
        }
        sink.row(&cells)?;
    }
}

fn type_of(row: &Row<'_>, column: usize) -> &'static str {
    match row.get_ref(column).map(|value| value.data_type()) {
        Ok(Type::Integer) => "INTEGER",
        Ok(Type::Real) => "REAL",
        Ok(Type::Text | Type::Blob) => "TEXT",
        Ok(Type::Null) | Err(_) => "NULL",
    }
}

enum Bind {
    Count(Error),
    Sqlite(SqliteError),
}

fn bind(prepared: &mut Prepared<'_>, parameters: &[Cell<'_>]) -> Result<(), Bind> {
    let (wanted, given) = (prepared.parameter_count(), parameters.len());
    if wanted != given {
        let text = format!("the statement has {wanted} parameters, and {given} were given");
        return Err(Bind::Count(Error::statement(text)));
    }
    for (at, cell) in parameters.iter().enumerate() {
        let value = match cell {
            Cell::Null => Value::Null,
            Cell::Integer(value) => Value::Integer(*value),
            Cell::Real(value) => Value::Real(*value),
            Cell::Text(text) => Value::Text(text.as_ref().to_owned()),
        };
        prepared.raw_bind_parameter(at + 1, value).map_err(Bind::Sqlite)?;
    }
    Ok(())
}

/// The error of a statement, from what a table has said, why it was stopped, or SQLite's words.
fn explain(error: SqliteError, text: &str, catalog: &dyn Catalog, shared: &Shared) -> Error {
    if let Some(failure) = shared.take_failure() {
        return failure;
    }
    match error {
        SqliteError::MultipleStatement => Error::statement("only one statement is allowed"),
        SqliteError::SqlInputError { msg, offset, error, .. } => match error.code {
            ErrorCode::AuthorizationForStatementDenied => refused(&msg),
            _ => Error::Statement {
                message: suggest(&msg, catalog, shared).unwrap_or(msg),
                offset: usize::try_from(offset).ok().filter(|at| *at <= text.len()),
            },
        },
        SqliteError::SqliteFailure(code, message) => {
            let message = message.unwrap_or_else(|| code.to_string());
            match code.code {
                ErrorCode::AuthorizationForStatementDenied => refused(&message),
                ErrorCode::OperationInterrupted => match shared.watch.stop() {
                    Some(stop) => Error::Stopped(stop),
                    None => Error::Engine(message),
                },
                ErrorCode::TooBig => Error::TooLarge(message),
                ErrorCode::OutOfMemory
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::InternalMalfunction => Error::Engine(message),
                _ => Error::statement(suggest(&message, catalog, shared).unwrap_or(message)),
            }
        }
        other => Error::statement(other.to_string()),
    }
}

/// SQLite names tables and functions that are refused, and says no more than "not authorized" of other statements.
fn refused(message: &str) -> Error {
    match message {
        "not authorized" => Error::statement("only SELECT is allowed"),
        message => Error::statement(message),
    }
}

/// The message with the known name that is nearest to an unknown one.
fn suggest(message: &str, catalog: &dyn Catalog, shared: &Shared) -> Option<String> {
    let (name, known) = if let Some(name) = message.strip_prefix("no such table: ") {
        let views = catalog.views().iter().map(|(name, _)| (*name).to_owned());
        (name, catalog.names().into_iter().chain(views).collect::<Vec<_>>())
    } else {
        let name = message.strip_prefix("no such column: ")?;
        let tables = shared.opened();
        let columns = tables.iter().flat_map(|table| table.columns());
        (name, columns.map(|column| column.name.clone().into_owned()).collect())
    };
    let name = name.rsplit('.').next().filter(|_| message.contains("column")).unwrap_or(name);
    let distance = |known: &String| strsim::osa_distance(name, known);
    let nearest = known.iter().map(|known| (distance(known), known)).min()?;
    (nearest.0 <= 2.max(name.len() / 3)).then(|| format!("{message} (did you mean {}?)", nearest.1))
}
