//! The objects of a cluster in another program's store, and what is left behind of it.

use std::path::PathBuf;

use futures_util::StreamExt as _;
use rowplane_etcd::keys::KeyMap;
use rowplane_etcd::kine::Kine;
use rowplane_etcd::live::{CutOver, Live};
use rowplane_etcd::snapshot::Snapshot;
use rowplane_etcd::values::describe;

use super::Origin;
use super::findings::Found;
use super::records::{Changes, Objects};
use crate::cli::error::Error;
use crate::cli::keys::Keys;
use crate::cli::transfer::Summary;
use crate::cli::transfer::check::{LONGEST_IN_ETCD, each};
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::storage::SAFETY_GAP;
use crate::storage::transfer::{self, Export, Length, Meter, StoredObject};

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
    Live(Live, Option<CutOver>),
}

/// The scheme of a URL of kine's database.
const KINE: &str = "kine:";

impl Source {
    pub async fn open(origin: &Origin) -> Result<Self, Error> {
        let Origin { from, etcd_prefix, bump_revision, live, keys: _ } = origin;
        let keys = KeyMap::new(etcd_prefix);
        let failed = |name: &str, error: rowplane_etcd::Error| Error::Refused(format!("{name} {error}"));
        let (name, store) = if let Some(url) = from.strip_prefix(KINE) {
            let name = without_password(url);
            let kine = Kine::open(url).await.map_err(|error| failed(&name, error))?;
            (name, Store::Kine(kine))
        } else if let Some(endpoints) = live.endpoints(from)? {
            let opened = Live::open(endpoints, &keys.prefix()).await;
            let opened = opened.map_err(|error| failed(from, error))?;
            (from.clone(), Store::Live(opened, live.cut_over()))
        } else {
            let path = PathBuf::from(from);
            let opened = tokio::task::spawn_blocking(move || Snapshot::open(&path)).await;
            let opened = opened.map_err(|died| Error::Refused(died.to_string()))?;
            (from.clone(), Store::Snapshot(opened.map_err(|error| failed(from, error))?))
        };
        if live.follow && !matches!(store, Store::Live(..)) {
            let why = "--follow needs a running etcd or kine, as in --from etcd://HOST:PORT";
            return Err(Error::Refused(why.to_owned()));
        }
        // Nothing has been written behind the revision that a source was followed to.
        let gap = bump_revision.unwrap_or(if live.follow { 0 } else { SAFETY_GAP });
        Ok(Self { name, store, keys, gap, found: Found::default() })
    }

    /// The objects as they are stored there.
    pub fn export(self) -> Result<Export, Error> {
        let Self { name, store, keys, gap, found } = self;
        let failed = move |error: rowplane_etcd::Error| transfer::Error::Source(format!("{name} {error}"));
        match store {
            Store::Snapshot(snapshot) => {
                let mut objects = Objects::new(keys, found);
                let (revision, length) = (snapshot.revision(), Length::Objects(snapshot.count()));
                let records = snapshot.keys().map_err(&failed)?.filter_map(move |next| {
                    next.map_err(&failed).and_then(|next| objects.object_of(next)).transpose()
                });
                Ok(Export::of_records(Revision(revision), gap, length, records))
            }
            Store::Kine(kine) => {
                let mut objects = Objects::new(keys, found);
                let (revision, length) = (Revision(kine.revision()), Length::Objects(kine.count()));
                let batches = kine.keys().map(move |keys| {
                    let keys = keys.map_err(&failed)?;
                    keys.into_iter().filter_map(|next| objects.object_of(next).transpose()).collect()
                });
                Ok(Export { revision, gap, length, batches: batches.boxed() })
            }
            Store::Live(live, cut_over) => {
                let (revision, length) = (Revision(live.revision()), Length::Objects(live.count()));
                let mut changes = Changes::new(keys, found);
                let batches = live.changes(cut_over);
                let batches = batches.map(move |batch| changes.records(batch.map_err(&failed)?));
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
pub async fn check(export: Export, keys: &Keys, found: &Found, meter: &Meter) -> Result<Summary, Error> {
    each(export, meter, async |object| {
        if object.value.len() > LONGEST_IN_ETCD {
            let (resource, name, length) = (&object.resource, object.full_name(), object.value.len());
            let why = "an etcd with its default limits would not take it back";
            let text = format!("{resource} {name:?} has {length} bytes; {why}");
            found.update(|findings| findings.long.add(text));
        }
        match read(object, keys).await {
            Ok(object) => Ok(Some(object)),
            Err(error) => {
                found.update(|findings| findings.refused.add(error.to_string()));
                Ok(None)
            }
        }
    })
    .await
}
