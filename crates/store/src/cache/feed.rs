//! The only task that changes the cache: it applies this server's commits as they complete, and reads the changefeed
//! for the commits of other servers. A read that fails is repeated until it succeeds: a write is not answered before
//! readers of this cache can see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Cache;
use super::decode::Source;
use super::event::Event;
use super::load::{LoadProgress, load};
use super::state::State;
use super::turnover::{Held, Turnover};
use crate::codec::object::{Object, joined_key};
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::storage::{ChangeRow, Error, Key, OwnCommit, OwnWrite, ResourceId, SAFETY_GAP};

/// Changes read from the table at a time.
const PAGE: u32 = 1000;
/// The pause after an error before the table is read again.
const PAUSE: Duration = Duration::from_millis(200);

/// One write on its way into the state.
struct Applied {
    revision: Revision,
    key: Key,
    object: Option<Arc<Object>>,
}

/// The changes lack the revision that should follow `after`; the next one is `found`.
#[derive(Debug)]
struct Gap {
    after: Revision,
    found: Revision,
}

/// Runs until the writer is gone, or until its tasks are being stopped and the writer's commits are published.
pub async fn run(
    cache: Cache,
    mut commits: mpsc::Receiver<OwnCommit>,
    mut turnovers: mpsc::Receiver<Turnover>,
    runtime: Runtime,
) {
    let feed = Feed { cache, runtime };
    let shared = &feed.cache.shared;
    loop {
        let outcome = tokio::select! {
            biased;
            // Turnovers come before commits: they are rare, and there may always be another commit.
            Some(turnover) = turnovers.recv() => {
                feed.turn_over(turnover).await;
                Ok(())
            }
            // Own commits come before reads: clients wait for them, and they make most reads of the table unnecessary.
            commit = commits.recv() => match commit {
                Some(commit) => {
                    feed.publish(commit).await;
                    Ok(())
                }
                None => return,
            },
            () = feed.runtime.tasks.stopping(), if !commits.is_closed() => {
                commits.close();
                Ok(())
            }
            () = shared.behind.notified() => feed.catch_up(None).await,
            () = shared.source.backend.hint() => feed.catch_up(None).await,
        };
        if let Err(error) = outcome {
            feed.warn(&error);
            sleep(PAUSE).await;
            // The table is read regularly: not every database gives hints, and perhaps no request ever asks.
            shared.behind.notify_one();
        }
    }
}

struct Feed {
    cache: Cache,
    runtime: Runtime,
}

impl Feed {
    /// Applies a batch of this server and notifies its writer. If other servers have committed before the batch, first
    /// reads their changes, again and again until that succeeds; so it does with a batch whose values came as bytes. If the
    /// server stops meanwhile, the writer gets no answer.
    async fn publish(&self, commit: OwnCommit) {
        let OwnCommit { base, writes, published } = commit;
        let last = writes.last().map_or(base, |write| write.revision);
        let state = self.cache.shared.state.load_full();
        let own = writes.into_iter().map(|write| Applied::own(write, &state));
        let own: Option<Vec<Applied>> = own.collect();
        let known = if own.is_some() { base } else { last };
        while let Err(error) = self.reach(known).await {
            self.warn(&error);
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = self.runtime.tasks.stopping() => return,
            }
        }
        // The revisions of a batch follow its base without a gap.
        if self.take(own.unwrap_or_default().into_iter()).await.is_ok() {
            let _ = published.send(());
        }
    }

    /// Reads the table until the cache is at `base` or later.
    async fn reach(&self, base: Revision) -> Result<(), Error> {
        if strikes(Bug::CatchUpSkipped) {
            return Ok(());
        }
        self.catch_up(Some(base)).await?;
        let current = self.cache.revision();
        if current < base {
            return Err(Error::Future { requested: base, current });
        }
        Ok(())
    }

    async fn turn_over(&self, turnover: Turnover) {
        // The caller may have stopped waiting.
        match turnover {
            Turnover::Add { loaded, held, done } => {
                let _ = done.send(self.add(loaded, held).await);
            }
            Turnover::Remove { resource, done } => {
                self.remove(resource);
                let _ = done.send(());
            }
        }
    }

    /// Takes in resources that were loaded beside the feed. Their changes since then are read from the table; meanwhile
    /// nothing else is applied.
    async fn add(&self, mut loaded: State, held: Held) -> Result<(), Error> {
        self.reach(loaded.revision).await?;
        let shared = &self.cache.shared;
        let mut state = (**shared.state.load()).clone();
        // Who asks for one resource need not wait for what has happened to others.
        let only = loaded.resources().next().filter(|_| loaded.resources().nth(1).is_none());
        while loaded.revision < state.revision {
            let changes = shared.source.backend.changes(loaded.revision, only, PAGE).await?;
            let missing = changes.rows.into_iter().take_while(|row| row.revision <= state.revision);
            for Applied { revision, key, object } in missing.map(|row| Applied::read(&shared.source, row)) {
                let _ = loaded.apply(key.resource, &joined_key(&key.namespace, &key.name), revision, object);
            }
            loaded.revision = changes.through;
        }
        loaded.revision = state.revision;
        let mut logs = Vec::new();
        for resource in loaded.resources() {
            match (state.holds(resource), held) {
                (false, Held::Stay) => state.load(resource, loaded.objects(resource)),
                (true, Held::Go) => {
                    state.load(resource, loaded.objects(resource));
                    state.rereads += 1;
                    logs.push(self.cache.log(resource));
                    shared.snapshots.forget(resource);
                }
                // It is there already, or not served any more.
                (true, Held::Stay) | (false, Held::Go) => {}
            }
        }
        let revision = state.revision;
        self.replace(state);
        logs.iter().for_each(|log| log.reset(revision));
        Ok(())
    }

    /// Drops a resource: first its objects, so that no new log is made for it, and then its log.
    fn remove(&self, resource: ResourceId) {
        let shared = &self.cache.shared;
        let mut state = (**shared.state.load()).clone();
        state.remove(resource);
        self.replace(state);
        let log = shared.logs.write().unwrap_or_else(|e| e.into_inner()).remove(&resource);
        if let Some(log) = log {
            log.close();
        }
        shared.snapshots.forget(resource);
    }

    /// Makes this the current state. Nothing but the feed does so.
    fn replace(&self, mut state: State) {
        let current = &self.cache.shared.state;
        state.serial = current.load().serial + 1;
        current.store(Arc::new(state));
    }

    fn warn(&self, error: &Error) {
        let revision = self.cache.revision();
        tracing::warn!(%error, %revision, "cannot read the changefeed, will try again");
    }

    /// Reads the table up to a revision, or to its end. Revisions have no gaps, so the number of missing rows is known,
    /// and rows that this server has committed itself are not read back from the database.
    async fn catch_up(&self, to: Option<Revision>) -> Result<(), Error> {
        let backend = &self.cache.shared.source.backend;
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
            let (cut, through) = (changes.cut, changes.through);
            let gauge = self.runtime.metrics.cache_lag();
            let lag = |at: Revision| gauge.set(through.0.saturating_sub(at.0) as f64);
            lag(at);
            let source = &self.cache.shared.source;
            self.take(changes.rows.into_iter().map(|row| Applied::read(source, row))).await?;
            let reached = self.cache.revision();
            lag(reached);
            if reached < through {
                return self.heal(Gap { after: reached, found: through }).await;
            }
            if !cut {
                return Ok(());
            }
        }
    }

    /// Applies writes in revision order. If a revision is missing, loads the whole state again.
    async fn take(&self, writes: impl Iterator<Item = Applied>) -> Result<(), Error> {
        match self.apply(writes) {
            Ok(()) => Ok(()),
            Err(gap) => self.heal(gap).await,
        }
    }

    /// Loads the state from the objects themselves, since the changefeed lacks a change that it should contain.
    async fn heal(&self, gap: Gap) -> Result<(), Error> {
        let Gap { after, found } = gap;
        self.runtime.metrics.cache_gaps().increment(1);
        tracing::error!(%after, %found, "the changefeed has a gap; the watch cache is loaded anew");
        self.reload().await
    }

    /// Loads the whole state again. The history between the old state and the new one is lost; watchers that are behind
    /// learn so from the store.
    async fn reload(&self) -> Result<(), Error> {
        let shared = &self.cache.shared;
        let resources: Vec<ResourceId> = shared.state.load().resources().collect();
        let state = load(&shared.source, &resources, &LoadProgress::default()).await?;
        let revision = state.revision;
        let floor = self.cache.revision();
        if revision < floor {
            return Err(Error::Regressed { floor, found: revision });
        }
        shared.mark.raise(revision);
        let logs = shared.logs.write().unwrap_or_else(|e| e.into_inner());
        self.replace(state);
        for log in logs.values().filter(|_| !strikes(Bug::ReloadKeepsLogs)) {
            log.reset(revision);
        }
        shared.progress.send_replace(revision);
        Ok(())
    }

    /// Applies writes in revision order, up to the first gap. Writes that are already in the state are skipped.
    fn apply(&self, writes: impl Iterator<Item = Applied>) -> Result<(), Gap> {
        let shared = &self.cache.shared;
        let mut state = (**shared.state.load()).clone();
        let mut events: BTreeMap<ResourceId, Vec<Arc<Event>>> = BTreeMap::new();
        let mut gap = None;
        for write in writes {
            if write.revision <= state.revision {
                continue;
            }
            if write.revision.0 != state.revision.0 + 1 && !strikes(Bug::CatchUpSkipped) {
                gap = Some(Gap { after: state.revision, found: write.revision });
                break;
            }
            state.revision = write.revision;
            let Applied { revision, key, object } = write;
            let joined = joined_key(&key.namespace, &key.name);
            if object.is_none() && strikes(Bug::DeletionKept) {
                continue;
            }
            let Ok(previous) = state.apply(key.resource, &joined, revision, object.clone()) else {
                continue;
            };
            if strikes(Bug::EventLost) {
                continue;
            }
            events.entry(key.resource).or_default().push(Arc::new(Event::new(revision, object, previous)));
        }
        let revision = state.revision;
        // Logs are appended to before the state is swapped: a reader of the new state must find the events that follow
        // an older one.
        if strikes(Bug::WokenBeforeAppended) {
            self.replace(state.clone());
            events.keys().for_each(|resource| self.cache.log(*resource).announce(revision));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let touched: Vec<_> = events
            .into_iter()
            .map(|(resource, events)| {
                let log = self.cache.log(resource);
                log.append(events.into_iter());
                log
            })
            .collect();
        shared.mark.raise(revision);
        self.replace(state);
        shared.progress.send_replace(revision);
        for log in touched {
            log.announce(revision);
        }
        gap.map_or(Ok(()), Err)
    }
}

impl Applied {
    /// A write of another server.
    fn read(source: &Source, row: ChangeRow) -> Self {
        let ChangeRow { revision, key, value, .. } = row;
        let object = value.map(|value| Arc::new(source.object(&key.namespace, &key.name, revision, value)));
        Self { revision, key, object }
    }

    /// A write of this server; `None` if its value came without its object, and the state holds the resource.
    fn own(write: OwnWrite, state: &State) -> Option<Self> {
        let OwnWrite { revision, key, object, .. } = write;
        let object = object.filter(|_| state.holds(key.resource));
        let object = object.map(|object| object.downcast().ok());
        let object = match object {
            Some(object) => Some(object?),
            None => None,
        };
        Some(Self { revision, key, object })
    }
}
