//! A pooler between this server and the database that lends connections by the transaction or the statement. Settings,
//! prepared statements and LISTEN belong to a session, so a server cannot use one.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Executor as _, Row as _};
use tokio::time::timeout;

use super::hosts::{Host, unanswered};

/// A pooler with a single connection to lend lets the second one wait.
const ANSWER: Duration = Duration::from_secs(5);

/// The unit for which a pooler lends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lends {
    Transactions,
    Statements,
}

impl Lends {
    /// For the operator.
    pub fn reason(self) -> String {
        let mode = match self {
            Lends::Transactions => "transaction",
            Lends::Statements => "statement",
        };
        format!(
            "there is a pooler on the way that lends connections by the {mode} (pool_mode = {mode}), and rowplane's sessions have \
             settings, prepared statements and a LISTEN of their own; use pool_mode = session, or connect to PostgreSQL itself"
        )
    }
}

type Backend = (i32, Option<String>);

/// Finds out whether an idle connection keeps its backend. A second connection begins a transaction: either it gets the
/// first one's backend, or the first one, which is at rest, must still have its own.
pub async fn find(host: &Host, connection: &mut PgConnection) -> Result<Option<Lends>, sqlx::Error> {
    timeout(ANSWER, ask(host, connection)).await.unwrap_or_else(|_| Err(unanswered(ANSWER)))
}

async fn ask(host: &Host, connection: &mut PgConnection) -> Result<Option<Lends>, sqlx::Error> {
    let own = backend(connection, "").await?;
    let mut second = host.connect().await?;
    let begun = backend(&mut second, "BEGIN; ").await;
    let lent = match &begun {
        Ok(other) => *other == own || backend(connection, "").await? != own,
        Err(_) => false,
    };
    // PostgreSQL refuses neither of the two.
    let ended = second.execute("ROLLBACK").await;
    if let Some(error) = begun.err().or(ended.err()) {
        return if is_refused(&error) { Ok(Some(Lends::Statements)) } else { Err(error) };
    }
    second.close().await?;
    Ok(lent.then_some(Lends::Transactions))
}

async fn backend(connection: &mut PgConnection, before: &str) -> Result<Backend, sqlx::Error> {
    let asked = format!(
        "{before}SELECT pg_backend_pid(), \
         (SELECT a.backend_start::text FROM pg_stat_activity a WHERE a.pid = pg_backend_pid())"
    );
    let row: PgRow = connection.fetch_one(sqlx::raw_sql(sqlx::AssertSqlSafe(asked))).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// `protocol_violation`, with which PgBouncer refuses transactions.
fn is_refused(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "08P01")
}
