//! The procedure that commits batches has to be the one that this program knows.

use sqlx::postgres::PgConnection;

use super::{MIGRATIONS, unreachable};
use crate::storage::OpenError;

const NAME: &str = "commit_batch_3";
/// The migration that makes it, and the mark that its body stands between.
const MIGRATION: i64 = 13;
const QUOTE: &str = "$procedure$";

/// Fails if the procedure is missing, has been changed, or may not be called.
pub async fn check(connection: &mut PgConnection, shown: &str) -> Result<(), OpenError> {
    let found: Vec<(String, bool, bool)> = sqlx::query_as(include_str!("../sql/postgres/procedure.sql"))
        .bind(NAME)
        .fetch_all(connection)
        .await
        .map_err(|error| unreachable(shown, error))?;
    let wrong = match &found[..] {
        [] => "is missing",
        [(body, true, true)] if body == known_body() => return Ok(()),
        [(body, true, false)] if body == known_body() => "may not be called: grant EXECUTE on it",
        _ => "has been changed",
    };
    Err(OpenError::ForeignSchema(format!(
        "its procedure {NAME} {wrong} (it is made by migrations/postgres/0013_counting.sql)"
    )))
}

fn known_body() -> &'static str {
    let migration = MIGRATIONS.iter().find(|migration| migration.version == MIGRATION);
    migration.and_then(|migration| migration.sql.as_str().split(QUOTE).nth(1)).unwrap_or_default()
}
