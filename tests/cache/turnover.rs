//! Resources that are added and removed while the cache runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use rowplane::cache::{Range, State, Watcher};
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::storage::{Backend, Error, Expect, Key, Mutation, ResourceId, Scan, Store, Written};
use tokio::task::JoinSet;

use crate::Server;
use crate::support::database::Database;
use crate::support::faulty::Faulty;
use crate::support::object::{create, delete, list, pass, put, resource};

const WRITERS: u64 = 3;
const ROUNDS: u64 = 12;
/// The least number of events of a round that a watcher waits for.
const EVENTS: usize = 20;

/// Writers of one resource, each with its own key.
struct Load {
    stopped: Arc<AtomicBool>,
    writers: JoinSet<Vec<Revision>>,
}

impl Load {
    fn start(store: &Store, resource: ResourceId) -> Self {
        let (stopped, mut writers) = (Arc::<AtomicBool>::default(), JoinSet::new());
        for n in 0..WRITERS {
            let key = Key::new(resource, "ns", &format!("w{n}"));
            writers.spawn(write_until(stopped.clone(), store.clone(), key));
        }
        Self { stopped, writers }
    }

    /// Stops the writers. Returns the revisions of all writes, in order.
    async fn stop(self) -> Vec<Revision> {
        self.stopped.store(true, SeqCst);
        let mut written = self.writers.join_all().await.concat();
        written.sort_unstable();
        written
    }
}

/// Creates an object, updates it twice, deletes it, and starts over.
async fn write_until(stopped: Arc<AtomicBool>, store: Store, key: Key) -> Vec<Revision> {
    let (mut written, mut live) = (Vec::new(), Expect::Absent);
    while !stopped.load(SeqCst) {
        let (mutation, deletes) = match live {
            Expect::At(at) if written.len() % 4 == 3 => (delete(&key, at), true),
            expect => (put(&key, expect, written.len() as u64), false),
        };
        let revision = committed(&store, mutation).await;
        live = if deletes { Expect::Absent } else { Expect::At(revision) };
        written.push(revision);
    }
    written
}

async fn committed(store: &Store, mutation: Mutation) -> Revision {
    match store.write(mutation).await.expect("write") {
        Written::Committed { revision, .. } => revision,
        lost => panic!("the only writer of its key lost: {lost:?}"),
    }
}

/// Makes the feed load everything again: commits a change that the changefeed lacks, and then another one through the
/// cache. Returns once the feed has loaded.
async fn force_a_reload(server: &Server, backend: &Faulty, name: &str) {
    // The feed must not read the table before the change is hidden.
    backend.failing.store(u64::MAX, SeqCst);
    let at = pass(&*backend.inner, create(&server.key(name), 1)).await;
    backend.hidden.store(at.0, SeqCst);
    backend.failing.store(0, SeqCst);
    server.write(create(&server.key(&format!("{name}-seen")), 1)).await;
}

/// Adds a resource, however often that fails: reads of the table may fail on purpose.
async fn add_in_the_end(server: &Server, resource: ResourceId) {
    while let Err(error) = server.cache.add(resource).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        tokio::task::yield_now().await;
    }
}

fn held(state: &State, resource: ResourceId) -> Vec<(String, Revision)> {
    let objects = state.objects(resource);
    objects.range(&Range::of(None)).map(|object| (object.name().to_owned(), object.revision())).collect()
}

async fn stored(backend: &dyn Backend, resource: ResourceId, at: Revision) -> Vec<(String, Revision)> {
    let items = list(backend, &Scan::all(resource), at).await.expect("list");
    items.into_iter().map(|(_, name, revision, _)| (name, Revision(revision))).collect()
}

/// Takes events until there are this many.
async fn take(watcher: &mut Watcher, most: usize) -> Vec<Revision> {
    let mut seen = Vec::new();
    while seen.len() < most {
        let events = watcher.next().await.expect("events");
        if events.is_empty() {
            watcher.changed().await;
        }
        seen.extend(events.iter().map(|event| event.revision));
    }
    seen
}

/// Takes events until the watcher learns that the resource is gone.
async fn take_to_the_end(watcher: &mut Watcher) -> Vec<Revision> {
    let mut seen = Vec::new();
    loop {
        match watcher.next().await {
            Ok(events) if events.is_empty() => watcher.changed().await,
            Ok(events) => seen.extend(events.iter().map(|event| event.revision)),
            Err(Error::Removed) => return seen,
            Err(error) => panic!("{error}"),
        }
    }
}

/// In every round the resource is added, read, watched and removed while it and another one are written. In turns, the
/// cache is made to load everything again while it holds the resource, while the resource is being added, or while it
/// does not hold it.
async fn a_resource_comes_and_goes_under_load(database: Database) {
    let backend = Faulty::new(database.open().await);
    let server = Server::start_on(backend.clone(), &Runtime::default()).await;
    let widgets = resource(&*backend, "widgets").await;
    let loads = [Load::start(&server.store, server.pods), Load::start(&server.store, widgets)];
    let mut watched = Vec::new();
    for round in 0..ROUNDS {
        let hidden = format!("hidden-{round}");
        let reload = force_a_reload(&server, &backend, &hidden);
        match round % 3 {
            0 => reload.await,
            1 => drop(tokio::join!(reload, add_in_the_end(&server, widgets))),
            _ => {}
        }
        server.cache.add(widgets).await.expect("added");
        let state = server.cache.any();
        assert!(state.holds(widgets), "round {round}");
        assert_eq!(held(&state, widgets), stored(&*backend, widgets, state.revision).await, "round {round}");
        let mut watcher = server.cache.watch(widgets, state.revision);
        let mut seen = take(&mut watcher, EVENTS).await;
        if round % 3 == 2 {
            force_a_reload(&server, &backend, &hidden).await;
            seen.extend(take(&mut watcher, EVENTS).await);
            let state = server.cache.any();
            let stored = stored(&*backend, widgets, state.revision).await;
            assert_eq!(held(&state, widgets), stored, "round {round}");
        }
        server.cache.remove(widgets).await.expect("removed");
        assert!(!server.cache.any().holds(widgets));
        seen.extend(take_to_the_end(&mut watcher).await);
        let late = server.cache.watch(widgets, state.revision).next().await;
        assert!(matches!(late, Err(Error::Removed)), "{late:?}");
        watched.push((state.revision, seen));
    }
    let [_, written] = loads;
    let written = written.stop().await;
    for (from, seen) in watched {
        let followed = written.iter().copied().filter(|revision| *revision > from);
        assert_eq!(seen, followed.take(seen.len()).collect::<Vec<_>>(), "a gap after {from}");
    }
    let loads = backend.loads.lock().expect("never poisoned");
    let anew = loads[1..].iter().filter(|resources| resources.contains(&server.pods));
    assert!(anew.clone().any(|resources| resources.contains(&widgets)), "{loads:?}");
    assert!(anew.clone().any(|resources| !resources.contains(&widgets)), "{loads:?}");
}

async fn writes_to_what_is_not_held_pass_by(database: Database) {
    let server = Server::start(&database).await;
    let widgets = resource(&*server.backend, "widgets").await;
    let key = Key::new(widgets, "ns", "a");
    let at = server.write(create(&key, 1)).await;
    let state = server.cache.any();
    assert!(state.revision >= at && !state.holds(widgets) && state.objects(widgets).is_empty());
    let none = server.cache.watch(widgets, Revision(1)).next().await;
    assert!(matches!(none, Err(Error::Removed)), "{none:?}");

    let both = tokio::join!(server.cache.add(widgets), server.cache.add(widgets));
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    assert_eq!(held(&server.cache.any(), widgets), [("a".to_owned(), at)]);
    let mut watcher = server.cache.watch(widgets, at);
    let gone = server.write(delete(&key, at)).await;
    assert_eq!(take(&mut watcher, 1).await, [gone]);
    // Earlier events are in the table.
    assert_eq!(take(&mut server.cache.watch(widgets, Revision(at.0 - 1)), 2).await, [at, gone]);
    server.cache.remove(widgets).await.expect("removed");
    server.cache.remove(widgets).await.expect("nothing to remove");
    server.cache.add(widgets).await.expect("added again");
    assert!(matches!(watcher.next().await, Err(Error::Removed)), "it stays at its end");
    let again = server.write(create(&key, 2)).await;
    assert_eq!(take(&mut server.cache.watch(widgets, gone), 1).await, [again]);
}

async fn a_resource_that_cannot_be_loaded_is_not_added(database: Database) {
    let (backend, runtime) = (Faulty::new(database.open().await), Runtime::default());
    let server = Server::start_on(backend.clone(), &runtime).await;
    let widgets = resource(&*backend, "widgets").await;
    // The commits of another server cannot be read. PostgreSQL tells of one at once, so reads fail before there is one.
    backend.failing.store(u64::MAX, SeqCst);
    pass(&*backend.inner, create(&Key::new(widgets, "ns", "a"), 1)).await;
    let failed = server.cache.add(widgets).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
    assert!(!server.cache.any().holds(widgets));
    backend.failing.store(0, SeqCst);
    server.cache.add(widgets).await.expect("added");
    assert_eq!(held(&server.cache.any(), widgets).len(), 1);
    runtime.tasks.stop();
    runtime.tasks.ended().await;
    let late = server.cache.remove(widgets).await;
    assert!(matches!(late, Err(Error::Closed)), "{late:?}");
}

on_every_backend! {
    a_resource_comes_and_goes_under_load,
    writes_to_what_is_not_held_pass_by,
    a_resource_that_cannot_be_loaded_is_not_added,
}
