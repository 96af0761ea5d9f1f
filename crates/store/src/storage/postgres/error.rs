//! How PostgreSQL's errors become errors of the store.

use crate::storage::Error;

/// The SQLSTATE of a statement that the role may not execute.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The SQLSTATE of a statement that has waited for a lock for longer than its session wants to.
const LOCK_NOT_AVAILABLE: &str = "55P03";

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
