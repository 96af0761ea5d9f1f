//! How PostgreSQL's errors become errors of the store.

use crate::storage::{DriverError, Error};

/// The SQLSTATE of a statement that the role may not execute.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The SQLSTATE of a statement that has waited for a lock for longer than its session wants to.
const LOCK_NOT_AVAILABLE: &str = "55P03";

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

pub fn lacks_rights(error: &sqlx::Error) -> bool {
    has_code(error, INSUFFICIENT_PRIVILEGE)
}

pub fn waited_in_vain(error: &sqlx::Error) -> bool {
    has_code(error, LOCK_NOT_AVAILABLE)
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error.as_database_error().is_some_and(|told| told.code().as_deref() == Some(code))
}

/// A failed statement or connection: nothing was written, and the request may be tried again later.
pub fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(error.to_string().into())
}

/// A row that does not have the shape that the schema promises.
pub fn corrupt(error: sqlx::Error) -> Error {
    Error::Corrupt(error.to_string().into())
}
