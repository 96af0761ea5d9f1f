//! Statements that are one message each. Their transactions begin and end in the database, whatever becomes of the network:
//! a message that has not arrived whole does nothing. A statement with binds is several messages, and the locks that it has
//! taken are kept until the last one arrives. So nothing else may lock the clock's row, or a batch's, but the procedure.

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
