//! The names of a resource's objects that a controller has to look at.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::Api;
use crate::cache::{Range, Watcher};
use crate::storage::{Error, ResourceId};

/// Those that are there, and then those that change.
pub struct Names {
    watcher: Watcher,
    pub open: BTreeSet<String>,
}

impl Names {
    pub fn of(api: &Arc<Api>, resource: ResourceId) -> Self {
        let state = api.cache.any();
        let objects = state.objects(resource);
        let open = objects.range(&Range::of(None)).map(|object| object.name().to_owned()).collect();
        Self { watcher: api.cache.watch(resource, state.revision), open }
    }

    /// Returns once something has changed.
    pub async fn changed(&mut self) {
        self.watcher.changed().await;
    }

    /// Adds what has changed.
    pub async fn add_changed(&mut self) -> Result<(), Error> {
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
