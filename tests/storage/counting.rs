//! Revisions as etcd counts them, beside the store's own.

use rowplane::revision::Revision;
use rowplane::storage::{
    Backend, Change, Changes, Clock, Counting, Error, Key, Mutation, Outcome, ResourceId, Terms,
    UnchangedRange, Unit, Units, split_stamp,
};

use crate::support::database::Database;
use crate::support::object::{committed, create, delete, feed, give_up, pass, resource, update, value};

async fn commit(backend: &dyn Backend, units: impl IntoIterator<Item = Unit>) -> Vec<Outcome> {
    let mut units: Units = units.into_iter().collect();
    backend.commit_under(&mut units, Terms::default()).await.expect("commit").outcomes
}

fn key(resource: ResourceId, n: impl std::fmt::Display) -> Key {
    Key::new(resource, "", &format!("{n:04}"))
}

/// The creation of a row whose value is stamped.
fn stamped(key: &Key, n: u64) -> Mutation {
    let mut mutation = create(key, n);
    if let Change::Put { value, .. } = &mut mutation.change {
        *value = value.clone().stamped();
    }
    mutation
}

/// A unit of creations with one revision.
fn one_revision(resource: ResourceId, names: std::ops::Range<u64>) -> Unit {
    let mut operations: Vec<_> = names.map(|n| stamped(&key(resource, n), n)).collect();
    let last = operations.pop().expect("an operation");
    Unit::of_one_revision(operations, last)
}

/// Assertion 3 of `docs/spec/etcd.md`, as far as the store goes: revisions are counted by transaction, and the values, the
/// feed and the clock agree on them.
pub async fn a_unit_has_one_revision_or_none(database: &Database) {
    let backend = database.open().await;
    let (things, notes) = (resource(&*backend, "things").await, resource(&*backend, "notes").await);
    let start = backend.clock().await.expect("clock");
    assert_eq!(start.lag, 0);
    let note = |name: &str| create(&Key::new(notes, "", name), 0);
    let losers = Unit::of_one_revision(vec![note("c")], note("a"));
    let outcomes = commit(
        &*backend,
        [
            note("a").into(),
            one_revision(things, 1..4),
            losers,
            Unit::of_no_revision(vec![note("b")], note("c")),
            one_revision(things, 4..5),
        ],
    )
    .await;
    assert_eq!(
        outcomes[4..6],
        [Outcome::Apart, Outcome::Conflict { found: Some(Revision(start.revision.0 + 1)) }]
    );
    let clock = backend.clock().await.expect("clock");
    let end = Revision(start.revision.0 + 7);
    assert_eq!(clock, Clock { revision: end, lag: 4, ..start });
    assert_eq!(clock.etcd_revision(), start.revision.0 as i64 + 3);

    let rows = feed(&*backend, start.revision, None, 100).await;
    let counting: Vec<Counting> = rows.iter().map(|row| row.counting).collect();
    let (own, shared) = (Counting::Own, Counting::Shared);
    assert_eq!(counting, [own, shared, shared, own, shared, Counting::None, own]);
    let first = start.revision.0 as i64;
    let stamp = |row: &rowplane::storage::ChangeRow| {
        let (stamp, rest) = split_stamp(row.value.as_ref()?)?;
        (row.key.resource == things).then_some((stamp - first, rest))
    };
    let stamps: Vec<_> = rows.iter().filter_map(stamp).collect();
    assert_eq!(stamps, [(2, value(1)), (2, value(2)), (2, value(3)), (3, value(4))]);

    let mut lags = Vec::new();
    for at in start.revision.0..=end.0 {
        lags.push(backend.lag_at(Revision(at)).await.expect("the lag"));
    }
    assert_eq!(lags, [0, 0, 1, 2, 2, 3, 4, 4]);
    let mut sequences = Vec::new();
    for revision in first..first + 4 {
        sequences.push(backend.sequence_of(revision).await.expect("a revision").0 - start.revision.0);
    }
    // Changes that take no revision belong to the state of the one before them.
    assert_eq!(sequences, [0, 1, 6, 7]);
    let future = backend.sequence_of(first + 4).await;
    assert!(matches!(future, Err(Error::Future { .. })), "{future:?}");
}

/// A page, whether of all resources or of one, ends where a revision does.
pub async fn no_page_ends_within_a_unit(database: &Database) {
    let backend = database.open().await;
    let (things, others) = (resource(&*backend, "things").await, resource(&*backend, "others").await);
    let start = backend.clock().await.expect("clock").revision;
    let mixed = vec![create(&key(others, 1), 1), create(&key(things, 90), 1)];
    let units = [
        one_revision(things, 0..1),
        one_revision(things, 1..6),
        Unit::of_one_revision(mixed, create(&key(others, 2), 1)),
        one_revision(things, 6..8),
    ];
    commit(&*backend, units).await;
    let page = async |after: u64, resource, limit| {
        let changes: Changes =
            backend.changes(Revision(start.0 + after), resource, limit).await.expect("changes");
        (changes.rows.len(), changes.through.0 - start.0, changes.cut)
    };
    assert_eq!(page(0, None, 1).await, (1, 1, true));
    assert_eq!(page(0, None, 5).await, (1, 1, true));
    assert_eq!(page(0, None, 6).await, (6, 6, true));
    assert_eq!(page(1, None, 1).await, (8, 9, true), "a greater page, to the last end in it");
    assert_eq!(page(6, None, 2).await, (3, 9, true));
    assert_eq!(page(6, None, 100).await, (5, 11, false));
    assert_eq!(page(6, Some(others), 1).await, (2, 9, true));
    assert_eq!(page(6, Some(things), 2).await, (3, 11, false));
    for limit in 1..13 {
        for resource in [None, Some(things), Some(others)] {
            let rows = feed(&*backend, start, resource, limit).await;
            let whole = feed(&*backend, start, resource, 1000).await;
            let revisions = |rows: Vec<rowplane::storage::ChangeRow>| -> Vec<_> {
                rows.into_iter().map(|row| row.revision).collect()
            };
            assert_eq!(revisions(rows), revisions(whole), "{resource:?} in pieces of {limit}");
        }
    }
}

/// A range that is deleted is one unit, however many keys it has.
pub async fn a_unit_of_thousands_is_one_revision(database: &Database) {
    const KEYS: u64 = 5000;
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock");
    let outcomes = commit(&*backend, [one_revision(things, 0..KEYS)]).await;
    let made: Vec<Revision> = outcomes.into_iter().map(committed).collect();
    assert_eq!(made.last(), Some(&Revision(start.revision.0 + KEYS)));
    let mut deletions: Vec<_> = (0..).zip(&made).map(|(n, made)| delete(&key(things, n), *made)).collect();
    let last = deletions.pop().expect("a deletion");
    commit(&*backend, [Unit::of_one_revision(deletions, last)]).await;
    let clock = backend.clock().await.expect("clock");
    assert_eq!((clock.revision.0, clock.lag), (start.revision.0 + 2 * KEYS, 2 * (KEYS as i64 - 1)));
    assert_eq!(clock.etcd_revision(), start.etcd_revision() + 2);
    assert_eq!(
        backend.sequence_of(start.etcd_revision() + 1).await.expect("a revision"),
        made[KEYS as usize - 1]
    );
    let changes = backend.changes(start.revision, None, 1000).await.expect("changes");
    assert_eq!((changes.rows.len() as u64, changes.cut), (KEYS, true));
}

pub async fn a_range_that_changes_fails_the_write(database: &Database) {
    let backend = database.open().await;
    let (things, others) = (resource(&*backend, "things").await, resource(&*backend, "others").await);
    let base = pass(&*backend, create(&key(things, 5), 1)).await;
    let range = |start: u64, stop: Option<u64>, since| UnchangedRange {
        resource: things,
        start: key(things, start).name,
        stop: stop.map(|stop| key(things, stop).name),
        since,
    };
    let made = std::cell::Cell::new(0);
    let write = |range: UnchangedRange| {
        made.set(made.get() + 1);
        create(&key(others, made.get()), 1).requiring_unchanged(range).into()
    };
    let passes = |outcomes: &[Outcome]| -> Vec<bool> {
        outcomes.iter().map(|outcome| matches!(outcome, Outcome::Committed(_))).collect()
    };
    let outcomes = commit(
        &*backend,
        [
            write(range(0, Some(9), base)),
            write(range(0, Some(9), Revision(base.0 - 1))),
            write(range(0, Some(5), Revision(base.0 - 1))),
            write(range(5, Some(6), Revision(base.0 - 1))),
            write(range(6, None, Revision(base.0 - 1))),
            write(range(5, None, Revision(base.0 - 1))),
        ],
    )
    .await;
    assert_eq!(passes(&outcomes), [true, false, true, false, true, false]);
    assert_eq!(outcomes[1], Outcome::RangeChanged);

    // What the batch writes counts, a deletion included, and what has failed does not.
    let now = backend.clock().await.expect("clock").revision;
    let failing = Unit::of(vec![create(&key(things, 7), 1)], create(&key(things, 5), 1));
    let outcomes = commit(
        &*backend,
        [
            failing,
            write(range(0, None, now)),
            delete(&key(things, 5), base).into(),
            write(range(5, Some(6), now)),
            write(range(6, None, now)),
            create(&key(things, 8), 1).into(),
            write(range(6, None, now)),
        ],
    )
    .await;
    assert_eq!(passes(&outcomes), [false, false, true, true, false, true, true, false]);

    // Nobody can tell what has happened since a revision whose history is given up.
    let now = backend.clock().await.expect("clock").revision;
    give_up(&*backend, now).await;
    let outcomes =
        commit(&*backend, [write(range(0, Some(1), Revision(now.0 - 1))), write(range(0, Some(1), now))])
            .await;
    assert_eq!(passes(&outcomes), [false, true]);
}

pub async fn counts_survive_compaction_and_a_restart(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock");
    commit(&*backend, [one_revision(things, 0..4), one_revision(things, 4..7)]).await;
    let horizon = Revision(start.revision.0 + 4);
    give_up(&*backend, horizon).await;
    while backend.sweep(2).await.expect("sweep").changes == 2 {}
    backend.close().await;
    drop(backend);

    let backend = database.open().await;
    let clock = backend.clock().await.expect("clock");
    assert_eq!((clock.lag, clock.etcd_revision()), (5, start.etcd_revision() + 2));
    assert_eq!(backend.lag_at(horizon).await.expect("the lag"), 3);
    assert!(matches!(backend.lag_at(Revision(horizon.0 - 1)).await, Err(Error::Compacted { .. })));
    assert_eq!(backend.sequence_of(clock.etcd_revision() - 1).await.expect("a revision"), horizon);
    let gone = backend.sequence_of(start.etcd_revision()).await;
    assert!(matches!(gone, Err(Error::Compacted { .. })), "{gone:?}");

    // The clock jumps, and the lag stays.
    let jumped = backend.advance_clock(Revision(clock.revision.0 + 100)).await.expect("a jump");
    assert_eq!((jumped.lag, jumped.etcd_revision()), (5, clock.etcd_revision() + 100));
    let version = Revision(start.revision.0 + 1);
    commit(
        &*backend,
        [Unit::of_one_revision(vec![update(&key(things, 0), version, 9)], create(&key(things, 9), 9))],
    )
    .await;
    assert_eq!(backend.clock().await.expect("clock").etcd_revision(), jumped.etcd_revision() + 1);
    assert_eq!(backend.sequence_of(jumped.etcd_revision()).await.expect("a revision"), jumped.revision);
}
