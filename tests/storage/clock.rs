//! The clock and its floor.

use rowplane::revision::Revision;
use rowplane::storage::{Clock, Error, Key, PastError, SAFETY_GAP, Scan, Written};

use crate::store::start_at;
use crate::support::database::Database;
use crate::support::object::{create, list, names, pass, resource, update};

pub async fn a_clock_below_the_floor_writes_nothing(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let before = pass(&*backend, create(&Key::new(resource, "ns", "a"), 1)).await;
    let floor = Revision(before.0 + 7);
    let write = [create(&Key::new(resource, "ns", "b"), 1)];
    let error = backend.commit(&write, floor).await.expect_err("regressed");
    let told = matches!(error, Error::Regressed { floor: f, found } if (f, found) == (floor, before));
    assert!(told, "{error}");
    assert_eq!(backend.clock().await.expect("clock").revision, before, "nothing was written");
    assert_eq!(backend.commit(&write, before).await.expect("commit").base, before, "and nothing is stuck");
}

pub async fn a_store_jumps_over_what_its_mark_has_seen(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let before = pass(&*backend, create(&Key::new(resource, "ns", "a"), 1)).await;
    let seen = Revision(before.0 + 1000);
    let store = start_at(&backend, seen);
    let written = store.write(create(&Key::new(resource, "ns", "b"), 1)).await.expect("write");
    let Written::Committed { revision, .. } = written else { panic!("{written:?}") };
    assert_eq!(revision.0, seen.0 + SAFETY_GAP + 1);
    assert_eq!(names(&*backend, &Scan::all(resource), revision).await, ["ns/a", "ns/b"]);
    let error = backend.changes(seen, None, 10).await.expect_err("what came before is unsure");
    assert!(matches!(error, Error::Compacted { .. }), "{error}");
}

/// Nothing before the jump can be read: what was lost there cannot be told from what never was.
pub async fn advancing_gives_up_older_states(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = Key::new(resource, "ns", "a");
    let first = pass(&*backend, create(&key, 1)).await;
    let second = pass(&*backend, update(&key, first, 2)).await;
    let to = Revision(second.0 + 1000);
    let jumped = Clock { revision: to, compacted: to, lag: 0 };
    assert_eq!(backend.advance_clock(to).await.expect("advance"), jumped);
    assert_eq!(backend.advance_clock(second).await.expect("advance"), jumped, "it never goes back");
    let error = list(&*backend, &Scan::all(resource), second).await.expect_err("forgotten");
    assert!(matches!(error, Error::Compacted { oldest } if oldest == to), "{error}");
    assert_eq!(names(&*backend, &Scan::all(resource), to).await, ["ns/a"]);
    for lost in [first, Revision(to.0 - 1)] {
        let error = backend.row_past(&key, lost).await.expect_err("forgotten");
        assert!(matches!(error, PastError::Expired { floor, .. } if floor.revision == to), "{error}");
    }
    assert_eq!(backend.floor(resource, None).await.expect("a floor"), to);
    assert_eq!(backend.sweep(100).await.expect("sweep").changes, 2);
    assert_eq!(names(&*backend, &Scan::all(resource), to).await, ["ns/a"]);
    let third = pass(&*backend, update(&key, second, 3)).await;
    assert_eq!(third.0, to.0 + 1, "the version before the jump is still the one to update");
}
