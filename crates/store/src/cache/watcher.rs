//! A watcher is a cursor on a resource's log, with the `changes` table behind it. It has no queue of its own: a slow
//! reader falls back to the table, and costs nothing else.

use std::sync::Arc;

use tokio::sync::watch;

use super::Cache;
use super::decode::Source;
use super::event::Event;
use super::log::{Log, NoEvents};
use crate::revision::Revision;
use crate::storage::{ChangeRow, Error, ResourceId};

/// Events taken at a time: about 256 KB of small objects. A burst is handled in one step, a reader that is far behind
/// takes bounded memory, and its socket is checked between steps.
const STEP: usize = 128;
/// Changes read from the table at a time, each with up to two values.
const TABLE_STEP: u32 = 200;

pub struct Watcher {
    cache: Cache,
    log: Arc<Log>,
    newest: watch::Receiver<Revision>,
    resource: ResourceId,
    at: Revision,
}

impl Watcher {
    pub(super) fn new(cache: Cache, log: Arc<Log>, resource: ResourceId, at: Revision) -> Self {
        let newest = log.subscribe();
        Self { cache, log, newest, resource, at }
    }

    /// The revision up to which all events have been returned.
    pub fn at(&self) -> Revision {
        self.at
    }

    /// The events after the cursor, in revision order; none if the cursor has caught up. Fails with
    /// [`Error::Compacted`] if they are no longer available, and with [`Error::Removed`] once the cache does not hold
    /// the resource any more.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, Error> {
        self.newest.mark_unchanged();
        // Read before the log is: everything that the state had applied by then is in the log. What is in the log and not
        // in the state yet is announced once it is in both: whoever sees an event finds what it made.
        let applied = self.cache.revision();
        match self.log.after(self.at, STEP) {
            Ok(mut events) => {
                while events.pop_if(|event| event.revision > applied).is_some() {}
                let complete = if events.len() < STEP { applied } else { Revision(0) };
                let last = events.last().map_or(complete, |event| event.revision.max(complete));
                self.at = self.at.max(last);
                Ok(events)
            }
            Err(NoEvents::OutOfWindow) => self.next_from_table(applied).await,
            Err(NoEvents::Removed) => Err(Error::Removed),
        }
    }

    /// Waits until there may be new events.
    pub async fn changed(&mut self) {
        if self.newest.changed().await.is_err() {
            // The sender lives as long as the cache, so this cannot happen while the cache is in use.
            std::future::pending().await
        }
    }

    async fn next_from_table(&mut self, applied: Revision) -> Result<Vec<Arc<Event>>, Error> {
        let backend = self.cache.backend();
        let changes = backend.changes(self.at, Some(self.resource), TABLE_STEP).await?;
        // The log may start after the changes that were just read from the table, so an empty step does not mean that
        // the cursor has caught up.
        self.newest.mark_changed();
        // What the state does not have yet is read again, from the log.
        self.at = self.at.max(changes.through.min(applied));
        let rows = changes.rows.into_iter().filter(|row| row.revision <= applied);
        Ok(rows.map(|row| Arc::new(event(&self.cache.shared.source, row))).collect())
    }
}

fn event(source: &Source, row: ChangeRow) -> Event {
    let ChangeRow { revision, key, value, previous, .. } = row;
    let object = |revision, value| Arc::new(source.object(&key.namespace, &key.name, revision, value));
    let current = value.map(|value| object(revision, value));
    let previous = previous.map(|(revision, value)| object(revision, value));
    Event::new(revision, current, previous)
}
