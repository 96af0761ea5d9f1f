//! Adding and removing resources while the cache runs. Resources are loaded beside the feed, which only takes them in.

use tokio::sync::oneshot;

use super::Cache;
use super::load::{LoadProgress, load};
use super::state::State;
use crate::storage::{Error, ResourceId};

/// How often a load is tried that takes longer than history is kept.
const ATTEMPTS: usize = 3;
/// Requests that may wait for the feed.
pub const WAITING: usize = 16;

/// A request to the feed.
pub enum Turnover {
    /// Add resources whose objects were loaded a moment ago. `loaded` contains no others.
    Add {
        loaded: State,
        /// Whether they take the place of objects that are held.
        held: Held,
        done: oneshot::Sender<Result<(), Error>>,
    },
    Remove {
        resource: ResourceId,
        done: oneshot::Sender<()>,
    },
}

/// The fate of the objects of a resource that is held already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Stay,
    /// Their values may be readable now. The resource's history is read from the store from here on.
    Go,
}

impl Cache {
    /// Loads a resource and holds it from now on; does nothing if it is held already. States that are read after this
    /// call contain all of its objects.
    pub async fn add(&self, resource: ResourceId) -> Result<(), Error> {
        self.add_all(&[resource]).await
    }

    /// The variant of [`Cache::add`] for many resources at once.
    pub async fn add_all(&self, resources: &[ResourceId]) -> Result<(), Error> {
        for _ in 1..ATTEMPTS {
            match self.load_and_add(resources, Held::Stay).await {
                Err(Error::Compacted { .. }) => {}
                added => return added,
            }
        }
        self.load_and_add(resources, Held::Stay).await
    }

    /// Reads the objects of resources again that are held, since values that could not be opened may be readable now.
    pub async fn reread(&self, resources: &[ResourceId]) -> Result<(), Error> {
        for _ in 1..ATTEMPTS {
            match self.load_and_add(resources, Held::Go).await {
                Err(Error::Compacted { .. }) => {}
                reread => return reread,
            }
        }
        self.load_and_add(resources, Held::Go).await
    }

    async fn load_and_add(&self, resources: &[ResourceId], held: Held) -> Result<(), Error> {
        let (state, wanted) = (self.any(), held == Held::Go);
        let missing: Vec<_> =
            resources.iter().copied().filter(|resource| state.holds(*resource) == wanted).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let loaded = load(&self.shared.source, &missing, &LoadProgress::default()).await?;
        self.ask_feed(|done| Turnover::Add { loaded, held, done }).await?
    }

    /// Drops a resource. Its watchers get the remaining events, and then learn that the resource is gone. Stored
    /// objects stay in the store.
    pub async fn remove(&self, resource: ResourceId) -> Result<(), Error> {
        self.ask_feed(|done| Turnover::Remove { resource, done }).await
    }

    async fn ask_feed<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Turnover) -> Result<T, Error> {
        let (done, answer) = oneshot::channel();
        self.shared.turnovers.send(request(done)).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)
    }
}
