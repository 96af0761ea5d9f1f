//! How SQLite's errors become errors of the store.

use std::io::{self, ErrorKind};

use crate::storage::{DriverError, Error};

/// SQLite's result codes: the lowest byte is the kind.
const BUSY: i32 = 5;
const READONLY: i32 = 8;
const CANTOPEN: i32 = 14;
const FULL: i32 = 13;
const IOERR_WRITE: i32 = 778;
const IOERR_TRUNCATE: i32 = 1546;
const IOERR_FSYNC: i32 = 1034;
const IOERR_DIR_FSYNC: i32 = 1290;

const WRITABLE: &str = "the user of the server must be able to write the file and its directory";

/// A failed statement: nothing was written, and the request may be tried again later. A failed sync, however, is
/// [`Error::Broken`].
pub fn unavailable(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(IOERR_FSYNC | IOERR_DIR_FSYNC) => {
            Error::Broken(format!("SQLite could not sync: {error}").into())
        }
        _ => Error::Unavailable(error.to_string().into()),
    }
}

/// A row that does not have the shape that the schema promises.
pub fn corrupt(error: sqlx::Error) -> Error {
    Error::Corrupt(error.to_string().into())
}

/// Whether a checkpoint that failed with this error may be tried again: another connection was in the way, or there was
/// no space. SQLite reports a file that may not grow, and also a bad block, as an error of writing or of setting the
/// length. Both leave the log as it was, and the next attempt writes what was not written.
pub fn passes(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code & 0xff == BUSY || matches!(code, FULL | IOERR_WRITE | IOERR_TRUNCATE))
}

/// The step that mends an error of opening a file, if it is one of those that people make.
pub fn cure(error: &DriverError) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
            .then_some(WRITABLE);
    }
    let code = code(error.downcast_ref()?)?;
    matches!(code & 0xff, READONLY | CANTOPEN).then_some(WRITABLE)
}

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}
