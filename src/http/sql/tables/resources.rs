//! `resources`: what has a table.

use std::sync::Arc;

use rowplane_sql::{Cell, ColumnType, Row};

use super::super::session::{Session, full_name};
use super::Values;

pub const COLUMNS: &[(&str, ColumnType)] = &[
    ("name", ColumnType::Text),
    ("table_name", ColumnType::Text),
    ("api_group", ColumnType::Text),
    ("version", ColumnType::Text),
    ("kind", ColumnType::Text),
    ("namespaced", ColumnType::Integer),
    ("custom", ColumnType::Integer),
];

/// A row for each resource, by its name. `table_name` is the shortest name of its table.
pub fn rows(session: &Session) -> Vec<Arc<dyn Row>> {
    let mut rows = Vec::new();
    for (name, resource) in session.resources() {
        let full = full_name(resource);
        if *name != full {
            continue;
        }
        let definition = &resource.definition;
        let plural = definition.plural.as_str();
        let is_short = session.resources().get(plural).is_some_and(|other| other.id == resource.id);
        let values = vec![
            Cell::text(full.clone()),
            Cell::text(if is_short { plural.to_owned() } else { full }),
            Cell::text(definition.group().as_str().to_owned()),
            Cell::text(definition.version().to_owned()),
            Cell::text(definition.kind_name().as_str().to_owned()),
            Cell::Integer(definition.namespaced().into()),
            Cell::Integer(definition.is_custom().into()),
        ];
        rows.push((name, Arc::new(Values(values)) as Arc<dyn Row>));
    }
    rows.sort_by_key(|(name, _)| *name);
    rows.into_iter().map(|(_, row)| row).collect()
}
