//! Compaction: giving up history, and removing its rows.

use std::sync::Arc;
use std::time::Duration;

use rowplane::revision::Revision;
use rowplane::storage::{Backend, Clock, Compaction, Error, Key, Mutation, Outcome, Scan, compact_regularly};

use crate::support::database::{Database, Table};
use crate::support::object::{create, delete, feed, give_up, list, names, pass, resource, update};

pub async fn history_ends_at_the_compacted_revision(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let scan = Scan::all(resource);
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "ns", "b"));
    let first = pass(&*backend, create(&a, 1)).await;
    let second = pass(&*backend, create(&b, 1)).await;
    let third = pass(&*backend, update(&a, first, 2)).await;
    let fourth = pass(&*backend, delete(&b, second)).await;
    let states = [second, third, fourth];
    let mut before = Vec::new();
    for at in states {
        before.push(list(&*backend, &scan, at).await.expect("list"));
    }
    let changes_before = feed(&*backend, third, None, 100).await.len();

    let clock = give_up(&*backend, third).await;
    assert_eq!(clock, Clock { revision: fourth, compacted: third, lag: 0 });
    for swept in [false, true] {
        if swept {
            assert_eq!(backend.sweep(100).await.expect("sweep").changes, 3);
            assert_eq!(backend.sweep(100).await.expect("sweep").changes, 0);
        }
        let gone = |error: Error| matches!(error, Error::Compacted { oldest } if oldest == third);
        assert!(gone(list(&*backend, &scan, second).await.expect_err("compacted")), "swept: {swept}");
        assert!(gone(backend.count(&scan, second).await.expect_err("compacted")));
        assert!(gone(backend.changes(second, None, 10).await.expect_err("compacted")));
        assert!(gone(backend.changes(second, Some(resource), 10).await.expect_err("compacted")));
        assert_eq!(list(&*backend, &scan, third).await.expect("the edge"), before[1], "swept: {swept}");
        assert_eq!(list(&*backend, &scan, fourth).await.expect("list"), before[2]);
        let after = feed(&*backend, third, Some(resource), 100).await;
        assert_eq!(after.len(), changes_before, "swept: {swept}");
        assert!(after.iter().all(|row| row.previous.is_some()), "a deletion still tells what was there");
    }
}

pub async fn removes_what_is_dead_and_nothing_else(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = |n: u64| Key::new(resource, "ns", &format!("{n:02}"));
    for n in 0..10 {
        // Object n has n updates; every third one is deleted, and of these every sixth exists again.
        let mut version = pass(&*backend, create(&key(n), 0)).await;
        for update_number in 1..=n {
            version = pass(&*backend, update(&key(n), version, update_number)).await;
        }
        if n % 3 == 0 {
            pass(&*backend, delete(&key(n), version)).await;
        }
        if n % 6 == 0 {
            pass(&*backend, create(&key(n), 100)).await;
        }
    }
    let end = backend.clock().await.expect("clock").revision;
    let live = list(&*backend, &Scan::all(resource), end).await.expect("list");
    assert_eq!(live.len(), 8);
    give_up(&*backend, end).await;
    assert!(database.rows(Table::Objects).await > 8, "rows go with the sweep");
    let mut slices = Vec::new();
    loop {
        slices.push(backend.sweep(7).await.expect("sweep").changes);
        if slices.last() < Some(&7) {
            break;
        }
    }
    assert_eq!(slices.iter().sum::<u64>(), end.0 - 1, "{slices:?}");
    assert_eq!(database.rows(Table::Objects).await, 8);
    assert_eq!(database.rows(Table::Changes).await, 0);
    assert_eq!(list(&*backend, &Scan::all(resource), end).await.expect("list"), live);
    backend.reclaim().await.expect("reclaim");

    // Rows that were live at one compaction are removed by a later one.
    for (_, name, version, _) in live {
        pass(&*backend, delete(&Key::new(resource, "ns", &name), Revision(version))).await;
    }
    let end = backend.clock().await.expect("clock").revision;
    give_up(&*backend, end).await;
    assert_eq!(backend.sweep(100).await.expect("sweep").changes, 8);
    assert_eq!(database.rows(Table::Objects).await, 0);
}

pub async fn never_goes_back_or_ahead_of_the_clock(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    for n in 0..5 {
        pass(&*backend, create(&Key::new(resource, "", &format!("{n}")), n)).await;
    }
    let end = backend.clock().await.expect("clock").revision;
    let at = Revision(end.0 - 2);
    let clock = Clock { revision: end, compacted: at, lag: 0 };
    assert_eq!(give_up(&*backend, at).await, clock);
    assert_eq!(give_up(&*backend, Revision(end.0 - 4)).await, clock);
    assert_eq!(give_up(&*backend, Revision(0)).await, clock);
    let ahead = give_up(&*backend, Revision(end.0 + 100)).await;
    assert_eq!(ahead, Clock { revision: end, compacted: end, lag: 0 });
    assert_eq!(backend.sweep(100).await.expect("sweep").changes, 5);
    assert_eq!(names(&*backend, &Scan::all(resource), end).await.len(), 5);
}

/// Every write of the load passes, and at the end exactly those objects are live that the writers left.
pub async fn sweeps_while_writes_go_on(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let writer = tokio::spawn(churn(backend.clone(), resource));
    while !writer.is_finished() {
        let clock = backend.clock().await.expect("clock");
        give_up(&*backend, clock.revision).await;
        while backend.sweep(20).await.expect("sweep").changes == 20 {}
        backend.reclaim().await.expect("reclaim");
    }
    let live = writer.await.expect("the writer");
    let end = give_up(&*backend, Revision(u64::MAX >> 1)).await.revision;
    while backend.sweep(20).await.expect("sweep").changes == 20 {}
    assert_eq!(names(&*backend, &Scan::all(resource), end).await, live);
    assert_eq!(database.rows(Table::Objects).await, live.len() as i64);
    assert_eq!(database.rows(Table::Changes).await, 0);
}

/// Creates 8 objects, updates each in 40 batches, and deletes every other one.
async fn churn(backend: Arc<dyn Backend>, resource: rowplane::storage::ResourceId) -> Vec<String> {
    let keys: Vec<Key> = (0..8).map(|n| Key::new(resource, "ns", &format!("{n}"))).collect();
    let commit = async |batch: Vec<Mutation>| {
        let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
        let versions = commit.outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Committed(revision) => revision,
            _ => panic!("nobody else writes: {outcome:?}"),
        });
        versions.collect::<Vec<_>>()
    };
    let mut versions = commit(keys.iter().map(|key| create(key, 0)).collect()).await;
    for n in 1..=40 {
        versions = commit(keys.iter().zip(&versions).map(|(key, at)| update(key, *at, n)).collect()).await;
    }
    commit(keys.iter().zip(&versions).step_by(2).map(|(key, at)| delete(key, *at)).collect()).await;
    ["ns/1", "ns/3", "ns/5", "ns/7"].map(String::from).into()
}

pub async fn runs_by_itself(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = Key::new(resource, "ns", "a");
    let config = Compaction {
        interval: Duration::from_millis(50),
        history: Duration::from_millis(50),
        retention: None,
    };
    let compactor = tokio::spawn(compact_regularly(backend.clone(), config, Arc::default()));
    let mut version = pass(&*backend, create(&key, 0)).await;
    let first = version;
    for n in 1.. {
        version = pass(&*backend, update(&key, version, n)).await;
        let clock = backend.clock().await.expect("clock");
        let oldest = backend.oldest_change().await.expect("the oldest change");
        if clock.compacted > first && oldest.is_none_or(|oldest| oldest.0 > 3) {
            break;
        }
    }
    compactor.abort();
    assert_eq!(names(&*backend, &Scan::all(resource), version).await, ["ns/a"]);
}

/// PostgreSQL: the database records how many statements a pass takes, and that none of them waits for the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_is_removed_without_waiting_for_the_disk() {
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    database
        .execute(
            "CREATE TABLE slices (setting text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO slices VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
             CREATE TRIGGER note AFTER DELETE ON changes FOR EACH STATEMENT EXECUTE FUNCTION note()",
        )
        .await;
    for batch in 0..100 {
        let batch: Vec<_> =
            (0..250).map(|n| create(&Key::new(resource, "ns", &format!("{batch}-{n}")), 1)).collect();
        backend.commit(&batch, Revision(0)).await.expect("commit");
    }
    let config = Compaction {
        interval: Duration::from_millis(50),
        history: Duration::from_millis(50),
        retention: None,
    };
    let compactor = tokio::spawn(compact_regularly(backend.clone(), config, Arc::default()));
    while backend.oldest_change().await.expect("readable").is_some() {}
    compactor.abort();
    // With 500 changes at a time there would be 50 slices, and one more that finds nothing.
    let slices = database.number("SELECT COUNT(*) FROM slices").await;
    assert!((1..=26).contains(&slices), "{slices} slices");
    assert_eq!(database.number("SELECT COUNT(*) FROM slices WHERE setting <> 'off'").await, 0);
    assert_eq!(database.rows(Table::Objects).await, 25_000);
}
