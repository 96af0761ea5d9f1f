//! The files of a database: reached by a single name, used by one server, and unreadable for other users.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::private_files;
use crate::storage::OpenError;

/// Suffixes of the files that SQLite and this module keep beside a database.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];
/// Network file systems, by the magic numbers that `statfs` returns. On these, a lock on the whole file would shut out
/// SQLite itself.
const REMOTE: [u64; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];
/// How many bytes of a log are rewritten at a time.
const CHUNK: usize = 1 << 20;

/// A database that belongs to this process as long as this value lives. The kernel releases both locks when the process
/// ends.
pub struct Files {
    path: PathBuf,
    /// The open database file; its lock holds whatever name another process opens it by. It must not be closed before
    /// SQLite's connections, since closing it would release their locks.
    database: Arc<File>,
    _beside: File,
}

pub enum Error {
    /// Another server has the database.
    Held,
    /// The file has this many hard links, each of which would have a log of its own.
    Linked(u64),
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl Error {
    pub fn of(self, url: &str) -> OpenError {
        let url = url.to_owned();
        match self {
            Error::Held => OpenError::Locked(url),
            Error::Linked(names) => OpenError::Linked { url, names },
            Error::Io(source) => OpenError::Unreachable { url, source: source.into() },
        }
    }
}

impl Files {
    /// Claims a database for this process. Creates the file if it is missing.
    pub fn claim(path: &Path) -> Result<Self, Error> {
        let path = resolve(path)?;
        let beside = private().open(with_suffix(&path, ".lock"))?;
        lock(&beside)?;
        refuse_links(&path)?;
        let database = private().read(true).open(&path)?;
        if !is_remote(&database) {
            lock(&database)?;
        }
        Ok(Self { path, database: Arc::new(database), _beside: beside })
    }

    /// Whether the database file is empty.
    pub fn is_new(&self) -> io::Result<bool> {
        Ok(self.database.metadata()?.len() == 0)
    }

    /// The path of the database, from which the names of all its other files are formed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes other users' permissions from the files. To be called once the file is known to be a database of
    /// rowplane's.
    pub fn narrow(&self) {
        // SQLite gives the files that it creates the mode of the database.
        private_files::narrow(&self.path);
        for suffix in BESIDE {
            private_files::narrow(&with_suffix(&self.path, suffix));
        }
    }

    /// Opens the log that SQLite has open, and makes the log's directory entry durable.
    pub fn open_log(&self) -> io::Result<Arc<File>> {
        let log = OpenOptions::new().read(true).write(true).open(self.log())?;
        if is_open_elsewhere(&log)? == Some(false) {
            return Err(io::Error::other("SQLite writes another log than the one beside the database"));
        }
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        File::open(directory)?.sync_all()?;
        Ok(Arc::new(log))
    }

    /// Whether SQLite would still get these very files if it opened the database now.
    pub fn still_hold(&self, log: Id) -> io::Result<bool> {
        Ok(Id::of(&self.log().metadata()?) == log
            && Id::of(&self.path.metadata()?) == Id::of(&self.database.metadata()?))
    }

    /// The database file, for syncing. Its descriptor is older than all of SQLite's: the kernel reports a failed write
    /// to this descriptor even if another one has been told already.
    pub fn database(&self) -> Arc<File> {
        self.database.clone()
    }

    fn log(&self) -> PathBuf {
        with_suffix(&self.path, "-wal")
    }
}

/// Identifies a file independently of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    device: u64,
    inode: u64,
}

impl Id {
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Refuses a database that has several hard links, even for reading: the log lies beside only one of them.
pub fn refuse_links(path: &Path) -> Result<(), Error> {
    match path.metadata()?.nlink() {
        0 | 1 => Ok(()),
        names => Err(Error::Linked(names)),
    }
}

/// Rewrites the log's content and syncs it. The kernel reports a page that it could not write once, and treats it as
/// written until it is changed: a sync alone may prove nothing about what an earlier process has left.
pub fn write_again(log: &File) -> io::Result<()> {
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    loop {
        match log.read_at(&mut chunk, at) {
            Ok(0) => return log.sync_all(),
            Ok(len) => {
                log.write_all_at(&chunk[..len], at)?;
                at += len as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The path after symbolic links are resolved, from which SQLite names the files beside a database. Creates the file if
/// it is missing.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            private().open(path)?;
            path.canonicalize()
        }
        other => other,
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(private_files::MODE);
    options
}

fn lock(file: &File) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::Held),
        Err(TryLockError::Error(error)) => Err(Error::Io(error)),
    }
}

fn is_remote(file: &File) -> bool {
    // The field's width and sign differ between platforms.
    rustix::fs::fstatfs(file).is_ok_and(|system| REMOTE.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

/// Whether this process has the file open by another descriptor, too; `None` if the system does not tell.
fn is_open_elsewhere(file: &File) -> io::Result<Option<bool>> {
    let id = Id::of(&file.metadata()?);
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return Ok(None) };
    let open = descriptors.flatten().filter_map(|descriptor| descriptor.path().metadata().ok());
    Ok(Some(open.filter(|metadata| Id::of(metadata) == id).count() > 1))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_written_again_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let content: Vec<u8> = (0..CHUNK * 2 + 77).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        write_again(&File::options().read(true).write(true).open(&path).unwrap()).unwrap();
        assert!(std::fs::read(&path).unwrap() == content);
    }

    #[test]
    fn a_database_in_use_is_known_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        std::fs::write(&path, "").unwrap();
        // A lock like that of a server that has the file mounted in another directory.
        let other = File::options().write(true).open(&path).unwrap();
        other.lock().unwrap();
        assert!(matches!(Files::claim(&path), Err(Error::Held)));
        drop(other);
        assert!(Files::claim(&path).is_ok());
    }

    #[test]
    fn descriptors_of_a_file_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let first = File::create(&path).unwrap();
        assert_ne!(is_open_elsewhere(&first).unwrap(), Some(true));
        let _second = File::open(&path).unwrap();
        assert_ne!(is_open_elsewhere(&first).unwrap(), Some(false));
    }
}
