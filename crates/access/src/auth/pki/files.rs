//! Reads files, and writes them atomically.

use crate::failpoints::{Bug, strikes};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::Error;

/// The users who may read a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    Owner,
    Everybody,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Everybody => 0o644,
        }
    }
}

pub(super) fn create_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Error::Write { path: dir.to_owned(), source })
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Reads a file; `None` if it does not exist.
pub(super) fn try_read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}

/// Writes a new file. If another process has created it first, its content stays, and must be read.
pub(super) fn create(path: &Path, content: &[u8], access: Access) -> Result<(), Error> {
    write_through(path, content, access, |temporary| match fs::hard_link(temporary, path) {
        Ok(()) => fs::remove_file(temporary),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::remove_file(temporary),
        // On file systems without hard links, the last one of two concurrent first starts wins.
        Err(_) => fs::rename(temporary, path),
    })
}

/// Writes a file, replacing an existing one.
pub(super) fn replace(path: &Path, content: &[u8], access: Access) -> Result<(), Error> {
    write_through(path, content, access, |temporary| fs::rename(temporary, path))
}

fn write_through(
    path: &Path,
    content: &[u8],
    access: Access,
    publish: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Error> {
    let temporary = temporary_name(path);
    let written = write_synced(&temporary, content, access)
        .and_then(|()| publish(&temporary))
        .and_then(|()| sync_parent(path));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        Error::Write { path: path.to_owned(), source }
    })
}

fn write_synced(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(access.mode()).open(path)?;
    // Sets the mode explicitly, whatever the process's umask is.
    file.set_permissions(Permissions::from_mode(access.mode()))?;
    file.write_all(content)?;
    if strikes(Bug::KeysNotSynced) { Ok(()) } else { file.sync_all() }
}

/// A new file name is durable only after its directory was synced.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        _ if strikes(Bug::DirectoryNotSynced) => Ok(()),
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "other processes share the directory")]
fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{:08x}.tmp", rand::random::<u32>()))
}
