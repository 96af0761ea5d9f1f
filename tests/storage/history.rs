//! The past: times of commits, their writers, and states before the newest one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::TryStreamExt as _;
use rowplane::metrics::Metrics;
use rowplane::revision::Revision;
use rowplane::scheduling::Scheduling;
use rowplane::schema::names::GroupResource;
use rowplane::storage::memory::Memory;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{
    Author, Backend, ChangeFilter, ChangeKind, Compaction, Error, Key, Moment, Mutation, PastError,
    Precision, Retention, Row, Scan, Writer, compact_regularly,
};
use rowplane::wall_clock::WallClock;

use crate::support::database::Database;
use crate::support::object::{create, delete, give_up, pass, resource, update};

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

/// A clock that a test sets.
fn set_clock() -> (WallClock, Arc<AtomicI64>) {
    let ahead = Arc::new(AtomicI64::new(0));
    let set = ahead.clone();
    let real = WallClock::default();
    let now = move || {
        let ms = real.millis() + set.load(Ordering::Acquire);
        UNIX_EPOCH + Duration::from_millis(ms as u64)
    };
    (WallClock::new(now), ahead)
}

/// A store whose commits are stamped by this clock; `None` for PostgreSQL, whose own clock stamps them.
async fn open_with(database: &Database, clock: WallClock) -> Option<Arc<dyn Backend>> {
    match database {
        Database::Sqlite(_) => {
            let store = Sqlite::open_beside(&database.file(), Scheduling::default(), clock).await;
            Some(Arc::new(store.expect("open")))
        }
        Database::Memory(_) => Some(Arc::new(Memory::new(clock))),
        Database::Postgres(_) => None,
    }
}

fn compacts_often(retention: Retention) -> Compaction {
    let often = Duration::from_millis(50);
    Compaction { interval: often, history: often, retention: Some(retention) }
}

/// Assertion 5 of `docs/spec/time-and-sql.md`: a clock that is set back an hour.
pub async fn stamps_stand_still_while_the_clock_is_back(database: &Database) {
    let (clock, ahead) = set_clock();
    let Some(backend) = open_with(database, clock).await else { return };
    let resource = resource(&*backend, "things").await;
    let key = Key::new(resource, "ns", "a");
    let first = pass(&*backend, create(&key, 1)).await;
    let before = newest(&*backend).await;
    ahead.store(-3_600_000, Ordering::Release);
    let second = pass(&*backend, update(&key, first, 2)).await;
    assert_eq!(newest(&*backend).await, Moment { revision: second, committed_ms: before.committed_ms });
    assert_eq!(backend.row_past(&key, first).await.expect("read").expect("a row").revision, first);
    let past = backend.moment_at(before.committed_ms - 3_000_000).await;
    assert!(matches!(past, Err(PastError::BeforeFirst | PastError::Future { .. })), "{past:?}");

    let metrics: Arc<Metrics> = Arc::default();
    let config = compacts_often(Retention::default());
    let compactor = tokio::spawn(compact_regularly(backend.clone(), config, metrics.clone()));
    while !metrics.render().contains("\nrowplane_commit_clock_ahead_seconds 3") {
        tokio::task::yield_now().await;
    }
    compactor.abort();
    ahead.store(1000, Ordering::Release);
    pass(&*backend, update(&key, second, 3)).await;
    assert!(newest(&*backend).await.committed_ms > before.committed_ms);
}

/// Assertion 19 of `docs/spec/time-and-sql.md`: each resource is kept as long as its rule says.
pub async fn each_resource_has_a_floor_of_its_own(database: &Database) {
    let (clock, ahead) = set_clock();
    let Some(backend) = open_with(database, clock).await else { return };
    let names = [GroupResource::new("coordination.k8s.io", "leases"), GroupResource::new("", "configmaps")];
    let ids = backend.resource_ids(&names).await.expect("ids");
    let [leases, config_maps] = [ids[0], ids[1]];
    let mut versions = Vec::new();
    for resource in ids {
        versions.push(pass(&*backend, create(&Key::new(resource, "ns", "a"), 1)).await);
    }
    let then = backend.clock().await.expect("clock").revision;
    ahead.store(600_000, Ordering::Release);
    for (resource, version) in [leases, config_maps].into_iter().zip(&mut versions) {
        *version = pass(&*backend, update(&Key::new(resource, "ns", "a"), *version, 2)).await;
    }
    let rules = Retention::parse_keep("leases.coordination.k8s.io=5m,*=1h").expect("rules");
    let config = compacts_often(Retention::new(rules, None));
    let compactor = tokio::spawn(compact_regularly(backend.clone(), config, Arc::default()));
    while backend.clock().await.expect("clock").compacted < versions[1]
        || backend.floor(leases, None).await.expect("a floor") < then
        || backend.unswept().await.expect("a number") > 0
    {
        tokio::task::yield_now().await;
    }
    compactor.abort();
    let compacted = backend.clock().await.expect("clock").compacted;
    for resource in [leases, config_maps] {
        assert!(backend.floor(resource, None).await.expect("a floor") <= compacted);
    }
    let before = Revision(then.0 - 1);
    let gone = backend.scan_past(Scan::all(leases), before).await;
    assert!(matches!(gone, Err(PastError::Expired { resource, .. }) if resource == leases));
    assert_eq!(names_at(&*backend, &Scan::all(config_maps), then).await, ["a"]);
    assert_eq!(
        backend.versions_of(&Key::new(config_maps, "ns", "a"), None, 9).await.expect("versions").len(),
        2
    );
    // The version of the lease that is live at the floor is still there, and its time is known by the marks.
    assert_eq!(names_at(&*backend, &Scan::all(leases), then).await, ["a"]);
}

/// Assertion 25 of `docs/spec/time-and-sql.md`, but for the Event: over the budget the largest resource loses history.
pub async fn the_largest_resource_gives_way_to_the_budget(database: &Database) {
    let backend = database.open().await;
    if backend.size().await.expect("a size").is_none() {
        return; // A store in memory has no budget.
    }
    let (small, large) = (resource(&*backend, "small").await, resource(&*backend, "large").await);
    let (a, b) = (Key::new(small, "ns", "a"), Key::new(large, "ns", "b"));
    let first = pass(&*backend, create(&a, 0)).await;
    let mut at = pass(&*backend, create(&b, 0)).await;
    for n in 0..300 {
        at = pass(&*backend, update(&b, at, n)).await;
    }
    backend.compact(at).await.expect("compact");
    let holdings = backend.holdings().await.expect("holdings");
    let bytes: u64 = holdings.iter().map(|holding| holding.bytes).sum();
    let metrics: Arc<Metrics> = Arc::default();
    let retention = Retention::new(Retention::parse_keep("*=forever").expect("rules"), Some(bytes / 2));
    let compactor =
        tokio::spawn(compact_regularly(backend.clone(), compacts_often(retention), metrics.clone()));
    while backend.floor(large, None).await.expect("a floor") < first
        || backend.unswept().await.expect("a number") > 0
    {
        tokio::task::yield_now().await;
    }
    compactor.abort();
    assert!(backend.floor(small, None).await.expect("a floor") < first);
    assert!(metrics.render().contains("rowplane_history_trimmed_total{resource=\"large."));
    let left: u64 = backend.holdings().await.expect("holdings").iter().map(|holding| holding.bytes).sum();
    assert!(left <= bytes / 2 && left >= bytes / 3, "{left} of {bytes}");
    assert_eq!(names_at(&*backend, &Scan::all(large), at).await, ["b"]);
}

/// Assertion 7 of `docs/spec/time-and-sql.md`: without its change a version's time is known by the marks.
pub async fn marks_outlive_changes(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "ns", "b"));
    let old = pass(&*backend, create(&a, 1)).await;
    let (exact, _) = backend.moment_of(old).await.expect("a moment");
    let mut at = pass(&*backend, create(&b, 1)).await;
    while newest(&*backend).await.committed_ms < exact.committed_ms + 2000 {
        at = pass(&*backend, update(&b, at, 1)).await;
    }
    give_up(&*backend, at).await;
    while backend.sweep(1000).await.expect("sweep").changes > 0 {}
    let versions = backend.versions_of(&a, None, 9).await.expect("versions");
    let [version] = &versions[..] else { panic!("{versions:?}") };
    assert_eq!((version.revision, version.committed_ms, version.event), (old, None, None));
    let (found, precision) = backend.moment_of(old).await.expect("a moment");
    let within = match precision {
        Precision::Exact => 0,
        Precision::Within { ms } => ms,
        Precision::Before => panic!("it is after the first mark"),
    };
    let late = found.committed_ms - exact.committed_ms;
    assert!((0..=within).contains(&late), "{late} ms of {within}");
    assert!(within < 2000, "{within}");
}
