//! Files, or the files of a directory, that are read again when they change.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The time between two looks at the file's metadata.
const LOOK: Duration = Duration::from_secs(1);
/// The longest time between two readings: metadata may lie.
const PERIOD: Duration = Duration::from_secs(60);

/// A file, and what it held when it was read last.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    text: Vec<u8>,
}

/// Files and directories that are looked at together.
#[derive(Debug)]
pub struct WatchedPaths {
    paths: Vec<PathBuf>,
    seen: Vec<Stamp>,
}

/// The stamp that tells most changes of a file, or of a directory and the files in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl WatchedFile {
    pub fn new(path: PathBuf, text: Vec<u8>) -> Self {
        Self { path, text }
    }

    /// The contents of the file, if they have changed since it was read last.
    pub async fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let text = tokio::fs::read(&self.path).await?;
        if text == self.text {
            return Ok(None);
        }
        self.text.clone_from(&text);
        Ok(Some(text))
    }

    /// Lets the next reading tell the text again.
    pub fn forget(&mut self) {
        self.text.clear();
    }
}

impl Stamp {
    async fn of(path: &Path) -> Self {
        let metadata = tokio::fs::metadata(path).await.ok();
        let mut stamp = Self::default();
        stamp.add(metadata.as_ref());
        if metadata.is_some_and(|metadata| metadata.is_dir())
            && let Ok(mut entries) = tokio::fs::read_dir(path).await
        {
            while let Ok(Some(entry)) = entries.next_entry().await {
                stamp.add(tokio::fs::metadata(entry.path()).await.ok().as_ref());
            }
        }
        stamp
    }

    fn add(&mut self, metadata: Option<&Metadata>) {
        let Some(metadata) = metadata else { return };
        self.modified = self.modified.max(metadata.modified().ok());
        self.length += metadata.len();
    }
}

impl WatchedPaths {
    pub async fn of(paths: Vec<PathBuf>) -> Self {
        let mut this = Self { paths, seen: Vec::new() };
        this.seen = this.stamps().await;
        this
    }

    async fn stamps(&self) -> Vec<Stamp> {
        let mut stamps = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            stamps.push(Stamp::of(path).await);
        }
        stamps
    }

    /// Waits until one of them seems to have changed, or until it is time to read them anyway.
    pub async fn changed(&mut self) {
        let start = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.stamps().await;
            if now != self.seen || start.elapsed() >= PERIOD {
                self.seen = now;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_not_changed_is_not_told_again() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut watched = WatchedFile::new(file.path().to_owned(), b"a".to_vec());
        std::fs::write(file.path(), "a").expect("writes");
        assert_eq!(watched.read().await.expect("reads"), None);
        std::fs::write(file.path(), "b").expect("writes");
        assert_eq!(watched.read().await.expect("reads").as_deref(), Some(&b"b"[..]));
        assert_eq!(watched.read().await.expect("reads"), None);
        watched.forget();
        assert_eq!(watched.read().await.expect("reads").as_deref(), Some(&b"b"[..]));
        std::fs::remove_file(file.path()).expect("removes");
        assert!(watched.read().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_any_file_is_seen_at_the_next_look() {
        let dir = tempfile::tempdir().expect("a directory");
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, "x").expect("writes"));
        let mut watched = WatchedPaths::of(paths.to_vec()).await;
        for change in ["longer", ""] {
            std::fs::write(&paths[1], change).expect("writes");
            let start = Instant::now();
            watched.changed().await;
            assert!(start.elapsed() < 2 * LOOK);
        }
        let start = Instant::now();
        watched.changed().await;
        assert!(start.elapsed() >= PERIOD);
    }
}
