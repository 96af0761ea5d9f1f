//! The tables of a statement, by their names.

use std::sync::Arc;

use rowplane_sql::{Catalog, Error as SqlError, Function, Table};

use super::objects::ObjectTable;
use super::session::Session;
use super::tables;

/// The tables of a session.
pub struct Tables(pub Arc<Session>);

impl Catalog for Tables {
    fn names(&self) -> Vec<String> {
        let own = tables::NAMES.iter().map(|name| (*name).to_owned());
        self.0
            .resources()
            .keys()
            .filter(|&name| !tables::NAMES.contains(&&**name))
            .cloned()
            .chain(own)
            .collect()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Table>, SqlError> {
        let Self(session) = self;
        if let Some(table) = tables::open(session, name) {
            return table;
        }
        let Some(resource) = session.resources().get(name) else {
            return Err(SqlError::statement(format!("no such table: {name}")));
        };
        let table = ObjectTable::open(session, resource)?;
        session.warn_of(name, table.visible());
        Ok(Arc::new(table))
    }

    fn views(&self) -> &[(&'static str, &'static str)] {
        tables::VIEWS
    }

    fn functions(&self) -> Vec<Function> {
        tables::functions::all()
    }
}
