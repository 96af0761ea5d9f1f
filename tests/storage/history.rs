//! The past: times of commits, their writers, and states before the newest one.

use futures_util::TryStreamExt as _;
use rowplane::revision::Revision;
use rowplane::storage::{
    Author, Backend, ChangeFilter, ChangeKind, Error, Key, Moment, Mutation, PastError, Precision, Row, Scan,
    Writer,
};

use crate::support::database::Database;
use crate::support::object::{create, delete, pass, resource, update};

/// Waits until the clock of the store shows a later millisecond, and returns it.
async fn later(backend: &dyn Backend) -> i64 {
    let Moment { committed_ms, .. } = newest(backend).await;
    let mut ms = committed_ms + 1;
    loop {
        match backend.moment_at(ms).await {
            Ok(_) => return ms,
            Err(PastError::Future { now_ms }) => ms = now_ms.max(ms),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn newest(backend: &dyn Backend) -> Moment {
    let revision = backend.clock().await.expect("clock").revision;
    backend.moment_of(revision).await.expect("the newest commit").0
}

fn by(username: &str, mutation: Mutation) -> Mutation {
    let writer = Writer { username: username.to_owned(), verb: "update".to_owned(), ..Writer::default() };
    Mutation { author: Some(Author::new(writer)), ..mutation }
}

async fn names_at(backend: &dyn Backend, scan: &Scan, at: Revision) -> Vec<String> {
    let rows: Vec<Row> =
        backend.scan_past(scan.clone(), at).await.expect("a scan").try_collect().await.expect("rows");
    rows.iter().map(|row| row.name.to_string()).collect()
}

/// Assertion 1 of `docs/spec/time-and-sql.md`, the part of the store.
pub async fn a_time_is_a_revision(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "ns", "b"));
    let first = pass(&*backend, create(&a, 1)).await;
    let between = later(&*backend).await;
    pass(&*backend, delete(&a, first)).await;
    let last = pass(&*backend, create(&b, 1)).await;

    let then = backend.moment_at(between).await.expect("a moment");
    assert_eq!(then.revision, first);
    let scan = Scan::all(resource);
    assert_eq!(names_at(&*backend, &scan, then.revision).await, ["a"]);
    assert_eq!(names_at(&*backend, &scan, last).await, ["b"]);
    assert_eq!(backend.count_past(&scan, first).await.expect("a count"), 1);
    assert_eq!(backend.row_past(&a, first).await.expect("read").expect("a row").revision, first);
    assert!(backend.row_past(&a, last).await.expect("read").is_none());
    assert!(backend.row_past(&b, first).await.expect("read").is_none());

    let (own, precision) = backend.moment_of(first).await.expect("a moment");
    assert_eq!((own, precision), (then, Precision::Exact));
    assert!(matches!(backend.moment_at(1).await, Err(PastError::BeforeFirst)));
    let now = later(&*backend).await;
    let tomorrow = backend.moment_at(now + 86_400_000).await;
    assert!(matches!(tomorrow, Err(PastError::Future { now_ms }) if now_ms >= now));
    let future = backend.moment_of(Revision(last.0 + 1)).await;
    assert!(matches!(future, Err(PastError::Store(Error::Future { .. }))));
    let future = backend.scan_past(scan, Revision(last.0 + 1)).await;
    assert!(matches!(future, Err(PastError::Store(Error::Future { .. }))));
}

/// Every revision is found again by its own time, beside commits of several seconds. Assertions 4 and 6, the part of one
/// server: stamps do not decrease, and there is at most one mark a second.
pub async fn stamps_follow_revisions(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = Key::new(resource, "ns", "a");
    let begun = newest(&*backend).await.committed_ms;
    let mut at = pass(&*backend, create(&key, 0)).await;
    let first = at;
    while newest(&*backend).await.committed_ms < begun + 2100 {
        at = pass(&*backend, update(&key, at, at.0)).await;
    }
    let mut before = 0;
    for revision in (first.0..=at.0).step_by(7).map(Revision) {
        let (moment, precision) = backend.moment_of(revision).await.expect("a moment");
        assert_eq!(precision, Precision::Exact);
        assert!(moment.committed_ms >= before);
        before = moment.committed_ms;
        let found = backend.moment_at(moment.committed_ms).await.expect("a moment");
        // Several commits may have one stamp; the last of them is found.
        assert!(found.revision >= revision && found.committed_ms == moment.committed_ms, "{found:?}");
    }
    if !matches!(database, Database::Memory(_)) {
        assert!((2..=4).contains(&database.number("SELECT COUNT(*) FROM marks").await));
    }
}

pub async fn versions_and_changes_have_their_writers(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "other", "b"));
    let first = pass(&*backend, by("anna", create(&a, 1))).await;
    let second = pass(&*backend, by("bert", update(&a, first, 2))).await;
    let third = pass(&*backend, create(&b, 1)).await;
    let fourth = pass(&*backend, by("anna", delete(&a, second))).await;
    let fifth = pass(&*backend, by("anna", create(&a, 3))).await;

    let versions = backend.versions_of(&a, None, 10).await.expect("versions");
    let told: Vec<_> = versions
        .iter()
        .map(|version| {
            let user = version.writer.as_ref().map(|writer| &*writer.username);
            (version.revision, version.event, version.previous, version.deleted, user)
        })
        .collect();
    let (added, modified, deleted) =
        (Some(ChangeKind::Added), Some(ChangeKind::Modified), Some(ChangeKind::Deleted));
    assert_eq!(
        told,
        [
            (fifth, added, None, false, Some("anna")),
            (fourth, deleted, Some(second), true, Some("anna")),
            (second, modified, Some(first), false, Some("bert")),
            (first, added, None, false, Some("anna")),
        ]
    );
    assert!(versions.iter().all(|version| !version.uid.is_empty() && version.committed_ms.is_some()));
    assert!(versions.iter().all(|version| version.deleted == version.row.value.is_empty()));
    let page = backend.versions_of(&a, Some(fourth), 1).await.expect("versions");
    assert_eq!(page.iter().map(|version| version.revision).collect::<Vec<_>>(), [second]);

    let between = async |filter: &ChangeFilter, before, after, limit| {
        let found = backend.changes_between(filter, before, after, limit).await.expect("changes");
        found.iter().map(|change| (change.revision, change.writer.is_some())).collect::<Vec<_>>()
    };
    let all = ChangeFilter::default();
    let start = Revision(first.0 - 1);
    let everything = [(fifth, true), (fourth, true), (third, false), (second, true), (first, true)];
    assert_eq!(between(&all, None, start, 10).await, everything);
    assert_eq!(between(&all, Some(fifth), first, 2).await, everything[1..3]);
    let of_namespace = ChangeFilter { namespace: Some("other".into()), ..all.clone() };
    assert_eq!(between(&of_namespace, None, start, 10).await, [(third, false)]);
    let of_resource = ChangeFilter { resource: Some(resource), namespace: Some("ns".into()) };
    assert_eq!(between(&of_resource, None, second, 10).await, everything[..2]);
    let changes = backend.changes_between(&all, None, start, 10).await.expect("changes");
    assert!(changes.iter().all(|change| !change.uid.is_empty() && change.resource == resource));
}
