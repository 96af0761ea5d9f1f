//! A changefeed that cannot be read, or that lacks a change: a client whose write is answered must find it in the
//! cache.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::storage::{Error, Key, Store, Written};
use rowplane::tasks::Failure;

use crate::Server;
use crate::support::database::Database;
use crate::support::faulty::Faulty;
use crate::support::object::{create, pass};

/// A server on a store that can be made to fail.
struct Faults {
    server: Server,
    backend: Arc<Faulty>,
    runtime: Runtime,
    _database: Database,
}

impl Faults {
    async fn start(database: Database) -> Self {
        let (backend, runtime) = (Faulty::new(database.open().await), Runtime::default());
        let server = Server::start_on(backend.clone(), &runtime).await;
        Self { server, backend, runtime, _database: database }
    }

    /// Commits like a batch whose outcome could not be learned in time: the cache is not told.
    async fn commit_unseen(&self, name: &str) -> Revision {
        pass(&*self.backend.inner, create(&self.server.key(name), 1)).await
    }

    fn has(&self, name: &str) -> bool {
        self.server.cache.any().get(self.server.pods, "ns", name).is_some()
    }

    /// A concurrent write.
    fn writing(&self, name: &str) -> tokio::task::JoinHandle<Result<Written, Error>> {
        let (store, key): (Store, Key) = (self.server.store.clone(), self.server.key(name));
        tokio::spawn(async move { store.write(create(&key, 1)).await })
    }

    /// Waits until the feed has made this many reads.
    async fn read_times(&self, times: u64) {
        while self.backend.reads.load(SeqCst) < times {
            tokio::task::yield_now().await;
        }
    }
}

async fn a_write_is_answered_once_what_was_before_it_has_been_read(database: Database) {
    let faults = Faults::start(database).await;
    faults.backend.failing.store(3, SeqCst);
    faults.commit_unseen("unseen").await;
    faults.server.write(create(&faults.server.key("seen"), 1)).await;
    assert!(faults.has("unseen") && faults.has("seen"));
    let fresh = faults.server.cache.fresh().await.expect("fresh");
    assert!(fresh.get(faults.server.pods, "ns", "seen").is_some());
}

/// SQLite and the store in memory give no hints.
async fn what_could_not_be_read_is_read_again_without_another_commit(database: Database) {
    let faults = Faults::start(database).await;
    faults.backend.failing.store(2, SeqCst);
    let at = faults.commit_unseen("unseen").await;
    let state = faults.server.cache.at_least(at).await.expect("the feed tries again");
    assert!(state.get(faults.server.pods, "ns", "unseen").is_some());
}

async fn a_change_that_is_missing_is_noticed(database: Database) {
    let faults = Faults::start(database).await;
    let first = faults.commit_unseen("first").await;
    faults.backend.hidden.store(first.0, SeqCst);
    faults.commit_unseen("second").await;
    faults.server.write(create(&faults.server.key("third"), 1)).await;
    assert!(faults.has("first") && faults.has("second") && faults.has("third"));
    // The same at the end of the table.
    let last = faults.commit_unseen("last").await;
    faults.backend.hidden.store(last.0, SeqCst);
    let state = faults.server.cache.at_least(last).await.expect("the cache starts over");
    assert!(state.get(faults.server.pods, "ns", "last").is_some());
    assert!(faults.runtime.tasks.failed().now_or_never().is_none());
}

async fn a_server_that_stops_says_nothing_of_what_it_could_not_show(database: Database) {
    let faults = Faults::start(database).await;
    faults.backend.failing.store(u64::MAX, SeqCst);
    faults.commit_unseen("unseen").await;
    let write = faults.writing("mine");
    faults.read_times(3).await;
    assert!(!write.is_finished());
    faults.runtime.tasks.stop();
    let answer = write.await.expect("the task");
    assert!(matches!(answer, Err(Error::Unknown(_))), "{answer:?}");
    faults.runtime.tasks.ended().await;
    assert!(faults.runtime.tasks.failed().now_or_never().is_none());
    let refused = faults.writing("late").await.expect("the task");
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
}

async fn the_death_of_the_feed_is_the_servers(database: Database) {
    let faults = Faults::start(database).await;
    faults.backend.reads_panic.store(true, SeqCst);
    faults.commit_unseen("unseen").await;
    let answer = faults.writing("mine").await.expect("the task");
    // PostgreSQL's hint of the unseen commit may end the feed before the write starts.
    assert!(matches!(answer, Err(Error::Unknown(_) | Error::Closed)), "{answer:?}");
    let told = faults.runtime.tasks.failed().await;
    assert_eq!(told, Failure::Panicked { task: "feed", message: "a read, on purpose".into() });
    // Only now: while the feed's values are being dropped, a write may still be committed, and not be seen.
    let late = faults.writing("late").await.expect("the task");
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
}

/// The batch had its place in the feed's queue when the feed died: nobody takes it out of there.
async fn a_commit_that_nobody_takes_from_the_queue_is_not_known(database: Database) {
    let faults = Faults::start(database).await;
    let held = faults.backend.commits.write().await;
    let begun = faults.backend.begun.load(SeqCst);
    let write = faults.writing("mine");
    while faults.backend.begun.load(SeqCst) == begun {
        tokio::task::yield_now().await;
    }
    faults.backend.reads_panic.store(true, SeqCst);
    let at = faults.commit_unseen("unseen").await;
    assert!(faults.server.cache.at_least(at).await.is_err(), "the feed has died");
    let told = faults.runtime.tasks.failed().await;
    assert_eq!(told, Failure::Panicked { task: "feed", message: "a read, on purpose".into() });
    drop(held);
    let answer = write.await.expect("the task");
    assert!(matches!(answer, Err(Error::Unknown(_))), "{answer:?}");
}

async fn the_death_of_a_batch_is_the_servers(database: Database) {
    let faults = Faults::start(database).await;
    faults.backend.commits_panic.store(true, SeqCst);
    let answer = faults.writing("mine").await.expect("the task");
    assert!(matches!(answer, Err(Error::Unknown(_))), "{answer:?}");
    let told = faults.runtime.tasks.failed().await;
    assert_eq!(told, Failure::Panicked { task: "batch", message: "a commit, on purpose".into() });
}

on_every_backend! {
    a_write_is_answered_once_what_was_before_it_has_been_read,
    what_could_not_be_read_is_read_again_without_another_commit,
    a_change_that_is_missing_is_noticed,
    a_server_that_stops_says_nothing_of_what_it_could_not_show,
    the_death_of_the_feed_is_the_servers,
    a_commit_that_nobody_takes_from_the_queue_is_not_known,
    the_death_of_a_batch_is_the_servers,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_that_stays_behind_is_not_healthy() {
    let faults = Faults::start(Database::sqlite()).await;
    let (cache, now) = (&faults.server.cache, Instant::now());
    let later = now + Duration::from_secs(60);
    assert_eq!((cache.check(now), cache.check(later)), (Ok(()), Ok(())));
    faults.backend.failing.store(u64::MAX, SeqCst);
    let at = faults.commit_unseen("unseen").await;
    // A query of the database tells how far it is.
    assert_eq!(cache.clock().await.expect("clock").revision, at);
    assert_eq!(cache.check(Instant::now()), Ok(()));
    let told = cache.check(later).expect_err("a minute behind");
    assert!(told.starts_with("the watch cache stands at revision "), "{told}");
    faults.backend.failing.store(0, SeqCst);
    cache.at_least(at).await.expect("the feed catches up");
    assert_eq!(cache.check(later), Ok(()));
}
