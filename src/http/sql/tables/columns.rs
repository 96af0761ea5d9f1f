//! `columns`: the columns of all tables, which `rowplane sql` completes.

use std::sync::Arc;

use rowplane_sql::{Cell, Column, ColumnType, Error as SqlError, Lookup, Row, Rows, Table};

use super::super::columns::Columns;
use super::super::session::Session;
use super::{Values, columns};

const COLUMNS: &[(&str, ColumnType)] = &[
    ("table_name", ColumnType::Text),
    ("position", ColumnType::Integer),
    ("name", ColumnType::Text),
    ("type", ColumnType::Text),
    ("hidden", ColumnType::Integer),
];

struct OfTables {
    session: Arc<Session>,
    columns: Vec<Column>,
}

pub fn table(session: &Arc<Session>) -> Arc<dyn Table> {
    Arc::new(OfTables { session: session.clone(), columns: columns(COLUMNS) })
}

impl Table for OfTables {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn key(&self) -> &[usize] {
        &[0]
    }

    fn size(&self) -> u64 {
        5_000
    }

    fn rows(&self, lookup: &Lookup) -> Result<Rows, SqlError> {
        let session = self.session.clone();
        let wanted = lookup.key.first().cloned();
        let own = super::NAMES.iter().map(|name| (*name).to_owned());
        let mut names: Vec<String> = session.resources().keys().cloned().chain(own).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| wanted.as_ref().is_none_or(|wanted| wanted.contains(name)));
        Ok(Box::new(names.into_iter().flat_map(move |name| match declared(&session, &name) {
            Ok(declared) => {
                declared.iter().enumerate().map(|(at, column)| Ok(row(&name, at, column))).collect()
            }
            Err(error) => vec![Err(error)],
        })))
    }
}

fn declared(session: &Arc<Session>, name: &str) -> Result<Vec<Column>, SqlError> {
    Ok(match (super::open(session, name), session.resources().get(name)) {
        (Some(table), _) => table?.columns().to_vec(),
        (None, Some(resource)) => Columns::of(resource).declared,
        (None, None) => Vec::new(),
    })
}

fn row(table: &str, at: usize, column: &Column) -> Arc<dyn Row> {
    Arc::new(Values(vec![
        Cell::text(table.to_owned()),
        Cell::Integer(at as i64),
        Cell::text(column.name.clone()),
        Cell::text(column.kind.as_str()),
        Cell::Integer(column.is_hidden.into()),
    ]))
}
