//! The progress of a transfer.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Record, StoredObject};

/// How much there is to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    #[default]
    Unknown,
    Objects(u64),
    /// The size of a backup's records in its file.
    Bytes(u64),
}

/// The present step of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Objects are read, and written elsewhere.
    #[default]
    Moving,
    /// All objects are written, and the database builds the indexes of their keys.
    Indexing,
    /// Everything is written and waits for the disk.
    Syncing,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Moving => "moving objects",
            Step::Indexing => "building the index",
            Step::Syncing => "waiting for the disk",
        })
    }
}

/// Counts what has been moved. One task writes; others may read at any time.
#[derive(Debug, Default)]
pub struct Meter {
    objects: AtomicU64,
    bytes: AtomicU64,
    stage: Mutex<(Length, Step)>,
}

impl Meter {
    /// Sets how much there is to move.
    pub fn expect(&self, length: Length) {
        self.stage().0 = length;
    }

    pub fn step(&self, step: Step) {
        self.stage().1 = step;
    }

    pub fn add(&self, record: &Record) {
        if matches!(record, Record::Object(_)) {
            self.objects.fetch_add(1, Ordering::Relaxed);
        }
        self.bytes.fetch_add(record.length_in_a_backup(), Ordering::Relaxed);
    }

    /// Sets the number of objects that are done, as counted by the caller.
    pub fn reach(&self, objects: u64) {
        self.objects.store(objects, Ordering::Relaxed);
    }

    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// How much is done, and how much there is in all, in the same unit; `None` while the total is unknown.
    pub fn share(&self) -> Option<(u64, u64)> {
        let length = self.stage().0;
        match length {
            Length::Unknown => None,
            Length::Objects(all) => Some((self.objects(), all)),
            Length::Bytes(all) => Some((self.bytes.load(Ordering::Relaxed), all)),
        }
    }

    pub fn now(&self) -> Step {
        self.stage().1
    }

    fn stage(&self) -> MutexGuard<'_, (Length, Step)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// The number of bytes that the record takes in a backup: a tag, and each field behind its length
    /// (`storage::backup`).
    fn length_in_a_backup(&self) -> u64 {
        let fields: [usize; 8] = match self {
            Record::Lag(_) => return 1 + 4 + 8,
            Record::TokenKey(key) => return (1 + 3 * 4 + 2 * 8 + key.secret.len()) as u64,
            Record::Removed(..) | Record::Reached(_) => return 0,
            Record::Object(StoredObject {
                resource,
                namespace,
                name,
                uid,
                stored_version,
                value,
                revision: _,
            }) => [
                resource.group.len(),
                resource.plural.len(),
                namespace.len(),
                name.len(),
                8,
                uid.len(),
                stored_version.len(),
                value.len(),
            ],
        };
        (1 + fields.iter().map(|field| 4 + field).sum::<usize>()) as u64
    }
}
