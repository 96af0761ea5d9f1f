//! Tables that are no kind's: of several kinds, and about the server.

mod changes;
mod columns;
mod conditions;
pub mod functions;
mod listed;
mod ownership;
mod resources;

use std::borrow::Cow;
use std::sync::Arc;

use rowplane_sql::{Cell, Column, ColumnType, Error as SqlError, Lookup, Row, Rows, Table};

use super::session::Session;

/// The names of the tables.
pub const NAMES: &[&str] = &["changes", "columns", "conditions", "ownership", "resources"];

/// Views, which need the rights of what they read.
pub const VIEWS: &[(&str, &str)] = &[("containers", include_str!("tables/containers.sql"))];

/// A table by its name, if it is one of these.
pub fn open(session: &Arc<Session>, name: &str) -> Option<Result<Arc<dyn Table>, SqlError>> {
    Some(match name {
        "changes" => Ok(changes::table(session)),
        "columns" => Ok(columns::table(session)),
        "conditions" => listed::table(session, conditions::COLUMNS, conditions::rows),
        "ownership" => listed::table(session, ownership::COLUMNS, ownership::rows),
        "resources" => {
            Ok(Arc::new(Fixed { columns: columns(resources::COLUMNS), rows: resources::rows(session) }))
        }
        _ => return None,
    })
}

/// Declares columns.
fn columns(declared: &[(&'static str, ColumnType)]) -> Vec<Column> {
    let column = |(name, kind): &(&'static str, ColumnType)| Column {
        name: Cow::Borrowed(name),
        kind: *kind,
        is_hidden: false,
    };
    declared.iter().map(column).collect()
}

/// Values that are computed before the row is read.
pub struct Values(Vec<Cell<'static>>);

impl Row for Values {
    fn cell(&self, column: usize) -> Result<Cell<'_>, SqlError> {
        Ok(match self.0.get(column) {
            None | Some(Cell::Null) => Cell::Null,
            Some(Cell::Integer(value)) => Cell::Integer(*value),
            Some(Cell::Real(value)) => Cell::Real(*value),
            Some(Cell::Text(text)) => Cell::text(&**text),
        })
    }
}

/// A small table.
struct Fixed {
    columns: Vec<Column>,
    rows: Vec<Arc<dyn Row>>,
}

impl Table for Fixed {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn key(&self) -> &[usize] {
        &[]
    }

    fn size(&self) -> u64 {
        self.rows.len() as u64
    }

    fn rows(&self, _: &Lookup) -> Result<Rows, SqlError> {
        Ok(Box::new(self.rows.clone().into_iter().map(Ok)))
    }
}
