//! The newest state, as all readers share it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use rowplane_store::storage::{self, Counting};

use super::events::Event;
use super::interval::Interval;
use super::lags::{Lags, Sequence};
use super::names;
use super::notes::{self, Note};
use super::rows::{Stored, Tables};
use crate::wire::messages::KeyValue;

/// Everything that the engine keeps, at one place of the sequence. Clones share everything.
#[derive(Clone, Default)]
pub struct State {
    pub sequence: Sequence,
    pub keys: Keys,
    pub leases: OrdMap<i64, Lease>,
    /// The keys of each lease. A lease that has ended has keys only until they are deleted.
    pub attached: OrdMap<i64, OrdSet<Bytes>>,
    pub notes: OrdMap<Arc<str>, Note>,
    pub lags: Lags,
    /// The revision before which states are gone.
    pub compacted: i64,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub sequence: Sequence,
    pub ttl: i64,
}

/// A change of a row on its way into the state.
pub struct Applied {
    pub sequence: Sequence,
    pub key: storage::Key,
    pub counting: Counting,
    /// `None` if the row is deleted.
    pub row: Option<Stored>,
}

impl State {
    /// The newest revision.
    pub fn revision(&self) -> i64 {
        // All places from the one of the state on are known.
        self.lags.revision(self.sequence).unwrap_or_default()
    }

    pub fn kv(&self, key: &[u8]) -> Option<&Arc<Kv>> {
        self.keys.get(key)
    }

    /// The keys of a lease, sorted.
    pub fn attached(&self, lease: i64) -> impl Iterator<Item = &Bytes> {
        self.attached.get(&lease).into_iter().flatten()
    }

    /// The leases that have ended but still have keys.
    pub fn orphans(&self) -> impl Iterator<Item = i64> {
        self.attached.keys().copied().filter(|lease| !self.leases.contains_key(lease))
    }

    /// Takes in the change that follows. Returns what watches are told of it.
    pub fn apply(&mut self, tables: &Tables, change: Applied) -> Result<Option<Event>, storage::Error> {
        let Applied { sequence, key, counting, row } = change;
        let mod_revision = self.revision() + 1;
        self.sequence = sequence;
        self.lags.push(sequence, counting);
        let name = &*key.name;
        match row {
            None if key.resource == tables.leases => {
                self.leases.remove(&lease_id(name)?);
            }
            None if key.resource == tables.notes => {
                self.notes.remove(name);
            }
            Some(Stored::Lease(ttl)) => {
                self.leases.insert(lease_id(name)?, Lease { sequence, ttl });
            }
            Some(Stored::Note(value)) => {
                if name == notes::COMPACTION {
                    let revision = notes::number(&value).unwrap_or_default() as i64;
                    self.compacted = self.compacted.max(revision);
                }
                self.notes.insert(name.into(), Note { sequence, value });
            }
            None if key.resource == tables.keys => {
                let key = key_of(name)?;
                let Some(prev) = self.remove(&key) else { return Ok(None) };
                return Ok(Some(Event { sequence, revision: mod_revision, key, kv: None, prev: Some(prev) }));
            }
            Some(stored @ Stored::Key(_)) => {
                let kv = Arc::new(Kv::new(key_of(name)?, sequence, mod_revision, stored)?);
                let prev = self.insert(kv.clone());
                let key = kv.key.clone();
                return Ok(Some(Event { sequence, revision: mod_revision, key, kv: Some(kv), prev }));
            }
            // Another part of the server has written this.
            None => {}
        }
        Ok(None)
    }

    /// Adds a live key, and attaches it to its lease.
    pub fn insert(&mut self, kv: Arc<Kv>) -> Option<Arc<Kv>> {
        let (lease, key) = (kv.lease, kv.key.clone());
        let prev = self.keys.insert(kv);
        let was = prev.as_ref().map_or(0, |prev| prev.lease);
        if was != lease {
            self.detach(was, &key);
            if lease != 0 {
                self.attached.entry(lease).or_default().insert(key);
            }
        }
        prev
    }

    fn remove(&mut self, key: &[u8]) -> Option<Arc<Kv>> {
        let prev = self.keys.remove(key)?;
        self.detach(prev.lease, key);
        Some(prev)
    }

    fn detach(&mut self, lease: i64, key: &[u8]) {
        if let Some(keys) = self.attached.get_mut(&lease) {
            keys.remove(key);
            if keys.is_empty() {
                self.attached.remove(&lease);
            }
        }
    }
}

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

/// The key of a row's name.
pub fn key_of(name: &str) -> Result<Bytes, storage::Error> {
    names::key(name).ok_or_else(|| storage::Error::Corrupt(format!("{name:?} is no name of a key").into()))
}

/// The id of the lease of a row's name.
pub fn lease_id(name: &str) -> Result<i64, storage::Error> {
    name.parse().map_err(|_| storage::Error::Corrupt(format!("{name:?} is no name of a lease").into()))
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
