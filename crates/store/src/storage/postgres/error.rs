//! How PostgreSQL's errors become errors of the store.

use crate::storage::{DriverError, Error};

/// SQLSTATEs of connections that are refused.
const NO_DATABASE: &str = "3D000";
const BAD_PASSWORD: &str = "28P01";
const NO_ENTRY: &str = "28000";

/// The step that mends an error of connecting, if it is one of those that people make.
pub fn cure(error: &DriverError) -> Option<&'static str> {
    let error: &sqlx::Error = error.downcast_ref()?;
    if let sqlx::Error::Io(_) = error {
        return Some("check that PostgreSQL runs there, and the host and port in --datastore");
    }
    match error.as_database_error()?.code()?.as_ref() {
        NO_DATABASE => Some("create it with createdb, or correct its name in --datastore"),
        BAD_PASSWORD | NO_ENTRY => Some(
            "check the user in --datastore, its password (--datastore-password-file or PGPASSWORD), and PostgreSQL's pg_hba.conf",
        ),
        _ => None,
    }
}

/// A failed statement or connection: nothing was written, and the request may be tried again later.
pub fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(error.to_string().into())
}

/// A row that does not have the shape that the schema promises.
pub fn corrupt(error: sqlx::Error) -> Error {
    Error::Corrupt(error.to_string().into())
}
