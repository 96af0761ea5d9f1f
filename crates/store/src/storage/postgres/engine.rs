//! Features that an engine which speaks PostgreSQL's protocol may lack: then polling takes the place of notifications,
//! and a row that of an advisory lock.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

/// Errors that come again however often one asks: a syntax error, no such function, no such feature, no right to it.
const LACKS: [&str; 4] = ["42601", "42883", "0A000", "42501"];

/// Whether an error means that the engine, or the role, has not got what was asked for.
pub fn lacks(error: &sqlx::Error) -> bool {
    let told = error.as_database_error().and_then(|error| error.code());
    told.is_some_and(|code| LACKS.contains(&&*code))
}

/// Whether commits can be announced. Whoever listens takes this for a hint.
pub async fn notifies(connection: &mut PgConnection, channel: &str) -> Result<bool, sqlx::Error> {
    has(connection, format!("SELECT pg_notify('{channel}', '')")).await
}

/// Whether migrations can take sqlx's lock.
pub async fn has_advisory_locks(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    has(connection, "SELECT pg_try_advisory_xact_lock(-1)".to_owned()).await
}

async fn has(connection: &mut PgConnection, statement: String) -> Result<bool, sqlx::Error> {
    match connection.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await {
        Ok(_) => Ok(true),
        Err(error) if lacks(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until no other server changes the schema, and keeps others from it as long as the connection lives.
pub async fn lock_schema(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    // Servers that start at once may collide in making the table; the second attempt finds it.
    let made = connection.execute(MAKE).await;
    if made.is_err() {
        connection.execute(MAKE).await?;
    }
    connection.execute("BEGIN; SELECT FROM migration_lock FOR UPDATE").await.map(drop)
}

const MAKE: &str = "CREATE TABLE IF NOT EXISTS migration_lock (id integer PRIMARY KEY); \
     INSERT INTO migration_lock (id) VALUES (1) ON CONFLICT DO NOTHING";
