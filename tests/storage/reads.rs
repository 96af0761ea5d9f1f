//! Lists and counts at revisions.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rowplane::revision::Revision;
use rowplane::storage::{Backend, Error, Key, Mutation, ResourceId, Row, Scan};

use crate::support::database::Database;
use crate::support::object::{
    Item, create, delete, feed, give_up, list, names, pass, resource, update, value,
};

const NAMESPACES: [&str; 4] = ["", "a", "a-b", "b"];

pub async fn lists_at_every_past_revision(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let others = resource(&*backend, "others").await;
    let history = write_history(&*backend, things, others).await;
    for (at, state) in &history {
        for scan in scans(things) {
            let expected = expected(state, &scan);
            let found = list(&*backend, &scan, *at).await.expect("list");
            assert_eq!(found, expected, "{scan:?} at {at}");
            let unlimited = Scan { limit: None, ..scan };
            let count = backend.count(&unlimited, *at).await.expect("count");
            assert_eq!(count, self::expected(state, &unlimited).len() as u64, "{unlimited:?} at {at}");
        }
    }
}

/// Loading a cache yields the same as lists: first the revisions, in the order of lists, then their rows.
pub async fn what_is_live_is_read_by_revision(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let others = resource(&*backend, "others").await;
    let nothing = resource(&*backend, "nothing").await;
    let history = write_history(&*backend, things, others).await;
    for (at, state) in &history {
        let live = backend.live_revisions(&[nothing, things], *at).await.expect("revisions");
        let expected = expected(state, &Scan::all(things));
        let versions: Vec<Revision> = expected.iter().map(|(_, _, version, _)| Revision(*version)).collect();
        assert_eq!(live, [vec![], versions], "{at}");
        let mut rows = rows_of(&*backend, live.concat()).await;
        rows.sort_unstable();
        assert_eq!(rows, expected, "{at}");
    }
    // A row that was swept is missing, and is not reported as live.
    let (first, end) = (history[0].0, history[history.len() - 1].0);
    let all = backend.live_revisions(&[things, others], end).await.expect("revisions").concat();
    give_up(&*backend, end).await;
    while backend.sweep(1000).await.expect("sweep").changes > 0 {}
    let early = backend.live_revisions(&[things], first).await;
    assert!(matches!(early, Err(Error::Compacted { oldest }) if oldest == end), "{early:?}");
    let mut left: Vec<u64> = rows_of(&*backend, (first.0..=end.0).map(Revision).collect())
        .await
        .into_iter()
        .map(|row| row.2)
        .collect();
    left.sort_unstable();
    let mut all: Vec<u64> = all.into_iter().map(|revision| revision.0).collect();
    all.sort_unstable();
    assert_eq!(left, all);
}

async fn rows_of(backend: &dyn Backend, revisions: Vec<Revision>) -> Vec<Item> {
    let blocks = backend.rows_of(revisions).await.expect("rows");
    let blocks: Vec<_> = blocks.try_collect().await.expect("rows");
    let item = |row: Row| (row.namespace.into(), row.name.into(), row.revision.0, row.value);
    blocks.into_iter().flatten().map(item).collect()
}

type State = BTreeMap<(String, String), (u64, u64)>;

/// Creates, updates, deletes and creates again. Returns the states after each write, from a model.
async fn write_history(
    backend: &dyn Backend,
    things: ResourceId,
    others: ResourceId,
) -> Vec<(Revision, State)> {
    let mut random = StdRng::seed_from_u64(3);
    let mut state = State::new();
    let mut history = vec![(backend.clock().await.expect("clock").revision, state.clone())];
    for n in 0..60 {
        let namespace = NAMESPACES[random.random_range(0..NAMESPACES.len())];
        let name = ["x", "x-1", "y"][random.random_range(0..3)];
        let key = Key::new(things, namespace, name);
        let at = (namespace.to_owned(), name.to_owned());
        let (mutation, deletes) = match state.get(&at) {
            None => (create(&key, n), false),
            Some((version, _)) if random.random_bool(0.4) => (delete(&key, Revision(*version)), true),
            Some((version, _)) => (update(&key, Revision(*version), n), false),
        };
        let revision = pass(backend, mutation).await;
        if deletes {
            state.remove(&at);
        } else {
            state.insert(at, (revision.0, n));
        }
        history.push((revision, state.clone()));
        // Rows of another resource with the same names are never returned.
        let foreign: Mutation = create(&Key::new(others, namespace, &format!("{name}-{n}")), 0);
        history.push((pass(backend, foreign).await, state.clone()));
    }
    history
}

fn scans(resource: ResourceId) -> Vec<Scan> {
    let all = Scan::all(resource);
    let mut scans = vec![all.clone()];
    for limit in [Some(1), Some(2), None] {
        for (namespace, name) in [("", "x"), ("a", "x"), ("a", "zz"), ("a-b", "x-1"), ("b", "y")] {
            let after = Some((namespace.into(), name.into()));
            scans.push(Scan { after: after.clone(), limit, ..all.clone() });
            scans.push(Scan { namespace: Some(namespace.into()), after, limit, ..all.clone() });
        }
        for namespace in NAMESPACES {
            scans.push(Scan { namespace: Some(namespace.into()), limit, ..all.clone() });
        }
    }
    scans
}

fn expected(state: &State, scan: &Scan) -> Vec<Item> {
    let after = scan.after.as_ref().map(|(namespace, name)| (namespace.to_string(), name.to_string()));
    state
        .iter()
        .filter(|((namespace, _), _)| scan.namespace.as_deref().is_none_or(|only| only == namespace))
        .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
        .map(|((namespace, name), (version, n))| (namespace.clone(), name.clone(), *version, value(*n)))
        .take(scan.limit.map_or(usize::MAX, |limit| limit as usize))
        .collect()
}

/// `-` sorts before letters, digits and the separator behind a namespace: (a, z) comes before (a-b, a).
pub async fn lists_are_in_the_order_of_bytes(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let ordered = ["a/Z", "a/a", "a/a-a", "a/a.a", "a/aa", "a/ä", "a-b/a", "a.b/a", "aa/a", "b/a"];
    for place in ordered.iter().rev() {
        let (namespace, name) = place.split_once('/').expect("a slash");
        pass(&*backend, create(&Key::new(resource, namespace, name), 0)).await;
    }
    let at = backend.clock().await.expect("clock").revision;
    assert_eq!(names(&*backend, &Scan::all(resource), at).await, ordered);
    for (index, place) in ordered.iter().enumerate() {
        let after = place.split_once('/').map(|(namespace, name)| (namespace.into(), name.into()));
        let rest = Scan { after, ..Scan::all(resource) };
        assert_eq!(names(&*backend, &rest, at).await, ordered[index + 1..]);
    }
}

pub async fn the_future_is_refused(database: &Database) {
    let backend = database.open().await;
    let scan = Scan::all(resource(&*backend, "things").await);
    let current = backend.clock().await.expect("clock").revision;
    let requested = Revision(current.0 + 1);
    let refused = |error: &Error| match error {
        Error::Future { requested: r, current: c } => (*r, *c) == (requested, current),
        _ => false,
    };
    let error = list(&*backend, &scan, requested).await.expect_err("the future");
    assert!(refused(&error), "{error}");
    let error = backend.count(&scan, requested).await.expect_err("the future");
    assert!(refused(&error), "{error}");
}

/// Writes, compactions and sweeps during a list do not show in it.
pub async fn a_list_is_one_snapshot(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let keys: Vec<Key> = (0..1000).map(|n| Key::new(resource, "ns", &format!("{n:04}"))).collect();
    let mut versions = Vec::new();
    for chunk in keys.chunks(250) {
        let batch: Vec<Mutation> = chunk.iter().map(|key| create(key, 1)).collect();
        let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
        versions.extend((1..=batch.len() as u64).map(|n| Revision(commit.base.0 + n)));
    }
    let at = backend.clock().await.expect("clock").revision;
    let mut rows = backend.scan(Scan::all(resource), at).await.expect("scan");
    let first = rows.try_next().await.expect("a row").expect("a row");
    assert_eq!(first.revision, versions[0]);
    for chunk in keys.iter().zip(&versions).collect::<Vec<_>>().chunks(250) {
        let batch: Vec<Mutation> = chunk.iter().map(|(key, version)| delete(key, **version)).collect();
        backend.commit(&batch, Revision(0)).await.expect("commit");
    }
    let end = backend.clock().await.expect("clock").revision;
    give_up(&*backend, end).await;
    while backend.sweep(500).await.expect("sweep").changes == 500 {}
    let rest: Vec<_> = rows.map_ok(|row| row.revision).try_collect().await.expect("the rest");
    assert_eq!(rest, versions[1..]);
    assert_eq!(backend.count(&Scan::all(resource), end).await.expect("count"), 0);
}

/// More abandoned lists than there are connections.
pub async fn an_abandoned_list_frees_its_connection(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    for slice in 0..8 {
        let batch: Vec<Mutation> =
            (0..250).map(|n| create(&Key::new(resource, "ns", &format!("{slice}-{n}")), n)).collect();
        backend.commit(&batch, Revision(0)).await.expect("commit");
    }
    let at = backend.clock().await.expect("clock").revision;
    for _ in 0..40 {
        let mut rows = backend.scan(Scan::all(resource), at).await.expect("scan");
        rows.try_next().await.expect("a row").expect("a row");
    }
    assert_eq!(list(&*backend, &Scan::all(resource), at).await.expect("list").len(), 2000);
}

pub async fn reopening_finds_everything(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock").revision;
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "", "b"));
    let first = pass(&*backend, create(&a, 1)).await;
    let second = pass(&*backend, update(&a, first, 2)).await;
    let third = pass(&*backend, create(&b, 1)).await;
    pass(&*backend, delete(&b, third)).await;
    let clock = backend.clock().await.expect("clock");
    let mut lists = Vec::new();
    for at in [first, second, third, clock.revision] {
        lists.push((at, list(&*backend, &Scan::all(resource), at).await.expect("list")));
    }
    backend.close().await;
    drop(backend);

    let backend = database.open().await;
    assert_eq!(backend.clock().await.expect("clock"), clock);
    for (at, expected) in lists {
        assert_eq!(list(&*backend, &Scan::all(resource), at).await.expect("list"), expected);
    }
    assert_eq!(feed(&*backend, start, None, 100).await.len(), 4);
    assert_eq!(pass(&*backend, update(&a, second, 3)).await.0, clock.revision.0 + 1);
}
