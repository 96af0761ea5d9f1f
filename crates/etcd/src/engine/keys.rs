//! Live keys in memory.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdSet;
use rowplane_store::storage;

use super::interval::Interval;
use super::lags::Sequence;
use super::rows::Stored;
use crate::wire::messages::KeyValue;

/// A version of a key that is live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kv {
    pub key: Bytes,
    pub sequence: Sequence,
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub lease: i64,
    /// The place of the put among the events of its revision.
    pub place: u32,
    pub value: Bytes,
}

/// Live keys, in the order of their bytes. Clones share everything.
#[derive(Clone, Default)]
pub struct Keys {
    set: OrdSet<Entry>,
}

#[derive(Clone)]
struct Entry(Arc<Kv>);

impl Kv {
    /// A key as a row has it.
    pub fn new(
        key: Bytes,
        sequence: Sequence,
        mod_revision: i64,
        row: Stored,
    ) -> Result<Self, storage::Error> {
        let Stored::Key(row) = row else {
            return Err(storage::Error::Corrupt("a key's row is none".into()));
        };
        let create_revision = if row.create_revision == 0 { mod_revision } else { row.create_revision };
        let (version, lease, place, value) = (row.version, row.lease, row.place, row.value);
        Ok(Self { key, sequence, create_revision, mod_revision, version, lease, place, value })
    }

    /// The key as clients get it.
    pub fn message(&self) -> KeyValue {
        KeyValue {
            key: self.key.clone(),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            value: self.value.clone(),
            lease: self.lease,
        }
    }
}

impl Keys {
    pub fn len(&self) -> usize {
        self.set.len()
    }

    pub fn get(&self, key: &[u8]) -> Option<&Arc<Kv>> {
        self.set.get(key).map(|entry| &entry.0)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kv>> {
        self.set.iter().map(|entry| &entry.0)
    }

    /// The keys of an interval, in their order.
    pub fn range(&self, interval: &Interval) -> impl Iterator<Item = &Arc<Kv>> + use<'_> {
        let range = interval.bounds().map(|bounds| self.set.range::<_, [u8]>(bounds));
        range.into_iter().flatten().map(|entry| &entry.0)
    }

    /// How many keys an interval has.
    pub fn count(&self, interval: &Interval) -> usize {
        if interval.is_everything() { self.len() } else { self.range(interval).count() }
    }

    pub fn insert(&mut self, kv: Arc<Kv>) -> Option<Arc<Kv>> {
        self.set.insert(Entry(kv)).map(|entry| entry.0)
    }

    pub fn remove(&mut self, key: &[u8]) -> Option<Arc<Kv>> {
        self.set.remove(key).map(|entry| entry.0)
    }
}

impl Borrow<[u8]> for Entry {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Entry {}
