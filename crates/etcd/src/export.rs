//! A snapshot on which an etcd of version 3.6 or newer starts, by `etcdutl snapshot restore`.

use std::fs::File;
use std::io;

use rowplane_store::storage::transfer::StoredObject;

use crate::bolt::writer::{Bucket, Tree, Writer};
use crate::keys::KeyMap;
use crate::protowire::write::append_bytes;

/// The version whose files these are. A newer etcd takes them for those of a cluster that it upgrades.
const STORAGE_VERSION: &str = "3.6.0";
/// The buckets besides those of keys and of metadata, which are empty in a cluster without etcd's users and leases.
const EMPTY: [&str; 8] =
    ["alarm", "auth", "authRoles", "authUsers", "cluster", "lease", "members", "members_removed"];
/// The tag of a number in etcd's message KeyValue: the fields create_revision, mod_revision and version.
const NUMBERS: [u8; 3] = [2 << 3, 3 << 3, 4 << 3];

/// Writes the objects of a cluster, which come in the order of their revisions.
pub struct SnapshotWriter {
    keys: KeyMap,
    writer: Writer,
    rows: Tree,
}

impl SnapshotWriter {
    /// Begins a snapshot in an empty file, which can be read as well.
    pub fn new(file: File, keys: KeyMap) -> io::Result<Self> {
        Ok(Self { keys, writer: Writer::new(file)?, rows: Tree::default() })
    }

    /// Adds an object whose value is as kube-apiserver would have written it.
    pub fn put(&mut self, object: &StoredObject) -> io::Result<()> {
        let mut row = Vec::with_capacity(object.value.len() + 128);
        append_bytes(&mut row, 1, self.keys.key(object).as_bytes());
        for (tag, number) in NUMBERS.into_iter().zip([object.revision.0, object.revision.0, 1]) {
            row.push(tag);
            append_varint(&mut row, number);
        }
        append_bytes(&mut row, 5, &object.value);
        self.rows.put(&mut self.writer, row_key(object.revision.0), row)
    }

    /// Ends the snapshot, which is of the state at a revision. Revisions before it count as compacted, so that an etcd
    /// goes on after it whatever its objects' revisions are.
    pub fn finish(mut self, revision: u64) -> io::Result<()> {
        let rows = self.rows.finish(&mut self.writer)?;
        let metadata = Metadata { revision, index: 1, term: 1, storage_version: STORAGE_VERSION };
        finish(self.writer, &metadata, vec![("key", rows)])
    }
}

/// The facts that an etcd knows of its database besides keys.
pub(crate) struct Metadata<'a> {
    /// The newest revision, before which all are compacted.
    pub revision: u64,
    /// The last entry of the log that is in the database, and its term.
    pub index: u64,
    pub term: u64,
    pub storage_version: &'a str,
}

/// Ends a file with all buckets that an etcd has, empty but for the metadata and those that are given.
pub(crate) fn finish(
    writer: Writer,
    metadata: &Metadata<'_>,
    given: Vec<(&'static str, Bucket)>,
) -> io::Result<()> {
    let is_given = |name: &str| given.iter().any(|(given, _)| *given == name);
    let empty = EMPTY.into_iter().filter(|name| !is_given(name));
    let mut buckets: Vec<_> = empty.map(|name| (name, Bucket::Inline(Vec::new()))).collect();
    buckets.extend(given);
    buckets.push(("meta", Bucket::Inline(metadata.entries())));
    buckets.sort_by_key(|(name, _)| *name);
    writer.finish(&buckets)
}

/// The key of a row that is the only one of its revision.
fn row_key(revision: u64) -> Vec<u8> {
    [&revision.to_be_bytes()[..], b"_", &[0; 8]].concat()
}

fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

impl Metadata<'_> {
    /// The entries of the bucket `meta`, sorted by key.
    fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = [
            ("confState", br#"{"voters":[1],"auto_leave":false}"#.to_vec()),
            ("consistent_index", self.index.to_be_bytes().to_vec()),
            ("finishedCompactRev", row_key(self.revision)),
            ("scheduledCompactRev", row_key(self.revision)),
            ("storageVersion", self.storage_version.as_bytes().to_vec()),
            ("term", self.term.to_be_bytes().to_vec()),
        ];
        entries.into_iter().map(|(key, value)| (key.as_bytes().to_vec(), value)).collect()
    }
}
