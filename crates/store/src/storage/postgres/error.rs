//! How PostgreSQL's errors become errors of the store.

use crate::storage::Error;

/// A failed statement or connection: nothing was written, and the request may be tried again later.
pub fn unavailable(error: sqlx::Error) -> Error {
    Error::Unavailable(error.to_string().into())
}

/// A row that does not have the shape that the schema promises.
pub fn corrupt(error: sqlx::Error) -> Error {
    Error::Corrupt(error.to_string().into())
}
