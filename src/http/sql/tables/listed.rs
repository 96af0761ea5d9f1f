//! Tables whose rows come from the objects of all kinds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rowplane_sql::{Cell, Column, ColumnType, Error as SqlError, Lookup, Row, Rows, Table};

use super::super::objects::ObjectTable;
use super::super::rights::Visible;
use super::super::session::{Session, full_name};
use super::{Values, columns};
use crate::api::resource::Resource;
use crate::storage::ResourceId;

/// The rows of one object, behind the resource, the namespace and the name of it.
pub type RowsOf = fn(json: &[u8]) -> Vec<Vec<Cell<'static>>>;

/// The first columns of these tables. Rows are found by them.
const FIRST: [(&str, ColumnType); 3] =
    [("resource", ColumnType::Text), ("namespace", ColumnType::Text), ("name", ColumnType::Text)];

/// The size by which the planner reckons.
const SIZE: u64 = 10_000;

struct Listed {
    session: Arc<Session>,
    columns: Vec<Column>,
    rows_of: RowsOf,
    /// The tables of kinds that were read.
    opened: Mutex<HashMap<ResourceId, Arc<ObjectTable>>>,
}

/// A table of what is told of each object of every kind that the user may list.
pub fn table(
    session: &Arc<Session>,
    own: &[(&'static str, ColumnType)],
    rows_of: RowsOf,
) -> Result<Arc<dyn Table>, SqlError> {
    let declared: Vec<_> = FIRST.iter().chain(own).copied().collect();
    let (session, columns, opened) = (session.clone(), columns(&declared), Mutex::default());
    Ok(Arc::new(Listed { session, columns, rows_of, opened }))
}

impl Listed {
    fn open(&self, resource: &Arc<Resource>) -> Result<Arc<ObjectTable>, SqlError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = opened.get(&resource.id) {
            return Ok(table.clone());
        }
        let table = Arc::new(ObjectTable::open(&self.session, resource)?);
        opened.insert(resource.id, table.clone());
        Ok(table)
    }

    fn of_table(&self, table: &Arc<ObjectTable>, name: &str, lookup: Lookup) -> Result<Rows, SqlError> {
        let (table, name, rows_of) = (table.clone(), name.to_owned(), self.rows_of);
        let found = table.find(&lookup)?;
        Ok(Box::new(found.flat_map(move |object| {
            let rows = object.and_then(|object| {
                let row = table.row(object);
                let json = row.json().map_err(SqlError::table)?;
                let object = row.object();
                let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
                let first = [
                    Cell::text(name.clone()),
                    Cell::maybe_text(namespace.map(str::to_owned)),
                    Cell::text(object.name().to_owned()),
                ];
                let row = |own: Vec<Cell<'static>>| Values(first.iter().cloned().chain(own).collect());
                Ok(rows_of(json).into_iter().map(row).collect::<Vec<_>>())
            });
            match rows {
                Ok(rows) => rows.into_iter().map(|row| Ok(Arc::new(row) as Arc<dyn Row>)).collect(),
                Err(error) => vec![Err(error)],
            }
        })))
    }
}

impl Table for Listed {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn key(&self) -> &[usize] {
        &[0]
    }

    fn size(&self) -> u64 {
        SIZE
    }

    fn rows(&self, lookup: &Lookup) -> Result<Rows, SqlError> {
        let session = self.session.clone();
        let mut resources: Vec<_> =
            session.resources().iter().filter(|(name, resource)| **name == full_name(resource)).collect();
        resources.sort_by_key(|(name, _)| *name);
        let wanted = lookup.key.first();
        let mut all: Vec<Rows> = Vec::new();
        let mut hidden = 0;
        for (name, resource) in resources {
            if wanted.is_some_and(|wanted| !wanted.contains(name)) {
                continue;
            }
            let table = self.open(resource)?;
            hidden += usize::from(*table.visible() != Visible::Everything);
            all.push(self.of_table(&table, name, Lookup { at: lookup.at.clone(), key: Vec::new() })?);
        }
        if hidden > 0 {
            let user = &session.user.name;
            session.warn(format!("{hidden} resources are there only as far as \"{user}\" may list them"));
        }
        Ok(Box::new(all.into_iter().flatten()))
    }
}
