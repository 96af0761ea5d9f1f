//! The one task that changes the cache: it applies this server's commits as they complete, and reads the changefeed
//! for everybody else's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Cache;
use super::event::Event;
use super::load::{LoadProgress, load};
use crate::codec::object::{Draft, Object, joined_key};
use crate::revision::Revision;
use crate::storage::{ChangeRow, Error, Key, OwnCommit, ResourceId, SAFETY_GAP};

/// Changes read from the table at a time.
const PAGE: u32 = 1000;
/// After an error the table is not asked again before this.
const PAUSE: Duration = Duration::from_millis(200);

/// One write on its way into the state.
struct Applied {
    revision: Revision,
    key: Key,
    object: Option<Arc<Object>>,
}

/// Runs until the writer is gone.
pub async fn run(cache: Cache, mut commits: mpsc::Receiver<OwnCommit>, resources: Vec<ResourceId>) {
    let feed = Feed { cache, resources };
    loop {
        let outcome = tokio::select! {
            // Own commits first: clients wait for them, and they make most table reads unnecessary.
            biased;
            commit = commits.recv() => match commit {
                Some(commit) => feed.apply_own(commit).await,
                None => return,
            },
            () = feed.cache.shared.behind.notified() => feed.catch_up(None).await,
            () = feed.cache.shared.backend.hint() => {
                feed.cache.shared.snapshots.expire();
                feed.catch_up(None).await
            }
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, revision = %feed.cache.revision(), "cannot read the changefeed, will try again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

struct Feed {
    cache: Cache,
    resources: Vec<ResourceId>,
}

impl Feed {
    /// Applies a batch of this server. If other servers committed before it, their changes are fetched first; if they
    /// cannot be had, the batch is left for the next read of the table, where it stands too.
    async fn apply_own(&self, commit: OwnCommit) -> Result<(), Error> {
        let caught_up = self.catch_up(Some(commit.base)).await;
        if commit.base <= self.cache.revision() {
            let writes = commit.writes.into_iter();
            self.apply(writes.map(|write| Applied {
                revision: write.revision,
                key: write.key,
                object: write.object,
            }));
        }
        let _ = commit.published.send(());
        caught_up
    }

    /// Reads the table up to a revision, or to its end. Revisions have no gaps, so that the number of rows to read is
    /// known: what this server has committed itself need not come back from the database.
    async fn catch_up(&self, to: Option<Revision>) -> Result<(), Error> {
        let backend = &self.cache.shared.backend;
        loop {
            let at = self.cache.revision();
            let missing = to.map_or(PAGE.into(), |to| to.0.saturating_sub(at.0));
            let limit = missing.min(PAGE.into()) as u32;
            if limit == 0 {
                return Ok(());
            }
            let changes = match backend.changes(at, None, limit).await {
                Ok(changes) => changes,
                Err(Error::Compacted { .. }) => return self.reload().await,
                Err(Error::Regressed { floor, found }) => {
                    tracing::error!(%floor, %found, "the database has lost commits; its clock is moved ahead");
                    backend.advance_clock(Revision(floor.0 + SAFETY_GAP)).await?;
                    return self.reload().await;
                }
                Err(error) => return Err(error),
            };
            let full = changes.rows.len() == limit as usize;
            let through = changes.through;
            let lag = |at: Revision| {
                metrics::gauge!("rowplane_cache_lag_revisions").set(through.0.saturating_sub(at.0) as f64);
            };
            lag(at);
            self.apply(changes.rows.into_iter().map(Applied::from));
            lag(self.cache.revision());
            if !full {
                return Ok(());
            }
        }
    }

    /// Starts over: history between the state and the store is gone. Watchers behind it learn so from the store.
    async fn reload(&self) -> Result<(), Error> {
        let state = load(&self.cache.shared.backend, &self.resources, &LoadProgress::default()).await?;
        let revision = state.revision;
        let shared = &self.cache.shared;
        let logs = shared.logs.write().unwrap_or_else(|e| e.into_inner());
        *shared.loaded_at.lock().unwrap_or_else(|e| e.into_inner()) = revision;
        shared.state.store(Arc::new(state));
        for log in logs.values() {
            log.reset(revision);
        }
        shared.progress.send_replace(revision);
        Ok(())
    }

    /// Applies writes in revision order; those already applied are passed over.
    fn apply(&self, writes: impl Iterator<Item = Applied>) {
        let shared = &self.cache.shared;
        let mut state = (**shared.state.load()).clone();
        let mut events: BTreeMap<ResourceId, Vec<Arc<Event>>> = BTreeMap::new();
        for write in writes {
            if write.revision <= state.revision {
                continue;
            }
            debug_assert_eq!(write.revision.0, state.revision.0 + 1, "the changefeed has no gaps");
            state.revision = write.revision;
            let Applied { revision, key, object } = write;
            let joined = joined_key(&key.namespace, &key.name);
            let previous = state.apply(key.resource, &joined, revision, object.clone());
            events.entry(key.resource).or_default().push(Arc::new(Event::new(revision, object, previous)));
        }
        let revision = state.revision;
        // Logs first: whoever sees the new state must find the events that follow an older one.
        let touched: Vec<_> = events
            .into_iter()
            .map(|(resource, events)| {
                let log = self.cache.log(resource);
                log.append(events.into_iter());
                log
            })
            .collect();
        shared.mark.raise(revision);
        shared.state.store(Arc::new(state));
        shared.progress.send_replace(revision);
        for log in touched {
            log.announce(revision);
        }
    }
}

impl From<ChangeRow> for Applied {
    fn from(row: ChangeRow) -> Self {
        let object = row.value.map(|value| {
            let draft = Draft::parse(&row.key.namespace, &row.key.name, value);
            Arc::new(draft.into_object(row.revision))
        });
        Self { revision: row.revision, key: row.key, object }
    }
}
