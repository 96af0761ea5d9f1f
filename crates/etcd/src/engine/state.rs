//! The newest state, as all readers share it.

use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use rowplane_store::storage::{self, Counting};

use super::events::Event;
use super::keys::{Keys, Kv};
use super::lags::{Lags, Sequence};
use super::names;
use super::notes::{self, Note};
use super::rows::{Stored, Tables};

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

/// The key of a row's name.
pub fn key_of(name: &str) -> Result<Bytes, storage::Error> {
    names::key(name).ok_or_else(|| storage::Error::Corrupt(format!("{name:?} is no name of a key").into()))
}

/// The id of the lease of a row's name.
pub fn lease_id(name: &str) -> Result<i64, storage::Error> {
    name.parse().map_err(|_| storage::Error::Corrupt(format!("{name:?} is no name of a lease").into()))
}
