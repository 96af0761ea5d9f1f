//! Loads the present state from the store: at the start, and when a replica was asleep for longer than history is kept.
//!
//! First the revisions of all live rows are read from an index, in the order of lists; so the amount of work is known.
//! Several readers then read the rows in the order of the table and decode them. Each object's place in its list is
//! known beforehand, so nothing is sorted by key.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use indicatif::HumanCount;
use tokio::task::JoinSet;

use super::decode::Source;
use super::state::{Objects, State};
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::storage::{Error, ResourceId, Row};

/// The most readers that read and decode rows at the same time; never more than there are processors. Each keeps a
/// connection.
const MOST_READERS: usize = 4;
/// Each reader in turn takes this many rows: together they read the table once, in its order.
const PIECE: usize = 2000;
/// Rows that are compacted away during a load are replaced by a new attempt, up to this many in all.
const ATTEMPTS: usize = 5;
/// How often a slow load reports its progress.
const REPORTS: Duration = Duration::from_secs(2);

/// The progress of a load. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LoadProgress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    loaded: AtomicUsize,
    /// 0 until the number is known.
    all: AtomicUsize,
}

impl LoadProgress {
    fn begin(&self, all: usize) {
        self.0.loaded.store(0, Ordering::Relaxed);
        self.0.all.store(all, Ordering::Relaxed);
    }

    fn add(&self, loaded: usize) {
        self.0.loaded.fetch_add(loaded, Ordering::Relaxed);
    }
}

impl fmt::Display for LoadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: &AtomicUsize| HumanCount(count.load(Ordering::Relaxed) as u64);
        write!(f, "loading: {} of {} objects", count(&self.0.loaded), count(&self.0.all))
    }
}

/// Reads all objects of these resources at one revision.
pub async fn load(
    source: &Source,
    resources: &[ResourceId],
    progress: &LoadProgress,
) -> Result<State, Error> {
    let mut loading = pin!(load_patiently(source, resources, progress));
    loop {
        match tokio::time::timeout(REPORTS, &mut loading).await {
            Ok(loaded) => return loaded,
            Err(_) => tracing::info!("{progress}"),
        }
    }
}

async fn load_patiently(
    source: &Source,
    resources: &[ResourceId],
    progress: &LoadProgress,
) -> Result<State, Error> {
    for _ in 1..ATTEMPTS {
        match load_once(source, resources, progress).await {
            Err(Error::Compacted { .. }) => {}
            loaded => return loaded,
        }
    }
    load_once(source, resources, progress).await
}

async fn load_once(
    source: &Source,
    resources: &[ResourceId],
    progress: &LoadProgress,
) -> Result<State, Error> {
    let at = source.backend.clock().await?.revision;
    let live = source.backend.live_revisions(resources, at).await?;
    let lengths: Vec<usize> = live.iter().map(Vec::len).collect();
    let mut objects = read(source, Places::of(live), at, progress).await?.into_iter();
    let mut state = State::at(at);
    for (resource, length) in resources.iter().zip(lengths) {
        state.load(*resource, Objects::of_sorted(objects.by_ref().take(length)));
        tokio::task::yield_now().await;
    }
    Ok(state)
}

/// The revisions to read, in the order of the table, each with its object's place in the order of lists.
struct Places(Vec<(Revision, usize)>);

impl Places {
    fn of(live: Vec<Vec<Revision>>) -> Self {
        let revisions = live.into_iter().flatten().enumerate();
        let mut places: Vec<_> = revisions.map(|(place, revision)| (revision, place)).collect();
        places.sort_unstable();
        Self(places)
    }

    /// The revisions that one of the readers has to read.
    fn share(&self, reader: usize, readers: usize) -> Vec<Revision> {
        let pieces = self.0.chunks(PIECE).skip(reader).step_by(readers);
        pieces.flatten().map(|(revision, _)| *revision).collect()
    }

    fn find(&self, revision: Revision) -> Result<usize, Error> {
        let found = self.0.binary_search_by_key(&revision, |(revision, _)| *revision);
        let found =
            found.map_err(|_| Error::Corrupt(format!("a row of revision {revision} came unasked").into()));
        found.map(|at| self.0[at].1)
    }
}

/// Reads the objects and returns them in the order of lists.
async fn read(
    source: &Source,
    places: Places,
    at: Revision,
    progress: &LoadProgress,
) -> Result<Vec<Arc<Object>>, Error> {
    let mut objects = vec![None; places.0.len()];
    progress.begin(objects.len());
    let places = Arc::new(places);
    // The readers end with this call, even if it fails.
    let mut readers = JoinSet::new();
    let most =
        std::thread::available_parallelism().map_or(1, |processors| processors.get().min(MOST_READERS));
    for share in (0..most).map(|reader| places.share(reader, most)).filter(|share| !share.is_empty()) {
        readers.spawn(read_share(source.clone(), share, places.clone(), progress.clone()));
    }
    while let Some(read) = readers.join_next().await {
        for (place, object) in read.map_err(|died| Error::Unavailable(died.to_string().into()))?? {
            objects[place] = Some(object);
        }
    }
    let objects: Option<Vec<_>> = objects.into_iter().collect();
    match (objects, source.backend.clock().await?.compacted) {
        (Some(objects), _) => Ok(objects),
        (None, oldest) if oldest > at => Err(Error::Compacted { oldest }),
        (None, _) => Err(Error::Corrupt("rows are missing that an index names".into())),
    }
}

async fn read_share(
    source: Source,
    share: Vec<Revision>,
    places: Arc<Places>,
    progress: LoadProgress,
) -> Result<Vec<(usize, Arc<Object>)>, Error> {
    let mut objects = Vec::with_capacity(share.len());
    let mut blocks = source.backend.rows_of(share).await?;
    while let Some(block) = blocks.next().await {
        let block = block?;
        progress.add(block.len());
        for row in block {
            objects.push((places.find(row.revision)?, Arc::new(decode(&source, row))));
        }
    }
    Ok(objects)
}

fn decode(source: &Source, row: Row) -> Object {
    let object = source.object(&row.namespace, &row.name, row.revision, row.value);
    if let Err(error) = object.json() {
        tracing::error!(%error, "kept as it is; reading it fails, deleting it works");
    }
    object
}
