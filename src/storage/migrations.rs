//! Bringing a database's schema up to date, and what can be wrong with it in the operator's terms.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use super::OpenError;

/// Applies what is missing of `migrations` to the database at `url`.
pub async fn apply<C: Migrate>(
    migrations: &Migrator,
    connection: &mut C,
    url: &str,
) -> Result<(), OpenError> {
    // Not `run`, whose future the compiler cannot prove to be Send when it is given a connection.
    migrations.run_direct(None, connection, false).await.map_err(|error| open_error(url, error))
}

/// A database that is only read is not brought up to date, but it must not hold what this program does not know.
pub fn refuse_newer(migrations: &Migrator, newest: i64) -> Result<(), OpenError> {
    match migrations.version_exists(newest) {
        true => Ok(()),
        false => Err(OpenError::NewerSchema(newest)),
    }
}

fn open_error(url: &str, error: MigrateError) -> OpenError {
    match error {
        MigrateError::VersionMissing(version) => OpenError::NewerSchema(version),
        MigrateError::VersionMismatch(version) => {
            OpenError::ForeignSchema(format!("migration {version} was not written by this program"))
        }
        MigrateError::Dirty(version) => {
            OpenError::ForeignSchema(format!("migration {version} was left half done"))
        }
        MigrateError::Execute(source) => OpenError::Unreachable { url: url.to_owned(), source },
        other => OpenError::ForeignSchema(other.to_string()),
    }
}
