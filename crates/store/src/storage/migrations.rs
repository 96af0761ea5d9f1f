//! Bringing a database's schema up to date, and the errors of that in the operator's terms.

use sqlx::AssertSqlSafe;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};

use super::OpenError;

/// The SQLSTATE of a statement that the role may not execute.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The SQLSTATE of a statement that has waited for a lock for longer than its session wants to.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The migrations of one kind of database, in order, put into the program. `sqlx::migrate!` does the same, but the macro
/// crate of sqlx compiles both databases' drivers once more for the compiler itself, a twentieth of a cold build.
macro_rules! embedded_migrations {
    ($directory:literal: $($file:literal),+ $(,)?) => {
        std::sync::LazyLock::new(|| {
            $crate::storage::migrations::migrator([$((
                $file,
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $directory, "/", $file)),
            )),+])
        })
    };
}
pub(super) use embedded_migrations;

/// Reads files as sqlx does: `0002_storage_versions.sql` is version 2, "storage versions".
pub fn migrator<const N: usize>(files: [(&str, &'static str); N]) -> Migrator {
    let read = |(name, sql): (&str, &'static str)| {
        let (version, description) =
            name.trim_end_matches(".sql").split_once('_').expect("a version and a name");
        let version = version.parse().expect("a number");
        let description = description.replace('_', " ").into();
        Migration::new(version, description, MigrationType::Simple, AssertSqlSafe(sql).into_sql_str(), false)
    };
    Migrator::with_migrations(files.map(read).into())
}

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
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)
            if lacks_rights(&source) =>
        {
            let reason = format!(
                "its user has to make tables and procedures there: GRANT USAGE, CREATE ON SCHEMA …, and GRANT USAGE ON LANGUAGE \
                 plpgsql, to the user ({source})"
            );
            OpenError::Refused { url: url.to_owned(), reason }
        }
        MigrateError::Execute(source) => {
            OpenError::Unreachable { url: url.to_owned(), source: source.into() }
        }
        // Others are using the tables.
        MigrateError::ExecuteMigration(source, _) if waited_in_vain(&source) => {
            OpenError::Unreachable { url: url.to_owned(), source: source.into() }
        }
        other => OpenError::ForeignSchema(other.to_string()),
    }
}

pub fn lacks_rights(error: &sqlx::Error) -> bool {
    has_code(error, INSUFFICIENT_PRIVILEGE)
}

fn waited_in_vain(error: &sqlx::Error) -> bool {
    has_code(error, LOCK_NOT_AVAILABLE)
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error.as_database_error().is_some_and(|told| told.code().as_deref() == Some(code))
}

#[cfg(test)]
mod tests {
    use super::super::{postgres, sqlite};

    #[test]
    fn every_file_is_a_migration() {
        let both = [("sqlite", &*sqlite::MIGRATIONS), ("postgres", &*postgres::MIGRATIONS)];
        for (directory, migrations) in both {
            let path = format!("{}/migrations/{directory}", env!("CARGO_MANIFEST_DIR"));
            let files = std::fs::read_dir(path).expect("a directory");
            let mut expected: Vec<String> =
                files.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect();
            expected.sort();
            let names = migrations.iter().map(|migration| {
                format!("{:04}_{}.sql", migration.version, migration.description.replace(' ', "_"))
            });
            assert_eq!(names.collect::<Vec<_>>(), expected);
        }
    }
}
