//! Statements that are one message each. Their transactions begin and end in the database, whatever becomes of the network:
//! a message that has not arrived whole does nothing. A statement with binds is several messages, and the locks that it has
//! taken are kept until the last one arrives, for which PostgreSQL waits without a limit. So nothing else may lock the clock's
//! row, or a batch's, or rows that every server writes at its start, but the procedure.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnection, PgRow};

/// Runs a statement, and returns its rows.
pub async fn run(connection: &mut PgConnection, statement: String) -> Result<Vec<PgRow>, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(connection).await
}

/// A number or NULL in a statement.
pub fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "NULL".to_owned(), |number| format!("({number})::bigint"))
}

/// A text in a statement, whatever is in it.
pub fn text(text: &str) -> String {
    format!("convert_from({}, 'UTF8')", bytes(text.as_bytes()))
}

/// Bytes in a statement.
pub fn bytes(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("decode('{digits}', 'hex')")
}

/// The name of a schema in a statement.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
