//! The id by which a server differs from others on its host. It survives restarts.
//!
//! It is kept in a file of the data directory that no two living processes use at the same time, even if servers share
//! the directory.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use uuid::Uuid;

/// A server's id, and the name that it had last.
#[derive(Debug)]
pub struct Instance {
    /// Locked until the process ends, in whatever way.
    file: File,
    kept: Mutex<Kept>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    id: String,
    name: Option<String>,
}

impl Instance {
    /// Takes the id of the server with this port from a directory, which is created if it is missing. If a living
    /// server has that id, as is possible with port 0, takes the next one.
    pub fn take(directory: &Path, hostname: &str, port: u16) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut name = format!("{hostname}-{port}");
        for another in 1.. {
            let path = directory.join(&name);
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            match file.try_lock() {
                Ok(()) => return Self::of(file),
                Err(TryLockError::WouldBlock) => name = format!("{hostname}-{port}.{another}"),
                Err(TryLockError::Error(error)) => {
                    // A file system without locks is a remote one, and servers on other hosts have other names.
                    tracing::debug!(%error, "cannot lock the file of this server's id");
                    return Self::of(file);
                }
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    fn of(mut file: File) -> io::Result<Self> {
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        let kept = read.ok().and_then(|_| Kept::parse(&text));
        let fresh = kept.is_none();
        let instance = Self { file, kept: Mutex::new(kept.unwrap_or_else(Kept::new)) };
        if fresh {
            instance.change(|_| {})?;
        }
        Ok(instance)
    }

    pub fn id(&self) -> String {
        self.kept().id
    }

    /// The name that the server had last: the host's name, or one derived from it.
    pub fn last_name(&self) -> Option<String> {
        self.kept().name
    }

    /// Remembers the name for the next start.
    pub fn remember(&self, name: &str) -> io::Result<()> {
        if self.kept().name.as_deref() == Some(name) {
            return Ok(());
        }
        self.change(|kept| kept.name = Some(name.to_owned()))
    }

    /// Makes the next start another server, since this id is also used by a copy of the directory.
    pub fn forget(&self) -> io::Result<()> {
        self.change(|kept| *kept = Kept::new())
    }

    fn kept(&self) -> Kept {
        self.kept.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        change(&mut kept);
        let mut file = &self.file;
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(kept.text().as_bytes())
    }
}

impl Kept {
    #[expect(
        clippy::disallowed_methods,
        reason = "no two instances may have one id, however often a test begins anew"
    )]
    fn new() -> Self {
        Self { id: Uuid::new_v4().to_string(), name: None }
    }

    /// `None` if a crash has left an incomplete id.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let id = lines.next().and_then(|id| Uuid::parse_str(id).ok())?.to_string();
        Some(Self { id, name: lines.next().map(str::to_owned) })
    }

    fn text(&self) -> String {
        format!("{}\n{}\n", self.id, self.name.as_deref().unwrap_or_default()).replace("\n\n", "\n")
    }
}
