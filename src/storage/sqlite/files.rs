//! The files of a database: known by one name, used by one server, read by nobody else.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::private_files;
use crate::storage::OpenError;

/// What SQLite and this module keep beside a database.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];
/// File systems of other hosts, by what `statfs` calls them: there a lock on the whole file shuts out SQLite itself.
const REMOTE: [u64; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];
/// Bytes of a log that are written again at a time.
const CHUNK: usize = 1 << 20;

/// A database that is this process's own for as long as this lives. The kernel gives up both locks when it ends.
pub struct Files {
    path: PathBuf,
    /// The database by whatever name. Never closed before SQLite's connections: that would take their locks away.
    database: Arc<File>,
    _beside: File,
}

pub enum Error {
    /// Another server has it.
    Held,
    /// The file has so many names, each of which would have a log of its own.
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
    /// Makes the database if it is missing.
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

    /// Whether nothing has ever been written to it.
    pub fn is_new(&self) -> io::Result<bool> {
        Ok(self.database.metadata()?.len() == 0)
    }

    /// What every file of the database is named after.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes from others what they may do with the files. To be called once the database is known to be rowplane's.
    pub fn narrow(&self) {
        // SQLite gives the files that it makes the mode of the database.
        private_files::narrow(&self.path);
        for suffix in BESIDE {
            private_files::narrow(&with_suffix(&self.path, suffix));
        }
    }

    /// Opens the log that SQLite has open, and makes its name durable.
    pub fn open_log(&self) -> io::Result<Arc<File>> {
        let log = OpenOptions::new().read(true).write(true).open(self.log())?;
        if is_open_elsewhere(&log)? == Some(false) {
            return Err(io::Error::other("SQLite writes another log than the one beside the database"));
        }
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        File::open(directory)?.sync_all()?;
        Ok(Arc::new(log))
    }

    /// Whether SQLite, asked for the database now, still gets these very files.
    pub fn still_hold(&self, log: Id) -> io::Result<bool> {
        Ok(Id::of(&self.log().metadata()?) == log
            && Id::of(&self.path.metadata()?) == Id::of(&self.database.metadata()?))
    }

    /// The database file's way to the disk. This descriptor is older than all of SQLite's, so that it is told of what
    /// the kernel could not write, whoever else was.
    pub fn database(&self) -> Arc<File> {
        self.database.clone()
    }

    fn log(&self) -> PathBuf {
        with_suffix(&self.path, "-wal")
    }
}

/// A file, whatever its names are.
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

/// A database of several names is refused, also where it is only read: the log lies beside another one.
pub fn refuse_links(path: &Path) -> Result<(), Error> {
    match path.metadata()?.nlink() {
        0 | 1 => Ok(()),
        names => Err(Error::Linked(names)),
    }
}

/// Writes what is in the log once more, and syncs it. A page that could not be written is reported once and then taken
/// for written, until somebody changes it: a sync alone may prove nothing of what an earlier process has left.
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

/// SQLite resolves symbolic links before it names the files beside a database.
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
    // The type's width and sign are the platform's.
    rustix::fs::fstatfs(file).is_ok_and(|system| REMOTE.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

/// Whether this process has the file open by another descriptor, too; `None` where the system does not tell.
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
        // As a server that has it mounted in another directory.
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
