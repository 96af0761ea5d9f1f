//! The watch cache: the current state of every resource and a window of recent changes, in memory.
//!
//! A [`State`] is an immutable snapshot of the whole store at one revision; taking one is cloning a pointer, and
//! readers hold no lock. Every resource has a [`log::Log`] of events; a watcher is a cursor on it, with the
//! `changes` table behind it. One task (`feed`) applies commits, in revision order and without a gap.
//!
//! The cache holds certain resources, which are added and removed while it runs ([`Cache::add`], [`Cache::remove`]); it
//! ignores writes to other resources.
//!
//! Invariants: `state.revision` is R only if every write ≤ R to a held resource is in the state and in its resource's
//! log; logs are appended to before the state is swapped, so a reader of a state finds all later events.

mod account;
mod decode;
pub mod event;
mod feed;
pub mod follower;
pub mod freshness;
pub mod hidden_rows;
mod lag;
mod load;
mod log;
mod snapshots;
mod state;
mod turnover;
mod watcher;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, watch};

use self::decode::Source;
use self::event::Event;
use self::freshness::Freshness;
use self::lag::Lag;
use self::log::Log;
use self::snapshots::Snapshots;
use self::turnover::Turnover;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::storage::{Backend, Clock, Error, HighWaterMark, OwnCommit, ResourceId};

pub use self::decode::Decoder;
pub use self::load::LoadProgress;
pub use self::state::{Objects, Range, State};
pub use self::watcher::Watcher;

/// How long a read waits until this replica has applied a revision that another replica has committed.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(3);
/// Commits that may wait for the feed task. The writer has no more commits under way than there is room for here.
const COMMITS_AHEAD: usize = 8;
/// When the cache has been behind for this long, the server is no longer ready.
const TOO_LATE: Duration = Duration::from_secs(5);
const UPKEEP: Duration = Duration::from_secs(1);

/// A handle to the cache. Cheap to clone.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    /// No other cache of the process has this number.
    id: u64,
    source: Source,
    /// Raised by every commit that the cache sees, whichever server made it.
    mark: Arc<HighWaterMark>,
    state: ArcSwap<State>,
    /// Publishes `state.revision` to tasks that wait for it.
    progress: watch::Sender<Revision>,
    /// A resource's log is made when it is first needed. Until then the resource has not changed since it was loaded.
    logs: RwLock<HashMap<ResourceId, Arc<Log>>>,
    snapshots: Snapshots,
    freshness: Freshness,
    lag: Lag,
    /// Asks the feed task to read the changefeed at once.
    behind: Notify,
    turnovers: mpsc::Sender<Turnover>,
}

/// The source of the state at an exact revision.
pub enum Exact {
    Memory(Objects),
    /// Only in the store, if anywhere.
    Store,
}

/// The first question for the clock that is good for all that a request reads.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The [number](Shared::id) of the cache that is asked.
    cache: u64,
    question: u64,
}

tokio::task_local! {
    /// The request that the task serves. It says nothing about other caches than its own.
    static ARRIVED: Arrival;
}

/// The number of caches that this process has had.
static CACHES: AtomicU64 = AtomicU64::new(0);

/// Goes on with a request of this arrival; see [`Cache::fresh_for_request`].
pub fn serving<T>(arrival: Arrival, work: impl FnOnce() -> T) -> T {
    ARRIVED.sync_scope(arrival, work)
}

impl Cache {
    /// Loads the current state, reporting to `progress`, and starts the feed. The feed ends with the writer, or shortly
    /// after its tasks are stopped. Returns the channel through which the writer publishes commits.
    pub async fn start(
        backend: Arc<dyn Backend>,
        decoder: Decoder,
        resources: &[ResourceId],
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
        progress: &LoadProgress,
    ) -> Result<(Self, mpsc::Sender<OwnCommit>), Error> {
        let source = Source { backend, decoder };
        let state = load::load(&source, resources, progress).await?;
        Ok(Self::begin(source, state, mark, runtime))
    }

    /// The cache of a fork, which holds the state that its store begins with.
    pub fn fork(
        backend: Arc<dyn Backend>,
        decoder: Decoder,
        state: State,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
    ) -> (Self, mpsc::Sender<OwnCommit>) {
        Self::begin(Source { backend, decoder }, state, mark, runtime)
    }

    fn begin(
        source: Source,
        state: State,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
    ) -> (Self, mpsc::Sender<OwnCommit>) {
        let revision = state.revision;
        mark.raise(revision);
        let (turnovers, requests) = mpsc::channel(turnover::WAITING);
        let shared = Shared {
            id: CACHES.fetch_add(1, Ordering::Relaxed),
            source,
            mark,
            state: ArcSwap::from_pointee(state),
            progress: watch::Sender::new(revision),
            logs: RwLock::default(),
            snapshots: Snapshots::default(),
            freshness: Freshness::new(runtime.metrics.clock_questions()),
            lag: Lag::default(),
            behind: Notify::new(),
            turnovers,
        };
        let cache = Self { shared: Arc::new(shared) };
        let (sink, commits) = mpsc::channel(COMMITS_AHEAD);
        let feed = feed::run(cache.clone(), commits, requests, runtime.clone());
        runtime.tasks.run_to_end("feed", feed);
        runtime.tasks.run("cache-upkeep", cache.clone().upkeep());
        (cache, sink)
    }

    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.shared.source.backend
    }

    /// The [serial](State::serial) of the state that [`Cache::any`] would return.
    pub fn serial(&self) -> u64 {
        self.shared.state.load().serial
    }

    /// Some recent state. It may lack commits of other replicas.
    pub fn any(&self) -> Arc<State> {
        self.shared.state.load_full()
    }

    /// A state that holds every write answered by any replica before the call.
    pub async fn fresh(&self) -> Result<Arc<State>, Error> {
        self.fresh_since(None).await
    }

    /// A state that holds every write answered by any replica before the request came that is being [served](serving): all
    /// parts of a request share one question. Not for whoever has just lost a race, who must see what has won.
    pub async fn fresh_for_request(&self) -> Result<Arc<State>, Error> {
        let arrived = ARRIVED.try_with(|arrival| *arrival).ok();
        self.fresh_since(arrived.filter(|arrival| arrival.cache == self.shared.id)).await
    }

    /// When a request comes, for [`serving`]. `None` where [`Cache::fresh`] asks nobody.
    pub fn arrival(&self) -> Option<Arrival> {
        let Shared { id, source, freshness, .. } = &*self.shared;
        source.backend.shared().then(|| Arrival { cache: *id, question: freshness.next() })
    }

    /// The variant of [`Cache::fresh`] whose state holds every write answered before that arrival, or before the call.
    async fn fresh_since(&self, arrival: Option<Arrival>) -> Result<Arc<State>, Error> {
        // Without other servers, every answered write has been published to this cache before its answer.
        if !self.shared.source.backend.shared() || strikes(Bug::StaleRead) {
            return Ok(self.any());
        }
        let clock = self.clock_since(arrival).await?;
        self.at_least(clock.revision).await
    }

    /// A state at `revision` or later. Waits for a short time if another replica may have committed it.
    pub async fn at_least(&self, revision: Revision) -> Result<Arc<State>, Error> {
        let state = self.any();
        if state.revision >= revision || strikes(Bug::ReadTooEarly) {
            return Ok(state);
        }
        let future = |current| Error::Future { requested: revision, current };
        // If no other server writes, the store's clock tells at once whether the revision exists; if it does, it will
        // arrive here soon.
        if !self.shared.source.backend.shared() && self.clock().await?.revision < revision {
            return Err(future(state.revision));
        }
        self.shared.behind.notify_one();
        let mut progress = self.shared.progress.subscribe();
        let reached = progress.wait_for(|at| *at >= revision);
        match tokio::time::timeout(CATCH_UP_TIMEOUT, reached).await {
            Ok(Ok(_)) => Ok(self.any()),
            Ok(Err(_)) | Err(_) => Err(future(self.any().revision)),
        }
    }

    /// The state of one resource at exactly `revision`; [`Exact::Store`] if it is not in memory.
    pub async fn exactly(&self, resource: ResourceId, revision: Revision) -> Result<Exact, Error> {
        let clock = self.clock().await?;
        if revision < clock.compacted && !strikes(Bug::CompactedReadable) {
            return Err(Error::Compacted { oldest: clock.compacted });
        }
        let state = self.at_least(revision).await?;
        if strikes(Bug::WrongSnapshot) {
            return Ok(Exact::Memory(state.objects(resource)));
        }
        if let Some(objects) = state.unchanged_since(resource, revision) {
            return Ok(Exact::Memory(objects));
        }
        let kept = self.shared.snapshots.get(resource, revision);
        Ok(kept.map_or(Exact::Store, Exact::Memory))
    }

    /// Keeps the objects from which a page of a list was taken, so that the next page is served from memory, too.
    pub fn keep(&self, resource: ResourceId, revision: Revision, objects: &Objects) {
        self.shared.snapshots.put(resource, revision, objects.clone());
    }

    /// The store's clock. Concurrent callers share one query.
    pub async fn clock(&self) -> Result<Clock, Error> {
        self.clock_since(None).await
    }

    async fn clock_since(&self, arrival: Option<Arrival>) -> Result<Clock, Error> {
        let freshness = &self.shared.freshness;
        let from = arrival.map_or_else(|| freshness.next(), |arrival| arrival.question);
        let clock = freshness.ask(from, || self.shared.source.backend.clock()).await?;
        self.shared.lag.committed(clock.revision);
        Ok(clock)
    }

    /// Fails if the feed does not keep up with the revisions that are known to be committed. Makes no query.
    pub fn check(&self, now: Instant) -> Result<(), String> {
        let lag = self.observe_lag(now);
        if lag < TOO_LATE {
            return Ok(());
        }
        Err(format!("the watch cache stands at revision {} and is {} s late", self.revision(), lag.as_secs()))
    }

    fn observe_lag(&self, now: Instant) -> Duration {
        self.shared.lag.committed(self.shared.mark.get());
        self.shared.lag.observe(self.revision(), now)
    }

    /// Drops snapshots for which no further page was requested for a while. A client may never come back for the next
    /// page.
    pub fn forget_idle(&self, now: Instant) {
        self.shared.snapshots.expire(now);
    }

    async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP).await;
            let now = Instant::now();
            self.observe_lag(now);
            self.forget_idle(now);
        }
    }

    /// A cursor that yields the changes of `resource` after `at`. The caller has made sure that `at` is not compacted.
    /// If the resource is not held, the first read from the cursor fails.
    pub fn watch(&self, resource: ResourceId, at: Revision) -> Watcher {
        Watcher::new(self.clone(), self.log(resource), resource, at)
    }

    /// All changes of a resource after a revision; `None` if memory does not reach back so far.
    pub fn changes(&self, resource: ResourceId, after: Revision) -> Option<Vec<Arc<Event>>> {
        self.log(resource).after(after, usize::MAX).ok()
    }

    /// The [keys](crate::codec::object::Object::key) of a resource's objects in all changes after a revision, which may be more than those in any state
    /// that was read before; `None` if memory does not reach back so far.
    pub fn changed_keys(&self, resource: ResourceId, after: Revision) -> Option<BTreeSet<Box<str>>> {
        let events = self.changes(resource, after)?;
        let key = |event: &Arc<Event>| {
            event.current.as_ref().or(event.previous.as_ref()).map(|one| one.key().into())
        };
        events.iter().map(key).collect()
    }

    /// Returns when this cache has applied a commit after a revision.
    pub async fn advanced(&self, beyond: Revision) {
        let mut progress = self.shared.progress.subscribe();
        // It is never closed while there is a cache.
        let _ = progress.wait_for(|at| *at > beyond).await;
    }

    /// The newest revision this cache has applied.
    pub fn revision(&self) -> Revision {
        *self.shared.progress.borrow()
    }

    fn log(&self, resource: ResourceId) -> Arc<Log> {
        let logs = &self.shared.logs;
        if let Some(log) = logs.read().unwrap_or_else(|e| e.into_inner()).get(&resource) {
            return log.clone();
        }
        let mut logs = logs.write().unwrap_or_else(|e| e.into_inner());
        if let Some(log) = logs.get(&resource) {
            return log.clone();
        }
        // The log is inserted under the lock: a removal that happens now takes the log out afterwards.
        let Some(floor) = self.shared.state.load().changed(resource) else {
            return Arc::new(Log::of_removed());
        };
        logs.entry(resource).or_insert_with(|| Arc::new(Log::new(floor))).clone()
    }
}
