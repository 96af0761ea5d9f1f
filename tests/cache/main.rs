//! The watch cache over each database: the promises of its states, cursors and exact reads.

#[path = "../support/mod.rs"]
mod support;

/// Makes three tests of every case: `sqlite::case`, `postgres::case` and `memory::case`.
macro_rules! on_every_backend {
    ($($case:ident),* $(,)?) => {
        on_store!(sqlite, crate::support::database::Database::sqlite(); $($case)*);
        on_store!(postgres, crate::support::database::Database::postgres().await; $($case)*);
        on_store!(memory, crate::support::database::Database::memory(); $($case)*);
    };
}

macro_rules! on_store {
    ($store:ident, $made:expr; $($case:ident)*) => {
        mod $store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case($made).await
            })*
        }
    };
}

mod faults;
mod follower;
mod turnover;
mod turns;
mod units;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowplane::cache::event::Event;
use rowplane::cache::{Cache, Exact, Range, State, Watcher};
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::storage::{
    Backend, Change, Error, Expect, HighWaterMark, Key, Mutation, ResourceId, Store, Written,
};

use support::database::Database;
use support::object::{create, delete, put, resource, update, value};

/// More events than a log keeps in memory.
const BEYOND_THE_LOG: u64 = 17_000;

/// The parts of a server below the API.
struct Server {
    backend: Arc<dyn Backend>,
    cache: Cache,
    store: Store,
    pods: ResourceId,
}

impl Server {
    async fn start(database: &Database) -> Self {
        Self::start_on(database.open().await, &Runtime::default()).await
    }

    async fn start_on(backend: Arc<dyn Backend>, runtime: &Runtime) -> Self {
        let pods = resource(&*backend, "pods").await;
        let mark = Arc::<HighWaterMark>::default();
        let (cache, sink) =
            Cache::start(backend.clone(), Draft::parse, &[pods], mark.clone(), runtime, &Default::default())
                .await
                .expect("load");
        let store = Store::start(backend.clone(), Some(sink), mark, runtime);
        Self { backend, cache, store, pods }
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.pods, "ns", name)
    }

    async fn write(&self, mutation: Mutation) -> Revision {
        match self.store.write(mutation).await.expect("write") {
            Written::Committed { revision, .. } => revision,
            lost => panic!("the write lost: {lost:?}"),
        }
    }

    /// Updates an object repeatedly. Returns its last revision.
    async fn rewrite(&self, key: &Key, from: Revision, times: u64) -> Revision {
        let mut at = from;
        for n in 0..times {
            at = self.write(update(key, at, n)).await;
        }
        at
    }
}

/// The revisions that a cursor yields up to `end`.
async fn follow(watcher: &mut Watcher, end: Revision) -> Vec<u64> {
    let mut seen = Vec::new();
    while watcher.at() < end {
        let events = watcher.next().await.expect("events");
        if events.is_empty() {
            watcher.changed().await;
        }
        seen.extend(events.iter().map(|event| event.revision.0));
    }
    seen
}

/// A reader that asks without waiting, so that it also asks while events are being added.
async fn who_sees_an_event_finds_what_it_made(database: Database) {
    const WRITES: u64 = 300;
    let server = Server::start(&database).await;
    let key = server.key("a");
    let start = server.write(create(&key, 1)).await;
    let (cache, mut watcher) = (server.cache.clone(), server.cache.watch(server.pods, start));
    let reader = tokio::task::spawn_blocking(move || {
        let mut seen = 0;
        while seen < WRITES {
            let events = watcher.next();
            let events =
                futures_util::FutureExt::now_or_never(events).expect("all is in memory").expect("events");
            if let Some(last) = events.last() {
                assert!(cache.any().revision >= last.revision, "{} is not there yet", last.revision);
            }
            seen += events.len() as u64;
        }
    });
    server.rewrite(&key, start, WRITES).await;
    reader.await.expect("no event too early");
}

async fn a_write_is_seen_once_it_is_answered(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("a");
    let at = server.write(create(&key, 1)).await;
    let state = server.cache.any();
    assert!(state.revision >= at);
    assert_eq!(state.get(server.pods, "ns", "a").map(|object| object.revision()), Some(at));
    let gone = server.write(delete(&key, at)).await;
    let state = server.cache.any();
    assert!(state.revision >= gone && state.get(server.pods, "ns", "a").is_none());
}

/// Its writer has handed no object to the store with it.
async fn a_value_that_came_as_bytes_is_seen_once_it_is_answered(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("a");
    let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: value(1).into() };
    let at = server.write(Mutation::new(key.clone(), Expect::Absent, change)).await;
    let seen = |state: Arc<State>| state.get(server.pods, "ns", "a").map(|object| object.revision());
    assert_eq!(seen(server.cache.any()), Some(at));
    let at = server.write(update(&key, at, 2)).await;
    assert_eq!(seen(server.cache.any()), Some(at));
}

async fn a_cursor_reads_on_after_the_log_has_moved_on(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("hot");
    let first = server.write(create(&key, 0)).await;
    let mut slow = server.cache.watch(server.pods, first);
    // Concurrent writers lead to large batches; each writer has an object of its own.
    let writers: u64 = 100;
    let each = BEYOND_THE_LOG / writers;
    let tasks = (0..writers).map(|n| {
        let (key, store) = (server.key(&format!("w{n}")), server.store.clone());
        async move {
            let mut expect = Expect::Absent;
            for n in 0..each {
                match store.write(put(&key, expect, n)).await.expect("write") {
                    Written::Committed { revision, .. } => expect = Expect::At(revision),
                    lost => panic!("the only writer of its key lost: {lost:?}"),
                }
            }
        }
    });
    futures_util::future::join_all(tasks).await;
    let last = Revision(first.0 + writers * each);
    let seen = follow(&mut slow, last).await;
    assert_eq!(seen, (first.0 + 1..=last.0).collect::<Vec<_>>());
}

async fn events_tell_what_was_before(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("a");
    let mut watcher = server.cache.watch(server.pods, server.cache.revision());
    let created = server.write(create(&key, 1)).await;
    let updated = server.write(update(&key, created, 2)).await;
    let deleted = server.write(delete(&key, updated)).await;
    let told = |event: &Arc<Event>| {
        let revision = |object: &Option<Arc<_>>| {
            object.as_ref().map(|o: &Arc<rowplane::codec::object::Object>| o.revision())
        };
        (event.revision, revision(&event.previous), revision(&event.current))
    };
    let mut events = Vec::new();
    while events.len() < 3 {
        events.extend(watcher.next().await.expect("events").iter().map(told));
    }
    let want = [
        (created, None, Some(created)),
        (updated, Some(created), Some(updated)),
        (deleted, Some(updated), None),
    ];
    assert_eq!(events, want);
}

async fn exact_reads_come_from_memory_while_it_has_them(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("a");
    let first = server.write(create(&key, 1)).await;
    let Ok(Exact::Memory(objects)) = server.cache.exactly(server.pods, first).await else {
        panic!("the newest revision is in memory")
    };
    server.cache.keep(server.pods, first, &objects);
    let second = server.write(update(&key, first, 2)).await;
    let third = server.write(update(&key, second, 3)).await;
    let Ok(Exact::Memory(kept)) = server.cache.exactly(server.pods, first).await else {
        panic!("a kept snapshot is in memory")
    };
    let revisions: Vec<_> = kept.range(&Range::of(None)).map(|object| object.revision()).collect();
    assert_eq!(revisions, [first]);
    let now = Instant::now();
    server.cache.forget_idle(now + Duration::from_secs(30));
    assert!(matches!(server.cache.exactly(server.pods, first).await, Ok(Exact::Memory(_))));
    server.cache.forget_idle(Instant::now() + Duration::from_secs(61));
    assert!(matches!(server.cache.exactly(server.pods, first).await, Ok(Exact::Store)), "nobody came for it");
    assert!(matches!(server.cache.exactly(server.pods, second).await, Ok(Exact::Store)));
    server.backend.compact(third).await.expect("compact");
    let compacted = server.cache.exactly(server.pods, second).await;
    assert!(matches!(compacted, Err(Error::Compacted { oldest }) if oldest == third));
    let future = server.cache.exactly(server.pods, Revision(third.0 + 1000)).await;
    assert!(matches!(future, Err(Error::Future { .. })));
}

async fn a_restart_loads_what_was_there(database: Database) {
    let server = Server::start(&database).await;
    let at = server.write(create(&server.key("a"), 1)).await;
    let gone = server.write(create(&server.key("b"), 1)).await;
    server.write(delete(&server.key("b"), gone)).await;
    server.backend.close().await;
    drop(server);
    let server = Server::start(&database).await;
    let objects = server.cache.any().objects(server.pods);
    let found: Vec<_> =
        objects.range(&Range::of(None)).map(|o| (o.name().to_owned(), o.revision())).collect();
    assert_eq!(found, [("a".to_owned(), at)]);
}

on_every_backend! {
    who_sees_an_event_finds_what_it_made,
    a_value_that_came_as_bytes_is_seen_once_it_is_answered,
    a_write_is_seen_once_it_is_answered,
    a_cursor_reads_on_after_the_log_has_moved_on,
    events_tell_what_was_before,
    exact_reads_come_from_memory_while_it_has_them,
    a_restart_loads_what_was_there,
}

/// A failover to a standby that was behind: commits that this replica has seen are lost, and their revisions must not
/// be used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_commits_are_noticed_by_a_reader() {
    let database = Database::postgres().await;
    let server = Server::start(&database).await;
    let kept = server.write(create(&server.key("kept"), 1)).await;
    let lost = server.write(create(&server.key("lost"), 1)).await;
    let rewind = format!(
        "DELETE FROM objects WHERE resource_version > {kept}; DELETE FROM changes WHERE resource_version > {kept}; \
         UPDATE clock SET revision = {kept}"
    );
    database.execute(&rewind).await;
    let mut clock = server.cache.clock().await.expect("clock");
    while clock.revision <= lost {
        tokio::task::yield_now().await;
        clock = server.cache.clock().await.expect("clock");
    }
    assert_eq!(clock.compacted, clock.revision, "history before the jump is unsure");
    let state = server.cache.at_least(clock.revision).await.expect("the cache starts over");
    assert!(state.get(server.pods, "ns", "lost").is_none());
    assert_eq!(state.get(server.pods, "ns", "kept").map(|object| object.revision()), Some(kept));
    let next = server.write(create(&server.key("next"), 1)).await;
    assert!(next > clock.revision);
}

/// Two servers on one database: each sees the writes that the other has answered, in the same order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_see_each_other() {
    let database = Database::postgres().await;
    let (a, b) = (Server::start(&database).await, Server::start(&database).await);
    let start = b.cache.revision();
    let (mut on_a, mut on_b) = (a.cache.watch(a.pods, start), b.cache.watch(b.pods, start));
    let (mut at_a, mut at_b) = (a.write(create(&a.key("a"), 0)).await, b.write(create(&b.key("b"), 0)).await);
    let (key_a, key_b) = (a.key("a"), b.key("b"));
    for n in 0..50 {
        (at_a, at_b) = tokio::join!(a.rewrite(&key_a, at_a, 1 + n % 2), b.rewrite(&key_b, at_b, 1 + n % 3),);
        let fresh = b.cache.fresh().await.expect("fresh");
        let seen = fresh.get(b.pods, "ns", "a").map(|object| object.revision());
        assert_eq!(seen, Some(at_a), "a read on b sees what a has answered");
    }
    let last = at_a.max(at_b);
    let (seen_a, seen_b) = (follow(&mut on_a, last).await, follow(&mut on_b, last).await);
    assert_eq!(seen_a, (start.0 + 1..=last.0).collect::<Vec<_>>());
    assert_eq!(seen_a, seen_b);
}
