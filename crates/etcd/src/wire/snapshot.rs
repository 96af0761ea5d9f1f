//! The file of a snapshot: live keys and leases in a database of bbolt, on which a real etcd starts.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use prost::Message;

use crate::bolt::writer::{Tree, Writer};
use crate::engine::SnapshotRows;
use crate::export::{self, Metadata};

/// The number of the next file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A lease as etcd stores it.
#[derive(Clone, PartialEq, Message)]
struct StoredLease {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(int64, tag = "2")]
    ttl: i64,
}

/// Writes a file in a directory, in which it has no name any more on return.
pub fn write(rows: &SnapshotRows, directory: &Path, version: &str) -> io::Result<File> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".snapshot-{}-{number}", std::process::id()));
    let file = File::options().create_new(true).read(true).write(true).open(&path)?;
    std::fs::remove_file(&path)?;
    fill(rows, file.try_clone()?, version)?;
    Ok(file)
}

fn fill(rows: &SnapshotRows, file: File, version: &str) -> io::Result<()> {
    let mut writer = Writer::new(file)?;
    let (mut keys, mut leases) = (Tree::default(), Tree::default());
    for (key, value) in rows.rows() {
        keys.put(&mut writer, key, value)?;
    }
    let keys = keys.finish(&mut writer)?;
    for lease in &rows.leases {
        let stored = StoredLease { id: lease.id, ttl: lease.ttl };
        leases.put(&mut writer, lease.id.to_be_bytes().to_vec(), stored.encode_to_vec())?;
    }
    let leases = leases.finish(&mut writer)?;
    // The history is not in it, so what was before counts as compacted.
    let revision = rows.revision.unsigned_abs();
    let metadata = Metadata { revision, index: rows.sequence, term: rows.term, storage_version: version };
    export::finish(writer, &metadata, vec![("key", keys), ("lease", leases)])
}
