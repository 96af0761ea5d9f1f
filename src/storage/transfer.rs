//! A whole store on its way elsewhere: into a file, out of one, or into another database.
//!
//! What travels is the state at one revision, without its history. The store it arrives in has a clock far ahead of
//! that revision, and history before the clock counts as compacted: revisions never go back for anybody, and clients
//! list anew. Objects keep their resourceVersions.

mod meter;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use tokio::sync::mpsc;

use super::{OpenError, Revision, SAFETY_GAP, TokenKey};
use crate::schema::names::GroupResource;

pub use self::meter::{Length, Meter, Step};

/// A batch is sent when it holds as many records, or bytes of values: each costs its receiver a wait or a statement.
const BATCH_RECORDS: usize = 500;
const BATCH_BYTES: usize = 2 << 20;
/// Batches that wait for their receiver.
pub(super) const BATCHES_AHEAD: usize = 4;

/// The state of a store at one revision.
pub struct Export {
    pub revision: Revision,
    /// How much there is to come.
    pub length: Length,
    /// An error ends it, and what came before is then not the whole state.
    pub batches: BoxStream<'static, Result<Vec<Record>, Error>>,
}

/// A piece of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    TokenKey(TokenKey),
    Object(StoredObject),
}

/// A live object as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub resource: GroupResource,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    pub revision: Revision,
    pub uid: String,
    /// The apiVersion that `value` is encoded in.
    pub stored_version: String,
    pub value: Vec<u8>,
}

/// Objects by resource.
pub type Counts = BTreeMap<GroupResource, u64>;

/// Why a store could not be moved. The target is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] super::Error),
    /// A target has to be new: nothing in it may be lost or mixed with what arrives.
    #[error("the database is not empty: it stands at revision {0}; restore into a new one")]
    NotEmpty(Revision),
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("cannot read the backup: {0}")]
    Read(Arc<std::io::Error>),
    /// What was written is not what was read.
    #[error("{resource}: {read} objects were read and {written} written")]
    Counts { resource: GroupResource, read: u64, written: u64 },
}

/// All keys of continue tokens. Gives [`KeyRow`]s.
pub(super) const TOKEN_KEYS: &str = "SELECT id, created_at, secret FROM token_keys ORDER BY id";
pub(super) type KeyRow = (i32, i64, Vec<u8>);

/// All live objects. Gives [`ObjectRow`]s.
pub(super) const LIVE_OBJECTS: &str = include_str!("sql/live_objects.sql");
pub(super) type ObjectRow = (String, String, String, String, i64, String, String, Vec<u8>);

/// Those of one resource.
pub(super) const LIVE_OBJECTS_OF: &str = include_str!("sql/live_objects_of.sql");

/// How many rows [`LIVE_OBJECTS`] gives.
pub(super) const LIVE_COUNT: &str = include_str!("sql/live_count.sql");

/// How many objects a store that has just been filled holds. Gives [`CountRow`]s.
pub(super) const COUNTS: &str = "SELECT r.api_group, r.plural, n.objects FROM \
     (SELECT resource, COUNT(*) AS objects FROM objects GROUP BY resource) n JOIN resources r ON r.id = n.resource";
pub(super) type CountRow = (String, String, i64);

/// Sends what is in a store, until nobody listens.
pub(super) async fn send(
    keys: Vec<KeyRow>,
    objects: impl Stream<Item = Result<ObjectRow, super::Error>>,
    batches: &mpsc::Sender<Result<Vec<Record>, Error>>,
) {
    let keys = keys
        .into_iter()
        .map(|(id, created_at, secret)| Ok(Record::TokenKey(TokenKey { id: id as u32, created_at, secret })));
    let objects = objects.map(|row| Ok(Record::Object(row?.into())));
    let mut all = std::pin::pin!(futures_util::stream::iter(keys).chain(objects));
    let mut batch = Batch::default();
    while let Some(record) = all.next().await {
        let full = match record {
            Ok(record) => batch.add(record),
            Err(error) => return drop(batches.send(Err(error)).await),
        };
        if let Some(full) = full
            && batches.send(Ok(full)).await.is_err()
        {
            return;
        }
    }
    let _ = batches.send(Ok(batch.rest())).await;
}

/// Gathers records into batches.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<Record>,
    bytes: usize,
}

impl Batch {
    /// The batch if it is full now.
    pub fn add(&mut self, record: Record) -> Option<Vec<Record>> {
        if let Record::Object(object) = &record {
            self.bytes += object.value.len();
        }
        self.records.push(record);
        let full = self.records.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES;
        full.then(|| std::mem::take(self).rest())
    }

    pub fn rest(self) -> Vec<Record> {
        self.records
    }
}

impl From<ObjectRow> for StoredObject {
    fn from(row: ObjectRow) -> Self {
        let (group, plural, namespace, name, revision, uid, stored_version, value) = row;
        let resource = GroupResource::new(&group, &plural);
        Self { resource, namespace, name, revision: Revision(revision as u64), uid, stored_version, value }
    }
}

/// What arrives in a store, counted.
pub(super) struct Arrivals {
    pub keys: Vec<TokenKey>,
    pub objects: Vec<StoredObject>,
}

impl Arrivals {
    pub fn of(batch: Vec<Record>, read: &mut Counts, meter: &Meter) -> Self {
        let mut arrivals = Self { keys: Vec::new(), objects: Vec::with_capacity(batch.len()) };
        for record in batch {
            meter.add(&record);
            match record {
                Record::TokenKey(key) => arrivals.keys.push(key),
                Record::Object(object) => {
                    count(read, &object.resource);
                    arrivals.objects.push(object);
                }
            }
        }
        arrivals
    }
}

/// Counts an object.
pub(super) fn count(counts: &mut Counts, resource: &GroupResource) {
    match counts.get_mut(resource) {
        Some(count) => *count += 1,
        None => drop(counts.insert(resource.clone(), 1)),
    }
}

/// Where the clock of a store stands that holds the state of `revision`: beyond whatever its source may have
/// acknowledged since.
pub(super) fn clock_after(revision: Revision) -> Revision {
    Revision(revision.0 + SAFETY_GAP)
}

/// Every object that was read has to have been written, and nothing else.
pub(super) fn compare(read: &Counts, written: Vec<CountRow>) -> Result<(), Error> {
    let written =
        written.iter().map(|(group, plural, n)| (GroupResource::new(group, plural), *n as u64)).collect();
    let resources = read.keys().chain(Counts::keys(&written));
    let count = |counts: &Counts, resource| counts.get(resource).copied().unwrap_or(0);
    for resource in resources {
        let (read, written) = (count(read, resource), count(&written, resource));
        if read != written {
            return Err(Error::Counts { resource: resource.clone(), read, written });
        }
    }
    Ok(())
}
