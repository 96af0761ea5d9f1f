//! What sqlx's migrator says about a database's schema, in the operator's terms.

use sqlx::migrate::MigrateError;

use super::OpenError;

/// Names what is wrong with the schema of the database at `url`.
pub fn open_error(url: &str, error: MigrateError) -> OpenError {
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
