//! How far a transfer is, for those who watch it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Record, StoredObject};

/// How much is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    #[default]
    Unknown,
    Objects(u64),
    /// Of a backup, as it stands in its file.
    Bytes(u64),
}

/// What a transfer is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Objects are read, and written elsewhere.
    #[default]
    Moving,
    /// All objects are written, and the database makes them found by their keys.
    Indexing,
    /// All is written and waits for the disk.
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

/// Counts what is moved. One writes, others may read at any time.
#[derive(Debug, Default)]
pub struct Meter {
    objects: AtomicU64,
    bytes: AtomicU64,
    stage: Mutex<(Length, Step)>,
}

impl Meter {
    /// How much is to be expected.
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

    /// So many objects are done, as somebody else has counted them.
    pub fn reach(&self, objects: u64) {
        self.objects.store(objects, Ordering::Relaxed);
    }

    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// How much is done, and of how much, in one unit; `None` as long as nobody knows.
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
    /// A tag, and each field behind its length (`storage::backup`).
    fn length_in_a_backup(&self) -> u64 {
        let fields: [usize; 8] = match self {
            Record::TokenKey(key) => return (1 + 3 * 4 + 2 * 8 + key.secret.len()) as u64,
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
