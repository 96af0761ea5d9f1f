//! The high-water mark: the newest revision that this server has seen acknowledged, and where the database stood then.
//! It is kept outside the database, so that the server notices a database that comes back older than it was (a restored
//! file, a snapshot of a volume, a failover that lost commits), and one that is a different database.

mod file;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use self::file::Saved;
use crate::revision::Revision;

/// How far the clock jumps beyond the mark: other servers may have acknowledged revisions that this server never saw.
pub const SAFETY_GAP: u64 = 1_000_000;

/// The position of a PostgreSQL cluster when this server looked. The order is by age, revision first: revisions only
/// grow, even where the log position goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    pub revision: Revision,
    pub timeline: u32,
    /// The position in the write-ahead log up to which the cluster had written to its disk.
    pub flushed: u64,
    /// The cluster's system identifier; `None` where the role may not read it.
    pub system: Option<u64>,
    /// The database's own identity; `None` in what earlier builds have remembered.
    pub identity: Option<u64>,
}

/// The mark only grows. Raising it is cheap; [`HighWaterMark::save`] writes it to its file. The default mark has no
/// file, which is enough for a store that does not outlive the process.
#[derive(Default)]
pub struct HighWaterMark {
    path: Option<PathBuf>,
    /// When the file was written last, before this process read it.
    written: Option<SystemTime>,
    newest: AtomicU64,
    sighting: Mutex<Option<Sighting>>,
    /// A lower bound of what the file contains.
    saved: Mutex<Saved>,
}

impl HighWaterMark {
    /// Reads the file. A missing file means that nothing has been acknowledged yet. A file that cannot be read is
    /// reported and ignored: a power failure may leave an empty file, which must not keep a server from starting.
    pub fn load(path: PathBuf) -> Self {
        let saved = file::read(&path).unwrap_or_else(|error| {
            tracing::warn!(
                path = %path.display(),
                %error,
                "the high-water mark cannot be read; the database is taken as it is, and if it has been set back, that \
                 goes unnoticed"
            );
            Saved::default()
        });
        Self {
            written: std::fs::metadata(&path).and_then(|file| file.modified()).ok(),
            path: Some(path),
            newest: AtomicU64::new(saved.revision.0),
            sighting: Mutex::new(saved.sighting),
            saved: Mutex::new(saved),
        }
    }

    pub fn get(&self) -> Revision {
        Revision(self.newest.load(Ordering::Acquire))
    }

    pub fn raise(&self, revision: Revision) {
        self.newest.fetch_max(revision.0, Ordering::AcqRel);
    }

    /// When an earlier process has written the mark last.
    pub fn written(&self) -> Option<SystemTime> {
        self.written
    }

    /// The position of the database at the last look.
    pub fn sighting(&self) -> Option<Sighting> {
        *lock(&self.sighting)
    }

    pub fn sight(&self, sighting: Sighting) {
        *lock(&self.sighting) = Some(sighting);
    }

    /// Writes the mark durably to its file, if it has grown; blocks until the disk has it. Several servers may share
    /// the file: it never goes back, whichever server writes last.
    pub fn save(&self) -> io::Result<()> {
        let mut saved = lock(&self.saved);
        let present = Saved { revision: self.get(), sighting: self.sighting() };
        let Some(path) = self.path.as_ref().filter(|_| present != *saved) else { return Ok(()) };
        file::merge(path, present)?;
        *saved = present;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(revision: u64, flushed: u64) -> Sighting {
        Sighting { revision: Revision(revision), timeline: 1, flushed, system: Some(7), identity: Some(9) }
    }

    #[test]
    fn a_mark_survives_with_where_the_database_stood() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mark");
        let mark = HighWaterMark::load(path.clone());
        assert_eq!((mark.get(), mark.sighting()), (Revision(0), None));
        mark.raise(Revision(5));
        mark.sight(at(4, 0x1_0000_00ff));
        mark.save().unwrap();
        let mark = HighWaterMark::load(path);
        assert_eq!((mark.get(), mark.sighting()), (Revision(5), Some(at(4, 0x1_0000_00ff))));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "the mark and its lock");
    }
}
