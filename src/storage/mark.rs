//! The high-water mark: the newest revision this server has seen acknowledged, kept outside the database, so that a
//! database that comes back older than it was (a restored file, a failover that lost commits) is noticed.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::revision::Revision;

/// How far the clock jumps beyond the mark: other servers may have acknowledged revisions this one never saw.
pub const SAFETY_GAP: u64 = 1_000_000;

/// Grows only. Cheap to raise; written to its file by [`HighWaterMark::save`].
pub struct HighWaterMark {
    path: PathBuf,
    newest: AtomicU64,
    saved: AtomicU64,
}

impl HighWaterMark {
    /// Reads the file; a missing one means that nothing has been acknowledged yet.
    pub fn load(path: PathBuf) -> io::Result<Self> {
        let saved = match std::fs::read_to_string(&path) {
            Ok(text) => {
                text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Self { path, newest: AtomicU64::new(saved), saved: AtomicU64::new(saved) })
    }

    pub fn get(&self) -> Revision {
        Revision(self.newest.load(Ordering::Acquire))
    }

    pub fn raise(&self, revision: Revision) {
        self.newest.fetch_max(revision.0, Ordering::AcqRel);
    }

    /// Writes the mark if it has grown. Not synced: what a power failure takes is no more than a second's worth.
    pub fn save(&self) -> io::Result<()> {
        let newest = self.newest.load(Ordering::Acquire);
        if self.saved.swap(newest, Ordering::AcqRel) == newest {
            return Ok(());
        }
        // Servers may share a data directory, and their containers even a process id.
        let fresh = self.path.with_extension(format!("{:08x}.new", rand::random::<u32>()));
        std::fs::write(&fresh, format!("{newest}\n"))?;
        std::fs::rename(&fresh, &self.path)
    }
}
