//! The names of a resource's objects that a controller has to look at.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::Api;
use crate::cache::{Range, State, Watcher};
use crate::storage::{Error, ResourceId};

/// The names of the objects that are there, and then of those that change.
pub struct Names {
    api: Arc<Api>,
    resource: ResourceId,
    watcher: Watcher,
    /// The [count of rereads](State::rereads) of the state that was looked at last.
    rereads: u64,
    pub open: BTreeSet<String>,
}

impl Names {
    pub fn of(api: &Arc<Api>, resource: ResourceId) -> Self {
        let state = api.cache.any();
        let (watcher, rereads) = (api.cache.watch(resource, state.revision), state.rereads);
        let open = all(&state, resource).collect();
        Self { api: api.clone(), resource, watcher, rereads, open }
    }

    /// Returns once something has changed.
    pub async fn changed(&mut self) {
        self.watcher.changed().await;
    }

    /// Adds what has changed; everything, if objects may be readable that were not before.
    pub async fn add_changed(&mut self) -> Result<(), Error> {
        let state = self.api.cache.any();
        if self.rereads < state.rereads {
            self.rereads = state.rereads;
            self.open.extend(all(&state, self.resource));
        }
        loop {
            let events = self.watcher.next().await?;
            if events.is_empty() {
                return Ok(());
            }
            let current = events.iter().filter_map(|event| event.current.as_ref());
            self.open.extend(current.map(|object| object.name().to_owned()));
        }
    }
}

fn all(state: &State, resource: ResourceId) -> impl Iterator<Item = String> {
    let objects = state.objects(resource);
    let names: Vec<String> = objects.range(&Range::of(None)).map(|object| object.name().to_owned()).collect();
    names.into_iter()
}
