//! Bringing a database's schema up to date, and the errors of that in the operator's terms.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use super::OpenError;

/// Applies those `migrations` that the database at `url` does not have yet.
pub async fn apply<C: Migrate>(
    migrations: &Migrator,
    connection: &mut C,
    url: &str,
) -> Result<(), OpenError> {
    // `Migrator::run` has a future that the compiler cannot prove to be Send when it is given a connection.
    migrations.run_direct(None, connection, false).await.map_err(|error| open_error(url, error))
}

/// Refuses a database whose newest migration this program does not know. For databases that are only read and therefore
/// not migrated.
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
