//! A database that comes back in an older state.

use std::sync::Arc;

use rowplane::runtime::Runtime;
use rowplane::storage::{Error, HighWaterMark, Key, SAFETY_GAP, Scan, Store, Written};

use crate::support::database::Database;
use crate::support::object::{create, names, pass, resource};

/// Reverts the newest write, as restoring a backup would.
const LOSE_ONE: &str = "DELETE FROM objects WHERE resource_version = (SELECT revision FROM clock); \
                        DELETE FROM changes WHERE resource_version = (SELECT revision FROM clock); \
                        UPDATE clock SET revision = revision - 1";

pub async fn a_lost_commit_is_noticed(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let first = pass(&*backend, create(&Key::new(resource, "ns", "a"), 1)).await;
    let lost = pass(&*backend, create(&Key::new(resource, "ns", "b"), 1)).await;
    database.execute(LOSE_ONE).await;
    let write = [create(&Key::new(resource, "ns", "c"), 1)];
    let error = backend.commit(&write, lost).await.expect_err("regressed");
    let told = matches!(error, Error::Regressed { floor, found } if floor == lost && found == first);
    assert!(told, "{error}");
    let clock = backend.clock().await.expect("clock");
    assert_eq!(clock.revision, first, "nothing was written");
    assert_eq!(backend.commit(&write, first).await.expect("commit").base, first, "and nothing is stuck");
}

pub async fn the_store_jumps_over_lost_commits(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mark");
    let mark = Arc::new(HighWaterMark::load(path.clone()));
    let store = Store::start(backend.clone(), None, mark.clone(), &Runtime::default());
    let revision = async |store: &Store, name| {
        let written = store.write(create(&Key::new(resource, "ns", name), 1)).await.expect("write");
        match written {
            Written::Committed { revision, .. } => revision,
            _ => panic!("{written:?}"),
        }
    };
    revision(&store, "a").await;
    let lost = revision(&store, "b").await;
    mark.save().expect("save");
    database.execute(LOSE_ONE).await;

    // A server that starts again knows of the loss only by its mark.
    let mark = Arc::new(HighWaterMark::load(path));
    assert_eq!(mark.get(), lost);
    let store = Store::start(backend.clone(), None, mark.clone(), &Runtime::default());
    let next = revision(&store, "c").await;
    assert_eq!(next.0, lost.0 + SAFETY_GAP + 1);
    assert_eq!(mark.get(), next);
    assert_eq!(names(&*backend, &Scan::all(resource), next).await, ["ns/a", "ns/c"]);
    let error = backend.changes(lost, None, 10).await.expect_err("what came before is unsure");
    assert!(matches!(error, Error::Compacted { .. }), "{error}");
    assert_eq!(revision(&store, "d").await.0, next.0 + 1, "and then as ever");
}
