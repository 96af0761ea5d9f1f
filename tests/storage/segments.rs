//! Superseded versions in segments: what they take, and that all of them are found.

use std::collections::BTreeMap;

use bytes::Bytes;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::storage::{Backend, Change, ChangeFilter, Expect, Key, Mutation, Scan};

use crate::support::database::Database;
use crate::support::object::{create, delete, give_up, items, pass, resource, update, value};

const OBJECTS: &str = "SELECT CAST(SUM(length(value)) AS bigint) FROM objects";
const SEGMENTS: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS bigint) FROM segments";

/// Moves all that may be moved.
async fn move_all(backend: &dyn Backend) {
    let clock = backend.clock().await.expect("clock");
    backend.compact(clock.revision).await.expect("compacted");
    while backend.segment(clock.revision).await.expect("segments") {}
}

/// A Pod of 5 KB whose container has been restarted so often.
fn pod(restarts: u64) -> Bytes {
    let environment: Vec<String> =
        (0..80).map(|n| format!(r#"{{"name":"VARIABLE_{n}","value":"{}"}}"#, n * 7919 % 1000)).collect();
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"uid":"u","name":"web"}},"spec":{{"env":[{}]}},"status":{{"restarts":{restarts},"since":"2026-11-29T10:{:02}:00Z"}}}}"#,
        environment.join(","),
        restarts % 60
    )
    .into()
}

/// Assertion 26 of `docs/spec/time-and-sql.md`.
pub async fn a_segment_takes_a_tenth_of_its_rows(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "pods").await, "ns", "web");
    let (mut at, mut versions) = (None, BTreeMap::new());
    for n in 0..65 {
        let draft = Draft::of_json("ns", "web", pod(n));
        let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
        let expect = at.map_or(Expect::Absent, Expect::At);
        let revision = pass(&*backend, Mutation::new(key.clone(), expect, change)).await;
        versions.insert(revision, pod(n));
        at = Some(revision);
    }
    let rows = database.number(OBJECTS).await;
    move_all(&*backend).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM objects").await, 1);
    let segments = database.number(SEGMENTS).await;
    assert!(segments * 10 < rows, "{segments} bytes for {rows}");
    for (revision, value) in &versions {
        let row = backend.row_past(&key, *revision).await.expect("read").expect("a row");
        assert_eq!((row.revision, &row.value), (*revision, value));
    }
    let told = backend.versions_of(&key, None, 100).await.expect("versions");
    assert!(told.iter().all(|version| version.event.is_some() && version.committed_ms.is_some()));
    let told = told.into_iter().map(|version| (version.revision, version.row.value));
    assert!(told.eq(versions.into_iter().rev()));
}

/// Live, deleted and recreated objects, some of whose versions are moved, some in two goes, some not at all.
pub async fn versions_are_found_wherever_they_are(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let key = |name: &str| Key::new(things, "ns", name);
    let mut states: BTreeMap<Revision, BTreeMap<String, (u64, Bytes)>> = BTreeMap::new();
    let mut state = BTreeMap::new();
    for round in 0..24 {
        for name in ["often", "gone", "seldom"] {
            let live = state.get(name).map(|(revision, _)| Revision(*revision));
            let mutation = match (name, live) {
                ("seldom", _) if round % 8 > 0 => continue,
                ("gone", Some(at)) if round % 5 == 4 => delete(&key(name), at),
                (_, Some(at)) => update(&key(name), at, round),
                (_, None) => create(&key(name), round),
            };
            let is_deletion = matches!(mutation.change, Change::Delete);
            let revision = pass(&*backend, mutation).await;
            match is_deletion {
                true => drop(state.remove(name)),
                false => drop(state.insert(name.to_owned(), (revision.0, value(round)))),
            }
            states.insert(revision, state.clone());
        }
        if round == 10 {
            move_all(&*backend).await;
        }
    }
    move_all(&*backend).await;
    assert!(database.number("SELECT COUNT(*) FROM segments").await >= 4);
    let scan = Scan::all(things);
    let before = states.keys().next().expect("a state").0 - 1;
    let changes = backend.changes_between(&ChangeFilter::default(), None, Revision(before), 100).await;
    assert!(changes.expect("changes").iter().all(|change| &*change.uid == "u"));
    for (revision, state) in &states {
        let found =
            items(backend.scan_past(scan.clone(), *revision).await.expect("rows")).await.expect("rows");
        let found: BTreeMap<_, _> =
            found.into_iter().map(|(_, name, revision, value)| (name, (revision, value))).collect();
        assert_eq!(&found, state, "at {revision}");
        let count = backend.count_past(&scan, *revision).await.expect("a count");
        assert_eq!(count, state.len() as u64, "at {revision}");
    }
    give_up(&*backend, *states.keys().next_back().expect("a state")).await;
    while backend.sweep(7).await.expect("sweep").changes > 0 {}
    assert_eq!(database.number("SELECT COUNT(*) FROM segments").await, 0);
}

/// Servers of one database do not move a version twice.
pub async fn one_of_two_servers_moves(database: &Database) {
    if !matches!(database, Database::Postgres(_)) {
        return;
    }
    let (one, other) = (database.open().await, database.open().await);
    let key = Key::new(resource(&*one, "things").await, "ns", "a");
    let mut at = pass(&*one, create(&key, 0)).await;
    let first = at;
    for n in 1..2000 {
        at = pass(&*one, update(&key, at, n)).await;
    }
    tokio::join!(move_all(&*one), move_all(&*other));
    move_all(&*one).await;
    assert_eq!(database.number("SELECT CAST(SUM(versions) AS bigint) FROM segments").await, 1999);
    let versions = one.versions_of(&key, None, 3000).await.expect("versions");
    assert!(versions.iter().map(|version| version.revision.0).eq((first.0..=at.0).rev()));
}
