//! Group commit: many callers, one writer.

use std::sync::Arc;

use bytes::Bytes;
use rowplane::codec::object::{Draft, Object, Replaces};
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::storage::{
    Backend, Change, Error, Expect, HighWaterMark, Key, Mutation, OwnCommit, RegistryChange, Scan, Store,
    Written,
};
use tokio::sync::mpsc;

use crate::support::database::Database;
use crate::support::object::{create, feed, list, names, pass, resource, update};

/// A store without a cache behind it.
pub fn start(backend: &Arc<dyn Backend>) -> Store {
    Store::start(backend.clone(), None, Arc::default(), &Runtime::default())
}

/// With somebody behind it who publishes.
pub fn start_with(backend: &Arc<dyn Backend>, sink: mpsc::Sender<OwnCommit>) -> Store {
    Store::start(backend.clone(), Some(sink), Arc::default(), &Runtime::default())
}

/// A store whose mark says that this revision has been acknowledged.
pub fn start_at(backend: &Arc<dyn Backend>, acknowledged: Revision) -> Store {
    let mark = Arc::new(HighWaterMark::default());
    mark.raise(acknowledged);
    Store::start(backend.clone(), None, mark, &Runtime::default())
}

/// Whichever way a write takes. What is spared replaces something longer, or only marks it.
pub async fn nothing_longer_than_the_limit_is_written(database: &Database) {
    const LIMIT: usize = 1000;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let store = Store::start_limited(backend.clone(), None, Arc::default(), &Runtime::default(), LIMIT);
    let put = |name: &str, length: usize, replaces: Replaces| {
        let around = br#"{"metadata":{}, "n": ""}"#.len();
        let value = format!(r#"{{"metadata":{{}}, "n": "{}"}}"#, "x".repeat(length - around));
        let draft = Draft::of_json("ns", name, value.into()).replacing(replaces);
        let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
        Mutation::new(Key::new(resource, "ns", name), Expect::Absent, change)
    };
    let long = || put("long", LIMIT + 1, Replaces::Nothing);
    let short = |name| put(name, LIMIT, Replaces::Nothing);
    let before = backend.clock().await.expect("clock").revision;
    assert!(matches!(store.write(long()).await, Err(Error::TooLarge)));
    assert!(matches!(store.write_joined(vec![long()], short("a")).await, Err(Error::TooLarge)));
    let registry = RegistryChange::Remove(Vec::new());
    assert!(matches!(store.write_together(vec![short("a"), long()], registry).await, Err(Error::TooLarge)));
    let longer = put("b", LIMIT + 9, Replaces::Json(LIMIT + 9));
    assert!(matches!(store.write(longer).await, Err(Error::TooLarge)));
    assert_eq!(backend.clock().await.expect("clock").revision, before, "nothing was written");
    for spared in
        [short("a"), put("b", LIMIT + 9, Replaces::Json(LIMIT + 10)), put("c", LIMIT + 9, Replaces::Anything)]
    {
        assert!(matches!(store.write(spared).await, Ok(Written::Committed { .. })));
    }
}

/// 200 writers at a time hand in an update of the same version; all of them try again until they have won once.
pub async fn one_hot_key_has_one_winner_per_version(database: &Database) {
    const WRITERS: u64 = 200;
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "hot");
    let first = pass(&*backend, create(&key, 0)).await;
    let store = start(&backend);
    let tasks: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (store, key) = (store.clone(), key.clone());
            tokio::spawn(async move {
                let mut at = first;
                loop {
                    match store.write(update(&key, at, n)).await.expect("write") {
                        Written::Committed { revision, .. } => return (at, revision),
                        Written::Conflict { found, .. } => at = found.expect("nobody deletes"),
                        lost => panic!("nothing is required: {lost:?}"),
                    }
                }
            })
        })
        .collect();
    let mut wins = Vec::new();
    for task in tasks {
        wins.push(task.await.expect("a writer"));
    }
    wins.sort_unstable();
    let expected: Vec<_> = (first.0..first.0 + WRITERS).map(|at| (Revision(at), Revision(at + 1))).collect();
    assert_eq!(wins, expected, "each version was replaced once, by the next");
}

pub async fn many_writers_get_consecutive_revisions(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start_at = backend.clock().await.expect("clock").revision;
    let store = start(&backend);
    let tasks: Vec<_> = (0..200_u64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = Key::new(resource, "ns", &format!("{n:03}"));
                let mut last = create_through(&store, &key, n).await;
                let mut all = vec![last];
                for _ in 0..4 {
                    match store.write(update(&key, last, n)).await.expect("write").of::<Object>() {
                        Written::Committed { revision, object } => {
                            assert_eq!(object.expect("the object").revision(), revision);
                            last = revision;
                        }
                        conflict => panic!("a key of its own: {conflict:?}"),
                    }
                    all.push(last);
                }
                all
            })
        })
        .collect();
    let mut revisions = Vec::new();
    for task in tasks {
        let own = task.await.expect("a writer");
        assert!(own.is_sorted(), "a writer's own writes are in order");
        revisions.extend(own);
    }
    revisions.sort_unstable();
    let expected: Vec<_> = (1..=1000).map(|n| Revision(start_at.0 + n)).collect();
    assert_eq!(revisions, expected);
    let told: Vec<_> = feed(&*backend, start_at, None, 300).await.iter().map(|row| row.revision).collect();
    assert_eq!(told, expected);
    assert_eq!(names(&*backend, &Scan::all(resource), Revision(start_at.0 + 1000)).await.len(), 200);
}

/// More writers than a batch has places, each of whom writes several rows together; two want the same rows.
pub async fn joined_writes_are_never_split(database: &Database) {
    const PAIRS: u64 = 200;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let before = backend.clock().await.expect("clock").revision;
    let store = start(&backend);
    let rivals = (0..PAIRS).flat_map(|pair| [(pair, "x"), (pair, "y")]);
    let tasks: Vec<_> = rivals
        .map(|(pair, rival)| {
            let store = store.clone();
            tokio::spawn(async move {
                let shared =
                    (0..3).map(|n| create(&Key::new(resource, "names", &format!("{pair}-{n}")), pair));
                let own = create(&Key::new(resource, "owners", &format!("{pair}-{rival}")), pair);
                matches!(
                    store.write_joined(shared.collect(), own).await.expect("write"),
                    Written::Committed { .. }
                )
            })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        winners += u64::from(task.await.expect("a writer"));
    }
    assert_eq!(winners, PAIRS, "one of each pair");
    let at = backend.clock().await.expect("clock").revision;
    assert_eq!(names(&*backend, &Scan::all(resource), at).await.len() as u64, 4 * PAIRS);
    // Wherever history is cut, a group is there as a whole or not at all, but for the one that is being written.
    let told = feed(&*backend, before, None, 300).await;
    for group in told.chunks(4) {
        let pair = |key: &Key| key.name.split('-').next().map(str::to_owned);
        assert!(group.iter().all(|row| pair(&row.key) == pair(&group[0].key)), "{group:?}");
        assert_eq!(&*group[3].key.namespace, "owners");
    }
}

async fn create_through(store: &Store, key: &Key, n: u64) -> Revision {
    match store.write(create(key, n)).await.expect("write") {
        Written::Committed { revision, .. } => revision,
        conflict => panic!("a key of its own: {conflict:?}"),
    }
}

pub async fn commits_reach_the_sink_before_the_writer(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "a");
    let (sink, mut commits) = mpsc::channel(4);
    let store = start_with(&backend, sink);
    let base = backend.clock().await.expect("clock").revision;
    let write = tokio::spawn({
        let (store, key) = (store.clone(), key.clone());
        async move { store.write(create(&key, 1)).await }
    });
    let commit = commits.recv().await.expect("the commit");
    assert!(!write.is_finished(), "the writer waits until readers can see its write");
    assert_eq!((commit.base, commit.writes.len()), (base, 1));
    assert_eq!((&commit.writes[0].key, commit.writes[0].revision.0), (&key, base.0 + 1));
    let object = commit.writes[0].object.clone().expect("a value");
    let object = object.downcast::<Object>().expect("the object");
    let text = String::from_utf8(object.json().expect("decodable").to_vec()).expect("text");
    assert!(text.contains(&format!("\"resourceVersion\":\"{}\"", base.0 + 1)), "{text}");
    commit.published.send(()).expect("somebody waits");
    write.await.expect("the task").expect("written");

    // A batch of losers has nothing to publish and waits for nobody.
    let lost = store.write(create(&key, 2)).await.expect("an answer");
    assert!(
        matches!(lost, Written::Conflict { found: Some(found), .. } if found.0 == base.0 + 1),
        "{lost:?}"
    );
}

pub async fn nothing_is_written_that_could_not_be_shown(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "a");
    let (sink, commits) = mpsc::channel(1);
    drop(commits);
    let refused = start_with(&backend, sink).write(create(&key, 1)).await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    let now = backend.clock().await.expect("clock").revision;
    assert!(names(&*backend, &Scan::all(key.resource), now).await.is_empty());
}

pub async fn a_caller_that_goes_away_does_not_stop_its_write(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start_at = backend.clock().await.expect("clock").revision;
    let store = start(&backend);
    let mut pending = 0;
    for n in 0..50_u64 {
        let key = Key::new(resource, "ns", &format!("{n:02}"));
        // Polled once, which hands the write in; then dropped. If this thread is suspended, a store in memory answers first.
        let mut write = Box::pin(store.write(create(&key, n)));
        pending += usize::from(futures_util::poll!(&mut write).is_pending());
    }
    assert!(pending > 0, "somebody goes away");
    while backend.clock().await.expect("clock").revision.0 < start_at.0 + 50 {
        tokio::task::yield_now().await;
    }
    let at = backend.clock().await.expect("clock").revision;
    assert_eq!(names(&*backend, &Scan::all(resource), at).await.len(), 50);
}

/// Together more than a batch may hold.
pub async fn large_values_in_one_batch(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let store = start(&backend);
    let blob = |n: usize| {
        let filler = char::from(b'a' + n as u8).to_string().repeat(1_500_000);
        Bytes::from(format!(r#"{{"kind":"K","metadata":{{"name":"{n}"}},"data":"{filler}"}}"#))
    };
    let tasks: Vec<_> = (0..6)
        .map(|n| {
            let key = Key::new(resource, "ns", &n.to_string());
            let draft = Draft::of_json("ns", &key.name, blob(n));
            let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
            let store = store.clone();
            tokio::spawn(async move {
                store.write(Mutation::new(key, Expect::Absent, change)).await.expect("write")
            })
        })
        .collect();
    for task in tasks {
        assert!(matches!(task.await.expect("a writer"), Written::Committed { .. }));
    }
    let at = backend.clock().await.expect("clock").revision;
    let items = list(&*backend, &Scan::all(resource), at).await.expect("list");
    assert_eq!(items.len(), 6);
    assert!(items.iter().enumerate().all(|(n, (.., value))| *value == blob(n)));
}
