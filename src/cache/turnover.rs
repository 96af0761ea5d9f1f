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
    /// Add a resource whose objects were loaded a moment ago. `loaded` contains no other resource.
    Add {
        resource: ResourceId,
        loaded: State,
        done: oneshot::Sender<Result<(), Error>>,
    },
    Remove {
        resource: ResourceId,
        done: oneshot::Sender<()>,
    },
}

impl Cache {
    /// Loads a resource and holds it from now on; does nothing if it is held already. States that are read after this
    /// call contain all of its objects.
    pub async fn add(&self, resource: ResourceId) -> Result<(), Error> {
        for _ in 1..ATTEMPTS {
            match self.load_and_add(resource).await {
                Err(Error::Compacted { .. }) => {}
                added => return added,
            }
        }
        self.load_and_add(resource).await
    }

    async fn load_and_add(&self, resource: ResourceId) -> Result<(), Error> {
        if self.any().holds(resource) {
            return Ok(());
        }
        let loaded = load(self.backend(), &[resource], &LoadProgress::default()).await?;
        self.ask_feed(|done| Turnover::Add { resource, loaded, done }).await?
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
