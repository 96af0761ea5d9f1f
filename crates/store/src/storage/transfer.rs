//! Moving a whole store: into a file, out of one, or into another database.
//!
//! The state at one revision is moved, without its history. The target's clock is set far ahead of that revision, and
//! history before the clock counts as compacted: revisions never go back for any client, and clients list anew. Objects
//! keep their resourceVersions.

mod meter;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use tokio::sync::mpsc;

use super::stream::stream;
use super::{OpenError, Revision, TokenKey};
use crate::schema::names::GroupResource;

pub use self::meter::{Length, Meter, Step};

/// A batch is sent when it holds this many records, or this many bytes of values. Each batch costs its receiver a wait
/// or a statement.
const BATCH_RECORDS: usize = 500;
const BATCH_BYTES: usize = 2 << 20;
/// How many batches may wait for their receiver.
pub(super) const BATCHES_AHEAD: usize = 4;

/// The state of a store at one revision.
pub struct Export {
    pub revision: Revision,
    /// How far the clock of a store that is filled with the records is set ahead of them: beyond every revision that the
    /// source may have acknowledged since.
    pub gap: u64,
    /// The amount of data that the batches will bring.
    pub length: Length,
    /// The records. An error ends the stream; the records before the error are then not the whole state.
    pub batches: BoxStream<'static, Result<Vec<Record>, Error>>,
}

/// One item of a store that is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The [lag](super::Clock::lag) of the source. It comes first, unless it is 0.
    Lag(i64),
    TokenKey(TokenKey),
    Object(StoredObject),
    /// The end of an object that came earlier, at this revision. Only a source that changes while it is read sends it.
    Removed(GroupResource, Revision),
    /// The newest revision of a source that has changed while it was read. It comes once, as the last of its records.
    Reached(Revision),
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
    /// The apiVersion in which `value` is encoded.
    pub stored_version: String,
    pub value: Vec<u8>,
}

impl StoredObject {
    /// The namespace, if there is one, and the name.
    pub fn full_name(&self) -> String {
        full_name(&self.namespace, &self.name)
    }
}

/// The name of an object with its namespace before it, which is empty for cluster-scoped objects.
pub fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The number of objects, by resource.
pub type Counts = BTreeMap<GroupResource, u64>;

/// Why a store could not be moved. The target is then unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] super::Error),
    /// The target must be a new store, so that nothing in it is lost or mixed with what arrives.
    #[error("the database is not empty: it stands at revision {0}; restore into a new one")]
    NotEmpty(Revision),
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("cannot read the backup: {0}")]
    Read(Arc<std::io::Error>),
    /// A backup with this object could not be read again.
    #[error(
        "{resource} {name:?} has {bytes} bytes, and a backup cannot hold more than {limit} of one object; make it smaller, or delete it"
    )]
    TooLong { resource: GroupResource, name: String, bytes: usize, limit: usize },
    #[error("cannot encrypt the backup: {0}")]
    Sealed(String),
    /// The records come from another program's store, which cannot be read.
    #[error("{0}")]
    Source(String),
    /// A backup is of one state, and this source goes on.
    #[error("a cluster that still changes cannot be backed up")]
    Changing,
    /// The number of objects written differs from the number read.
    #[error("{resource}: {read} objects were read and {written} written")]
    Counts { resource: GroupResource, read: u64, written: u64 },
}

/// Selects all keys of continue tokens, as [`KeyRow`]s.
pub(super) const TOKEN_KEYS: &str = "SELECT id, created_at, secret FROM token_keys ORDER BY id";
pub(super) type KeyRow = (i32, i64, Vec<u8>);

/// Selects all live objects, as [`ObjectRow`]s.
pub(super) const LIVE_OBJECTS: &str = include_str!("sql/live_objects.sql");
pub(super) type ObjectRow = (String, String, String, String, i64, String, String, Vec<u8>);

/// Selects the live objects of one resource, as [`ObjectRow`]s.
pub(super) const LIVE_OBJECTS_OF: &str = include_str!("sql/live_objects_of.sql");

/// Counts the rows that [`LIVE_OBJECTS`] selects.
pub(super) const LIVE_COUNT: &str = include_str!("sql/live_count.sql");

/// Counts the objects of a store that has just been filled, as [`CountRow`]s.
pub(super) const COUNTS: &str = "SELECT r.api_group, r.plural, n.objects FROM \
     (SELECT resource, COUNT(*) AS objects FROM objects GROUP BY resource) n JOIN resources r ON r.id = n.resource";
pub(super) type CountRow = (String, String, i64);

/// Sends the contents of a store, until they end or the receiver is gone.
pub(super) async fn send(
    lag: i64,
    keys: Vec<KeyRow>,
    objects: impl Stream<Item = Result<ObjectRow, super::Error>>,
    batches: &mpsc::Sender<Result<Vec<Record>, Error>>,
) {
    let keys = keys
        .into_iter()
        .map(|(id, created_at, secret)| Ok(Record::TokenKey(TokenKey { id: id as u32, created_at, secret })));
    let objects = objects.map(|row| Ok(Record::Object(row?.into())));
    let lag = (lag != 0).then_some(Ok(Record::Lag(lag)));
    let mut all = std::pin::pin!(futures_util::stream::iter(lag.into_iter().chain(keys)).chain(objects));
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

impl Export {
    /// The records of an iterator, which a thread of its own reads ahead of their consumer.
    pub fn of_records(
        revision: Revision,
        gap: u64,
        length: Length,
        records: impl Iterator<Item = Result<Record, Error>> + Send + 'static,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let batches = stream(receiver, async move {
            let batches = sender.clone();
            if let Err(died) = tokio::task::spawn_blocking(move || send_records(records, &batches)).await {
                let died = super::Error::Unavailable(died.to_string().into());
                let _ = sender.send(Err(died.into())).await;
            }
        });
        Self { revision, gap, length, batches }
    }
}

/// Sends records until there are no more, or until the receiver is gone.
fn send_records(
    records: impl Iterator<Item = Result<Record, Error>>,
    batches: &mpsc::Sender<Result<Vec<Record>, Error>>,
) {
    let mut batch = Batch::default();
    for record in records {
        let full = match record {
            Ok(record) => batch.add(record),
            Err(error) => return drop(batches.blocking_send(Err(error))),
        };
        if let Some(full) = full
            && batches.blocking_send(Ok(full)).is_err()
        {
            return;
        }
    }
    let _ = batches.blocking_send(Ok(batch.rest()));
}

/// Gathers records into batches.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<Record>,
    bytes: usize,
}

impl Batch {
    /// Adds a record. Returns the batch if it is full now.
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

/// The records of a batch that arrived in a store, by type.
pub(super) struct Arrivals {
    pub keys: Vec<TokenKey>,
    pub objects: Vec<StoredObject>,
    /// The revisions of objects, of this batch or earlier ones, that are to go.
    pub removed: Vec<Revision>,
}

impl Arrivals {
    pub fn of(batch: Vec<Record>, received: &mut Received, meter: &Meter) -> Self {
        let objects = Vec::with_capacity(batch.len());
        let mut arrivals = Self { keys: Vec::new(), objects, removed: Vec::new() };
        for record in batch {
            meter.add(&record);
            match record {
                Record::Lag(lag) => received.lag = lag,
                Record::TokenKey(key) => arrivals.keys.push(key),
                Record::Object(object) => {
                    count(&mut received.counts, &object.resource);
                    received.newest = received.newest.max(object.revision);
                    arrivals.objects.push(object);
                }
                Record::Removed(resource, revision) => {
                    if let Some(count) = received.counts.get_mut(&resource) {
                        *count = count.saturating_sub(1);
                    }
                    arrivals.removed.push(revision);
                }
                Record::Reached(revision) => received.newest = received.newest.max(revision),
            }
        }
        arrivals
    }
}

/// Adds one object to the counts.
pub(super) fn count(counts: &mut Counts, resource: &GroupResource) {
    match counts.get_mut(resource) {
        Some(count) => *count += 1,
        None => drop(counts.insert(resource.clone(), 1)),
    }
}

/// Everything that has arrived in a store.
pub(super) struct Received {
    pub counts: Counts,
    /// The lag of the store: etcd's revisions go on from where they were, as far ahead as the clock is set.
    pub lag: i64,
    /// The revision of the state, or of an object that its source has made after it.
    newest: Revision,
    gap: u64,
}

impl Received {
    pub fn nothing_of(export: &Export) -> Self {
        Self { counts: Counts::new(), lag: 0, newest: export.revision, gap: export.gap }
    }

    /// The clock of the store.
    pub fn clock(&self) -> Revision {
        Revision(self.newest.0.saturating_add(self.gap))
    }
}

/// Fails unless exactly those objects were written that were read.
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
