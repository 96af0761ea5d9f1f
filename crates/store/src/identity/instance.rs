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

#[cfg(test)]
mod tests {
    use super::*;

    fn take(directory: &Path) -> Instance {
        Instance::take(&directory.join("servers"), "laptop", 6443).expect("an instance")
    }

    #[test]
    fn a_restart_finds_its_id_and_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = take(directory.path());
        assert_eq!(first.last_name(), None);
        first.remember("laptop-6443").expect("kept");
        let id = first.id();
        drop(first);
        let again = take(directory.path());
        assert_eq!((again.id(), again.last_name().as_deref()), (id.clone(), Some("laptop-6443")));
        again.forget().expect("kept");
        drop(again);
        let other = take(directory.path());
        assert!(other.id() != id && other.last_name().is_none());
    }

    #[test]
    fn two_that_live_are_two() {
        let directory = tempfile::tempdir().expect("a directory");
        let (one, other) = (take(directory.path()), take(directory.path()));
        assert_ne!(one.id(), other.id());
        let id = one.id();
        drop(one);
        assert_eq!(take(directory.path()).id(), id);
    }

    #[test]
    fn what_a_crash_has_cut_is_made_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        drop(take(directory.path()));
        std::fs::write(directory.path().join("servers/laptop-6443"), "3f2a").expect("write");
        let id = take(directory.path()).id();
        assert!(Uuid::parse_str(&id).is_ok());
        assert_eq!(take(directory.path()).id(), id);
    }
}
