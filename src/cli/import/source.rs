//! The objects of a cluster in another program's store, and what is left behind of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use rowplane_etcd::KeyValue;
use rowplane_etcd::keys::{KeyMap, ObjectKey};
use rowplane_etcd::kine::Kine;
use rowplane_etcd::snapshot::Snapshot;
use rowplane_etcd::values::describe;

use super::Origin;
use crate::cli::error::Error;
use crate::cli::keys::Keys;
use crate::cli::transfer::Summary;
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::storage::transfer::{self, Counts, Export, Length, Meter, Record, StoredObject};

/// How many objects are named of those that cannot be read.
const MOST_NAMED: usize = 20;

/// Keys of a source that are no objects, and objects that cannot be imported.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Keys that stand for no object, counted by their beginning.
    pub left: BTreeMap<String, u64>,
    /// The first objects that cannot be read, with the reason.
    pub unreadable: Vec<String>,
    pub unreadable_count: u64,
}

/// [`Findings`] that grow while objects are read.
#[derive(Clone, Default)]
pub struct Found(Arc<Mutex<Findings>>);

impl Found {
    fn update(&self, change: impl FnOnce(&mut Findings)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn findings(&self) -> Findings {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A cluster that can be read.
pub struct Source {
    /// The source as the user has named it, without a password.
    name: String,
    store: Store,
    keys: KeyMap,
    gap: u64,
    pub found: Found,
}

/// The store that a cluster is in.
enum Store {
    Snapshot(Snapshot),
    Kine(Kine),
}

/// The scheme of a URL of kine's database.
const KINE: &str = "kine:";

impl Source {
    pub async fn open(origin: &Origin) -> Result<Self, Error> {
        let Origin { from, etcd_prefix, bump_revision, keys: _ } = origin;
        let failed = |name: &str, error: rowplane_etcd::Error| Error::Refused(format!("{name} {error}"));
        let (name, store) = if let Some(url) = from.strip_prefix(KINE) {
            let name = without_password(url);
            let kine = Kine::open(url).await.map_err(|error| failed(&name, error))?;
            (name, Store::Kine(kine))
        } else {
            let path = PathBuf::from(from);
            let opened = tokio::task::spawn_blocking(move || Snapshot::open(&path)).await;
            let opened = opened.map_err(|died| Error::Refused(died.to_string()))?;
            (from.clone(), Store::Snapshot(opened.map_err(|error| failed(from, error))?))
        };
        let (keys, found) = (KeyMap::new(etcd_prefix), Found::default());
        Ok(Self { name, store, keys, gap: *bump_revision, found })
    }

    /// The objects as they are stored there.
    pub fn export(self) -> Result<Export, Error> {
        let Self { name, store, keys, gap, found } = self;
        let failed = move |error: rowplane_etcd::Error| transfer::Error::Source(format!("{name} {error}"));
        let mut objects = Objects { keys, previous: None, found };
        match store {
            Store::Snapshot(snapshot) => {
                let (revision, length) = (snapshot.revision(), Length::Objects(snapshot.count()));
                let records = snapshot.keys().map_err(&failed)?.filter_map(move |next| {
                    next.map_err(&failed).and_then(|next| objects.object_of(next)).transpose()
                });
                Ok(Export::of_records(Revision(revision), gap, length, records))
            }
            Store::Kine(kine) => {
                let (revision, length) = (Revision(kine.revision()), Length::Objects(kine.count()));
                let batches = kine.keys().map(move |keys| {
                    let keys = keys.map_err(&failed)?;
                    keys.into_iter().filter_map(|next| objects.object_of(next).transpose()).collect()
                });
                Ok(Export { revision, gap, length, batches: batches.boxed() })
            }
        }
    }
}

/// A URL as it may be shown.
fn without_password(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) if parsed.password().is_some() => {
            let _ = parsed.set_password(None);
            parsed.to_string()
        }
        _ => url.to_owned(),
    }
}

/// Makes records of keys, in the order of their revisions.
struct Objects {
    keys: KeyMap,
    /// The key of the object before, and its revision.
    previous: Option<(Vec<u8>, u64)>,
    found: Found,
}

impl Objects {
    /// The record of a key; `None` if it stands for no object.
    fn object_of(&mut self, next: KeyValue) -> Result<Option<Record>, transfer::Error> {
        match self.keys.object(&next.key) {
            Ok(object) => in_order(&mut self.previous, next).map(|next| Some(stored(object, next))),
            Err(left) => {
                self.found.update(|findings| *findings.left.entry(left).or_default() += 1);
                Ok(None)
            }
        }
    }
}

/// Fails if a key was written together with the one before it: no two objects of a store have the same revision.
fn in_order(previous: &mut Option<(Vec<u8>, u64)>, next: KeyValue) -> Result<KeyValue, transfer::Error> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let revision = next.mod_revision;
    if let Some((key, _)) = previous.as_ref().filter(|(_, written)| *written == revision) {
        return Err(transfer::Error::Source(format!(
            "{} and {} have the same revision {revision}: write one of them again, and take another snapshot",
            text(key),
            text(&next.key)
        )));
    }
    *previous = Some((next.key.clone(), revision));
    Ok(next)
}

fn stored(key: ObjectKey, found: KeyValue) -> Record {
    let ObjectKey { resource, namespace, name } = key;
    let (revision, value) = (Revision(found.mod_revision), found.value);
    let (uid, stored_version) = (String::new(), String::new());
    Record::Object(StoredObject { resource, namespace, name, revision, uid, stored_version, value })
}

/// Opens a value and describes it. The error says why the object cannot be imported.
pub async fn read(object: StoredObject, keys: &Keys) -> Result<StoredObject, Error> {
    let mut object = keys.open(object).await?;
    describe(&mut object);
    let draft = Draft::parse(&object.namespace, &object.name, object.value.clone().into());
    match draft.into_object(object.revision).json() {
        Ok(_) => Ok(object),
        Err(_) => {
            let what = "the stored value cannot be decoded, or its kind is none of this release";
            let (resource, name) = (&object.resource, object.full_name());
            Err(Error::Refused(format!("cannot read {resource} {name:?}: {what}")))
        }
    }
}

/// Reads all objects, and notes those that cannot be imported.
pub async fn check(mut export: Export, keys: &Keys, found: &Found, meter: &Meter) -> Result<Summary, Error> {
    meter.expect(export.length);
    let mut objects = Counts::new();
    while let Some(batch) = export.batches.next().await {
        for record in batch? {
            meter.add(&record);
            let Record::Object(object) = record else { continue };
            match read(object, keys).await {
                Ok(object) => *objects.entry(object.resource).or_default() += 1,
                Err(error) => found.update(|findings| {
                    findings.unreadable_count += 1;
                    if findings.unreadable.len() < MOST_NAMED {
                        findings.unreadable.push(error.to_string());
                    }
                }),
            }
        }
    }
    Ok(Summary { revision: export.revision, objects })
}
