//! The live keys of a file of `etcdctl snapshot save`, or of `member/snap/db` in the data directory of an etcd that
//! has been stopped.
//!
//! etcd keeps a row for each version of a key, in the bucket `key` under the version's revision. The newest row of a
//! key is its state, which may be that it is deleted.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::bolt::Database;
use crate::values::bytes_field;
use crate::{Error, KeyValue, protowire};

/// The bucket of the versions of all keys.
const KEYS: &[u8] = b"key";
/// The bucket of etcd's own state, and the entries in it that have the revision of a compaction.
const META: &[u8] = b"meta";
const COMPACTIONS: [&[u8]; 2] = [b"scheduledCompactRev", b"finishedCompactRev"];
/// The length of a row's key: the revision, `_`, and the place within the transaction.
const REVISION: usize = 17;
/// The end of a row's key if the row is a deletion.
const TOMBSTONE: &[u8] = b"t";
/// The fields of etcd's message KeyValue, which a row is.
const KEY: i32 = 1;
const VALUE: i32 = 5;
/// The path of the database in the data directory of an etcd.
const IN_DATA_DIR: &str = "member/snap/db";

/// A snapshot that is open for reading.
pub struct Snapshot {
    database: Arc<Database>,
    /// The row that is the state of each live key.
    live: Arc<HashMap<Box<[u8]>, RowKey>>,
    /// The revision of the newest row, be it a deletion, or of a compaction after it.
    revision: u64,
}

/// The place of a row: its revision, and its place within the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    main: u64,
    sub: u64,
}

impl Snapshot {
    /// Opens a file, or the database in an etcd's data directory. Reads all keys.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = if path.is_dir() { File::open(path.join(IN_DATA_DIR)) } else { File::open(path) };
        let database = Arc::new(Database::open(file?)?);
        let (mut live, mut revision) = (HashMap::<Box<[u8]>, RowKey>::new(), 0);
        for row in rows(&database)? {
            let (row, is_deleted, value) = row?;
            revision = revision.max(row.main);
            let key = key_of(&value)?;
            if is_deleted {
                live.remove(key);
            } else {
                live.insert(key.into(), row);
            }
        }
        let revision = revision.max(compacted(&database)?);
        Ok(Self { database, live: Arc::new(live), revision })
    }

    /// The newest revision of the cluster.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of live keys.
    pub fn count(&self) -> u64 {
        self.live.len() as u64
    }

    /// The live keys, in the order of their revisions.
    pub fn keys(&self) -> Result<impl Iterator<Item = Result<KeyValue, Error>> + Send + use<>, Error> {
        let live = self.live.clone();
        Ok(rows(&self.database)?.filter_map(move |row| match row {
            Ok((row, _, value)) => if_live(&live, row, &value).transpose(),
            Err(error) => Some(Err(error)),
        }))
    }
}

fn if_live(live: &HashMap<Box<[u8]>, RowKey>, row: RowKey, value: &[u8]) -> Result<Option<KeyValue>, Error> {
    let key = key_of(value)?;
    if live.get(key) != Some(&row) {
        return Ok(None);
    }
    let value = bytes_field(value, VALUE).map_err(undecodable)?;
    Ok(Some(KeyValue { key: key.to_vec(), mod_revision: row.main, value: value.to_vec() }))
}

/// The newest revision of a compaction, of which no row may be left; 0 if there was none.
fn compacted(database: &Arc<Database>) -> Result<u64, Error> {
    let mut newest = 0;
    for entry in database.bucket(META)?.into_iter().flatten() {
        let entry = entry?;
        if COMPACTIONS.contains(&&*entry.key)
            && let Some((row, _)) = row_key(&entry.value)
        {
            newest = newest.max(row.main);
        }
    }
    Ok(newest)
}

type Row = (RowKey, bool, Vec<u8>);

/// The rows of all keys in the order of revisions, each with whether it is a deletion.
fn rows(database: &Arc<Database>) -> Result<impl Iterator<Item = Result<Row, Error>> + Send + use<>, Error> {
    let bucket = database.bucket(KEYS)?.ok_or(Error::Format("it has no bucket of keys"))?;
    Ok(bucket.map(|entry| {
        let entry = entry?;
        let (row, is_deleted) =
            row_key(&entry.key).ok_or_else(|| Error::Damaged(format!("{:x?} is no revision", entry.key)))?;
        Ok((row, is_deleted, entry.value))
    }))
}

fn row_key(key: &[u8]) -> Option<(RowKey, bool)> {
    let (revision, mark) = key.split_at_checked(REVISION)?;
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
    let row = RowKey { main: number(&revision[..8])?, sub: number(&revision[9..])? };
    let is_known = revision[8] == b'_' && i64::try_from(row.main).is_ok();
    (is_known && (mark.is_empty() || mark == TOMBSTONE)).then_some((row, mark == TOMBSTONE))
}

/// The key in a row.
fn key_of(row: &[u8]) -> Result<&[u8], Error> {
    bytes_field(row, KEY).map_err(undecodable)
}

fn undecodable(error: protowire::Error) -> Error {
    Error::Damaged(format!("a row cannot be decoded: {error}"))
}
