//! etcd's KV, Watch and Lease on the store (docs/spec/etcd.md, 2 to 5).
//!
//! Every live key is in memory, in a [`State`] that readers share, and so are recent events. One task
//! (`feed`) applies commits in their order. A write is evaluated on the newest state, and sent to the store as one
//! unit that requires all it has been decided by to be still as it was seen; if it loses, it is evaluated anew. What
//! holds:
//!
//! - an answered write is durable and in this server's state; a reader who asks for the newest state sees all that any
//!   server has answered before;
//! - events are appended before the state is swapped, and the state is only swapped at the end of a revision;
//! - a watch is a cursor over the events in memory, with the store's table of changes behind them. None has a queue.

mod compaction;
mod error;
mod events;
mod feed;
mod interval;
mod keys;
mod lags;
mod leases;
mod load;
mod locks;
mod maintenance;
mod names;
mod notes;
mod past;
mod range;
mod rows;
mod state;
mod txn;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rowplane_store::cache::freshness::Freshness;
use rowplane_store::runtime::Runtime;
use rowplane_store::storage::{Backend, HighWaterMark, Store};
use tokio::sync::{Notify, RwLock, Semaphore, mpsc, watch as signal};
use tokio::time::timeout;

use self::events::Events;
use self::lags::Sequence;
use self::leases::Deadlines;
use self::locks::Locks;
use self::past::Kept;
use self::rows::Tables;
use self::state::State;
use crate::wire::messages::ResponseHeader;

pub use compaction::AutoCompaction;
pub use error::Error;
pub use maintenance::{Numbers, SnapshotLease, SnapshotRows};
pub use notes::Note;
pub use write::NoteWrite;

/// Commits that may wait for the feed. The writer has no more under way than there is room for here.
const COMMITS_AHEAD: usize = 8;
/// How long a request waits for what another server has committed.
const CATCH_UP: Duration = Duration::from_secs(3);

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number of this server among the members; not 0.
    pub member_id: u64,
    /// The most operations of a transaction.
    pub max_txn_ops: usize,
    /// How often a watch that asks for progress is told it.
    pub progress_interval: Duration,
    pub auto_compaction: AutoCompaction,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            member_id: 1,
            max_txn_ops: 128,
            progress_interval: Duration::from_secs(5),
            auto_compaction: AutoCompaction::default(),
        }
    }
}

/// A server of etcd's API without its wire. Cheap to clone.
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    tables: Tables,
    config: Config,
    runtime: Runtime,
    /// Raised by every commit that the feed sees, whichever server made it.
    mark: Arc<HighWaterMark>,
    state: ArcSwap<State>,
    /// The place of the state.
    progress: signal::Sender<Sequence>,
    events: Events,
    freshness: Freshness,
    /// Notified when somebody waits for commits of other servers.
    behind: Notify,
    locks: Locks,
    /// Shared by all writes; held alone by one that has lost too often.
    gate: RwLock<()>,
    kept: Kept,
    /// The reads of older states from the store, each of which holds all keys of its interval.
    past: Semaphore,
    deadlines: Deadlines,
    /// Notified when there is something to compact away.
    sweep: Notify,
}

impl Etcd {
    /// Loads the state of a store and begins to serve it. The tasks are those of the runtime.
    pub async fn open(
        backend: Arc<dyn Backend>,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
        config: Config,
    ) -> Result<Self, Error> {
        let [keys, leases, notes] = backend.resource_ids(&Tables::resources()).await?[..] else {
            return Err(Error::Corrupt("the store has no numbers for etcd's resources".into()));
        };
        let tables = Tables { keys, leases, notes };
        let (sink, commits) = mpsc::channel(COMMITS_AHEAD);
        let state = load::load(&*backend, &tables).await?;
        mark.raise(state.sequence);
        let store = Store::start(backend, Some(sink), mark.clone(), runtime);
        let shared = Arc::new(Shared {
            store,
            tables,
            config,
            runtime: runtime.clone(),
            mark,
            progress: signal::Sender::new(state.sequence),
            events: Events::new(state.sequence),
            freshness: Freshness::new(runtime.metrics.clock_questions()),
            behind: Notify::new(),
            locks: Locks::default(),
            gate: RwLock::new(()),
            kept: Kept::default(),
            past: Semaphore::new(past::AT_ONCE),
            deadlines: Deadlines::default(),
            sweep: Notify::new(),
            state: ArcSwap::from_pointee(state),
        });
        shared.deadlines.begin(&shared.state.load());
        let etcd = Self { shared };
        runtime.tasks.run_to_end("etcd-feed", feed::run(etcd.clone(), commits));
        etcd.name_cluster().await?;
        runtime.tasks.run("etcd-leases", leases::expire(etcd.clone()));
        runtime.tasks.run("etcd-compaction", compaction::run(etcd.clone()));
        Ok(etcd)
    }

    fn backend(&self) -> &Arc<dyn Backend> {
        self.shared.store.backend()
    }

    /// The newest state that this server has.
    fn state(&self) -> Arc<State> {
        self.shared.state.load_full()
    }

    /// A state that has everything that any server has answered before the call.
    async fn newest(&self) -> Result<Arc<State>, Error> {
        if self.backend().shared() {
            let freshness = &self.shared.freshness;
            let clock = freshness.ask(freshness.next(), async || self.backend().clock().await).await?;
            self.reach(clock.revision).await?;
        }
        Ok(self.state())
    }

    /// Waits until the state is at a place or later.
    async fn reach(&self, sequence: Sequence) -> Result<(), Error> {
        if self.state().sequence >= sequence {
            return Ok(());
        }
        self.shared.behind.notify_one();
        let mut progress = self.shared.progress.subscribe();
        match timeout(CATCH_UP, progress.wait_for(|at| *at >= sequence)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(Error::Stopped),
            Err(_) => Err(Error::NoLeader),
        }
    }

    /// The header of an answer from a state of this revision.
    fn header(&self, revision: i64) -> ResponseHeader {
        let state = self.shared.state.load();
        let number =
            |name| state.notes.get(name).and_then(|note| notes::number(&note.value)).unwrap_or_default();
        ResponseHeader {
            cluster_id: number(notes::CLUSTER),
            member_id: self.shared.config.member_id,
            revision,
            raft_term: notes::FIRST_TERM + number(notes::TERM),
        }
    }

    /// The header of an answer from the newest state that this server has.
    pub fn newest_header(&self) -> ResponseHeader {
        self.header(self.state().revision())
    }
}
