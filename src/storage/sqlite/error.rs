//! What SQLite's errors mean to the store.

use crate::storage::Error;

/// Every failure of a statement: nothing was written, and the request may be tried again later.
pub fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(error.to_string().into())
}

/// A row that does not have the shape the schema promises.
pub fn corrupt(error: sqlx::Error) -> Error {
    Error::Corrupt(error.to_string().into())
}
