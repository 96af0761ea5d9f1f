//! Connections: a database in memory for one statement, with the tables of a catalog and nothing else.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use crate::functions::{self, BUILT_IN};
use crate::virtual_table::{self, Shared};
use crate::{Catalog, MAX_COLUMNS};

/// Steps of SQLite's machine between two looks at the [`Watch`](crate::Watch).
const STEPS: i32 = 2_000;

/// SQLite's own tables that statements may read.
const TABLE_FUNCTIONS: [&str; 2] = ["json_each", "json_tree"];

const LIMITS: [(Limit, i32); 10] = [
    (Limit::SQLITE_LIMIT_LENGTH, 64 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS as i32),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Opens a connection that can do nothing but read the catalog's tables.
pub fn open(
    catalog: &Arc<dyn Catalog>,
    shared: &Arc<Shared>,
    now: Timestamp,
) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    // Sorters spill to files: a limit of SQLite's memory would be one of the whole process, the store included.
    connection.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -65536")?;
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    let own = [functions::own(now), catalog.functions()].concat();
    let called: HashSet<String> =
        own.iter().map(|function| function.name).chain(BUILT_IN.iter().copied()).map(str::to_owned).collect();
    for function in own {
        functions::register(&connection, function)?;
    }
    let mut read: HashSet<String> = TABLE_FUNCTIONS.map(str::to_owned).into();
    for name in catalog.names() {
        virtual_table::register(&connection, &name, catalog, shared)?;
        read.insert(name.to_ascii_lowercase());
    }
    for (name, select) in catalog.views() {
        connection.execute_batch(&format!("CREATE VIEW {name} AS {select}"))?;
        read.insert((*name).to_owned());
    }
    let watched = shared.clone();
    connection.progress_handler(STEPS, Some(move || watched.watch.stop().is_some()))?;
    connection.authorizer(Some(move |context: AuthContext<'_>| allow(&context.action, &read, &called)))?;
    Ok(connection)
}

fn allow(action: &AuthAction<'_>, read: &HashSet<String>, called: &HashSet<String>) -> Authorization {
    let allowed = match action {
        AuthAction::Select | AuthAction::Recursive => true,
        // A table of which no column is read may be one that the statement itself defines (WITH).
        AuthAction::Read { table_name, column_name: "" } => !is_internal(table_name),
        AuthAction::Read { table_name, .. } => read.contains(&table_name.to_ascii_lowercase()),
        AuthAction::Function { function_name } => called.contains(&function_name.to_ascii_lowercase()),
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

/// Whether a table is one that SQLite has by itself.
fn is_internal(table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    ["pragma_", "sqlite_", "dbstat", "fts3", "fts4", "fts5", "rtree"]
        .iter()
        .any(|prefix| table.starts_with(prefix))
}
