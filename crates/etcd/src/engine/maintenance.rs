//! Facts about the store as a whole: numbers, a hash of its history, and the rows of a snapshot.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use super::events::Event;
use super::interval::Interval;
use super::keys::{Keys, Kv};
use super::state::State;
use super::{Error, Etcd, txn};
use crate::wire::messages::{HashKvRequest, HashKvResponse, KeyValue};

/// The bucket of etcd's database that has all versions.
const BUCKET: &[u8] = b"key";
/// The end of a deletion's key in the bucket.
const TOMBSTONE: u8 = b't';
/// The key that never exists, deleted in a snapshot so that its last row has the newest revision.
const RESERVED: &[u8] = b"\0rowplane/revision";

/// Figures of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub revision: i64,
    pub compact_revision: i64,
    /// The place of the state in the store's own counting.
    pub sequence: u64,
    pub term: u64,
    pub keys: usize,
    pub leases: usize,
    /// The bytes of the database; `None` where nobody knows.
    pub db_size: Option<u64>,
}

/// The live keys of one state, as rows of the bucket `key`.
pub struct SnapshotRows {
    pub revision: i64,
    pub compact_revision: i64,
    pub sequence: u64,
    pub term: u64,
    pub leases: Vec<SnapshotLease>,
    /// In the order of their rows.
    keys: Vec<Arc<Kv>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLease {
    pub id: i64,
    pub ttl: i64,
}

impl Etcd {
    pub async fn status_numbers(&self) -> Result<Numbers, Error> {
        let db_size = self.backend().size().await?;
        let state = self.state();
        Ok(Numbers {
            revision: state.revision(),
            compact_revision: state.compacted,
            sequence: state.sequence.0,
            term: self.newest_header().raft_term,
            keys: state.keys.len(),
            leases: state.leases.len(),
            db_size,
        })
    }

    /// Gives disk space back. Writers go on.
    pub async fn defragment(&self) -> Result<(), Error> {
        Ok(self.backend().reclaim().await?)
    }

    /// The rows of the newest state.
    pub async fn snapshot(&self) -> Result<SnapshotRows, Error> {
        let state = self.newest().await?;
        let leases = state.leases.iter().map(|(id, lease)| SnapshotLease { id: *id, ttl: lease.ttl });
        Ok(SnapshotRows {
            revision: state.revision(),
            compact_revision: state.compacted,
            sequence: state.sequence.0,
            term: self.newest_header().raft_term,
            leases: leases.collect(),
            keys: in_order(&state.keys),
        })
    }

    /// The hash of all versions that compaction has left, up to a revision; at most 0 for the newest.
    pub async fn hash_kv(&self, request: HashKvRequest) -> Result<HashKvResponse, Error> {
        let state = self.newest().await?;
        txn::check_revision(&state, request.revision)?;
        let revision = if request.revision > 0 { request.revision } else { state.revision() };
        let hash = self.hash(&state, revision).await?;
        let header = Some(self.header(state.revision()));
        // etcd has no other number for a history that is whole.
        let compact_revision = if state.compacted == 0 { -1 } else { state.compacted };
        Ok(HashKvResponse { header, hash, compact_revision, hash_revision: revision })
    }

    async fn hash(&self, state: &State, revision: i64) -> Result<u32, Error> {
        let everything = Interval::new(&Bytes::from_static(b"\0"), &Bytes::from_static(b"\0"));
        let mut at = self.sequence_of(state, state.compacted).await?;
        let base = match state.compacted {
            // There is nothing in the first state.
            0 => Keys::default(),
            compacted => self.keys_at(state, compacted, &everything).await?,
        };
        let to = self.sequence_of(state, revision).await?;
        let mut crc = Crc32c::default();
        crc.update(BUCKET);
        // Of the versions up to the compacted revision, etcd counts those that are still the newest ones, unless
        // there is none.
        let newest = self.keys_at(state, revision, &everything).await?;
        let counts = |kv: &Arc<Kv>| {
            newest.len() == 0 || newest.get(&kv.key).is_some_and(|newest| newest.sequence == kv.sequence)
        };
        for kv in in_order(&base).into_iter().filter(counts) {
            let (key, value) = row(&kv);
            crc.update(&key);
            crc.update(&value);
        }
        let mut last = (0, 0);
        while at < to {
            let page = self.events(at, to).await?;
            for event in &page.events {
                let place = if last.0 == event.revision { last.1 + 1 } else { 0 };
                last = (event.revision, place);
                let (key, value) = event_row(event, place);
                crc.update(&key);
                crc.update(&value);
            }
            at = page.through;
            tokio::task::yield_now().await;
        }
        Ok(crc.finish())
    }
}

impl SnapshotRows {
    /// The number of the rows.
    pub fn len(&self) -> usize {
        self.rows().count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys and values of the rows, in their order. The last one has the revision of the state.
    pub fn rows(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
        let newest = self.keys.last().map_or(0, |kv| kv.mod_revision);
        let end = (newest < self.revision).then(|| {
            let value = KeyValue { key: Bytes::from_static(RESERVED), ..KeyValue::default() };
            (row_key(self.revision, 0, true), value.encode_to_vec())
        });
        self.keys.iter().map(|kv| row(kv)).chain(end)
    }
}

/// The keys in the order of their rows.
fn in_order(keys: &Keys) -> Vec<Arc<Kv>> {
    let mut sorted: Vec<Arc<Kv>> = keys.iter().cloned().collect();
    sorted.sort_by_key(|kv| (kv.mod_revision, kv.place));
    sorted
}

fn row(kv: &Kv) -> (Vec<u8>, Vec<u8>) {
    (row_key(kv.mod_revision, kv.place, false), kv.message().encode_to_vec())
}

fn event_row(event: &Event, place: u32) -> (Vec<u8>, Vec<u8>) {
    match &event.kv {
        Some(kv) => row(kv),
        None => {
            let value = KeyValue { key: event.key.clone(), ..KeyValue::default() };
            (row_key(event.revision, place, true), value.encode_to_vec())
        }
    }
}

fn row_key(revision: i64, place: u32, is_tombstone: bool) -> Vec<u8> {
    let mut key = [&revision.to_be_bytes()[..], b"_", &u64::from(place).to_be_bytes()].concat();
    if is_tombstone {
        key.push(TOMBSTONE);
    }
    key
}

/// CRC-32C (Castagnoli), by one table.
struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Self {
        Self(!0)
    }
}

/// The polynomial, with its bits reversed.
const CASTAGNOLI: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ CASTAGNOLI } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

impl Crc32c {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 >> 8 ^ TABLE[usize::from(self.0 as u8 ^ byte)];
        }
    }

    fn finish(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        let mut crc = Crc32c::default();
        crc.update(b"123456789");
        assert_eq!(crc.finish(), 0xe306_9283);
    }
}
