//! One server per file: an advisory lock beside the database, released by the kernel when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

pub struct FileLock {
    _file: File,
}

pub enum Error {
    Held,
    Io(io::Error),
}

impl FileLock {
    pub fn take(path: &Path) -> Result<Self, Error> {
        let file =
            OpenOptions::new().create(true).write(true).truncate(false).open(path).map_err(Error::Io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Held),
            Err(TryLockError::Error(error)) => Err(Error::Io(error)),
        }
    }
}
