//! A database that is another one, or an older state of this one.

use std::sync::Arc;

use rowplane::revision::Revision;
use rowplane::storage::postgres::{Address, ClusterId, Postgres};
use rowplane::storage::{
    Backend, Commit, Error, HighWaterMark, Key, OpenError, ResourceId, SAFETY_GAP, Upkeep as _,
};
use serde_json::json;

use crate::support::cluster::{Cluster, pause};
use crate::support::object::{committed, create, pass, resource};
use crate::support::process::Installation;
use crate::support::proxy::Proxy;
use crate::support::rest;

const REVISION: &str = "SELECT revision FROM clock";

async fn open(url: &str) -> Arc<dyn Backend> {
    Arc::new(Postgres::open(url).await.expect("open the store"))
}

fn url_through(proxy: &Proxy) -> String {
    format!("postgres://rowplane@127.0.0.1:{}/postgres?sslmode=disable", proxy.address().port())
}

async fn try_to_write(backend: &dyn Backend, resource: ResourceId, name: &str) -> Result<Commit, Error> {
    backend.commit(&[create(&Key::new(resource, "ns", name), 1)], Revision(0)).await
}

/// Writes, however often that fails: connections to a database that is gone are given up one by one.
async fn write(backend: &dyn Backend, resource: ResourceId, name: &str) -> Revision {
    loop {
        match try_to_write(backend, resource, name).await {
            Ok(commit) => return committed(commit.outcomes[0]),
            Err(Error::Unavailable(_)) => pause().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn wait_for(cluster: &Cluster, revision: Revision) {
    while cluster.number(REVISION).await < revision.0 as i64 {
        pause().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_comes_back_is_refused() {
    let old = Cluster::create().await;
    let proxy = Proxy::start(old.target()).await;
    let backend = open(&url_through(&proxy)).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")));
    backend.hold_to(&mark).await.expect("the first database it knows");
    let resource = resource(&*backend, "things").await;
    let first = write(&*backend, resource, "first").await;
    let new = old.standby().await;
    wait_for(&new, first).await;
    new.promote().await;
    proxy.retarget(new.target());
    let second = write(&*backend, resource, "second").await;
    assert!(second.0 > first.0 + SAFETY_GAP, "{second:?}");

    // Both databases run, and a proxy leads to the wrong one.
    proxy.retarget(old.target());
    let untouched = old.number(REVISION).await;
    let refused = loop {
        match try_to_write(&*backend, resource, "lost").await {
            Err(error) if error.to_string().contains("--datastore-accept=") => break error,
            Err(_) => pause().await,
            Ok(commit) => panic!("written to an old primary: {commit:?}"),
        }
    };
    let known = mark.sighting().expect("a sighting");
    assert_eq!(known.timeline, 2);
    let id = ClusterId { timeline: 1, ..ClusterId::from(&known) };
    assert!(refused.to_string().contains(&format!("--datastore-accept={id}")), "{refused}");
    assert_eq!(old.number(REVISION).await, untouched, "its clock is not lifted either");
    mark.save().expect("save");

    // A server that starts recognizes it by its mark.
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")));
    match open(&url_through(&proxy)).await.hold_to(&mark).await {
        Err(OpenError::Refused { reason, .. }) => assert!(reason.contains("an old primary"), "{reason}"),
        other => panic!("{other:?}"),
    }
    proxy.retarget(new.target());
    assert_eq!(write(&*backend, resource, "third").await.0, second.0 + 1, "and all is well there");

    // The operator can accept it; then no revision is used twice.
    proxy.retarget(old.target());
    let restored = Address { accepted: Some(id), ..url_through(&proxy).into() };
    let restored = Postgres::open(restored).await.expect("open");
    mark.raise(Revision(second.0 + 1));
    restored.hold_to(&mark).await.expect("accepted");
    let next = pass(&restored, create(&Key::new(resource, "ns", "next"), 1)).await;
    assert!(next.0 > second.0 + 1 + SAFETY_GAP, "{next:?}");
    // The next start needs no confirmation.
    open(&url_through(&proxy)).await.hold_to(&mark).await.expect("known by now");
    assert_eq!(old.number(REVISION).await, next.0 as i64, "and moves nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_started_is_noticed_and_a_crash_is_not_taken_for_one() {
    let cluster = Cluster::create().await;
    let backend = open(&cluster.url()).await;
    let resource = resource(&*backend, "things").await;
    write(&*backend, resource, "kept").await;
    cluster.stop().await;
    let snapshot = cluster.snapshot().await;
    cluster.start().await;
    let mut newest = write(&*backend, resource, "a").await;
    for (name, killed) in [("b", true), ("c", false), ("d", true)] {
        match killed {
            true => cluster.kill().await,
            false => cluster.stop_immediately().await,
        }
        cluster.start().await;
        let next = write(&*backend, resource, name).await;
        assert_eq!(next.0, newest.0 + 1, "a crash loses nothing");
        newest = next;
    }
    // The newest write need not have been seen: the log position before it was.
    cluster.stop().await;
    cluster.set_back(snapshot).await;
    cluster.start().await;
    let next = write(&*backend, resource, "e").await;
    assert!(next.0 > newest.0 + SAFETY_GAP / 2, "{next:?} after {newest:?}");
    assert_eq!(write(&*backend, resource, "f").await.0, next.0 + 1, "once");
    let other = open(&cluster.url()).await;
    assert_eq!(write(&*other, resource, "g").await.0, next.0 + 2, "for everybody");
}

/// As after a dump was restored on another cluster, where no server has been yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_from_another_cluster_moves_the_clock() {
    let cluster = Cluster::create().await;
    let backend = open(&cluster.url()).await;
    let resource = resource(&*backend, "things").await;
    let before = write(&*backend, resource, "a").await;
    backend.close().await;
    let backend = open(&cluster.url()).await;
    assert_eq!(write(&*backend, resource, "b").await.0, before.0 + 1);
    backend.close().await;
    cluster.execute("UPDATE clock SET system_identifier = system_identifier - 1").await;
    let backend = open(&cluster.url()).await;
    assert!(write(&*backend, resource, "c").await.0 > before.0 + 1 + SAFETY_GAP);
}

/// The backend of a batch that waits for a standby is ended: its rows are visible, but on no standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_found_out_is_on_the_standby_before_it_is_answered() {
    const WAITS: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let cluster = Cluster::create().await;
    let backend = open(&cluster.url()).await;
    let resource = resource(&*backend, "things").await;
    write(&*backend, resource, "before").await;
    cluster.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    cluster.execute("SELECT pg_reload_conf()").await;
    while cluster.text("SHOW synchronous_standby_names").await != "nobody" {
        pause().await;
    }
    let commit = tokio::spawn({
        let backend = backend.clone();
        async move { try_to_write(&*backend, resource, "waits").await }
    });
    let committing = format!("SELECT COUNT(*) {WAITS} AND query LIKE '%CALL commit_batch_3%'");
    while cluster.number(&committing).await == 0 {
        pause().await;
    }
    cluster.execute(&format!("SELECT pg_terminate_backend(pid) {WAITS}")).await;
    let confirming = format!("SELECT COUNT(*) {WAITS} AND query LIKE '%INSERT INTO batches%'");
    while cluster.number(&confirming).await == 0 {
        assert!(!commit.is_finished(), "answered without a standby: {:?}", commit.await);
        pause().await;
    }
    cluster.execute("ALTER SYSTEM RESET synchronous_standby_names").await;
    cluster.execute("SELECT pg_reload_conf()").await;
    let commit = commit.await.expect("the writer").expect("committed");
    assert_eq!(committed(commit.outcomes[0]).0, cluster.number(REVISION).await as u64);
}

/// As after `docker compose down --volumes`: the data directories of the servers are left, and the database is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_database_begins_above_the_one_before_it_and_says_so_once() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let old = Cluster::create().await;
    let proxy = Proxy::start(old.target()).await;
    let installation = Installation::sqlite().with(&format!("--datastore={}", url_through(&proxy)));
    let run = async |name: &str| {
        let server = installation.start().await;
        let client = installation.client().await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let made = client.post(MAPS, &object).await.expect("an answer");
        assert_eq!(made.status, 201, "{}", made.body);
        server.terminate().await;
        assert!(server.end().await.success());
        rest::revision(&made.body)
    };
    let before = run("a").await;
    let log = || std::fs::read_to_string(installation.dir().join("server.log")).expect("a log");
    assert!(!log().contains("ERROR"), "{}", log());

    let new = Cluster::create().await;
    proxy.retarget(new.target());
    let first = run("a").await;
    assert!(first > before + SAFETY_GAP, "{first} after {before}");
    let second = run("b").await;
    assert!(second > first && second < first + SAFETY_GAP, "{second} after {first}: it is known by now");
    let log = log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("the database is a new one")).collect();
    assert!(told.len() == 1 && told[0].contains("INFO"), "{told:?}");
    assert!(!log.contains("ERROR"), "{log}");

    // The one before is still refused.
    proxy.retarget(old.target());
    let (code, said) = installation.refused().await;
    assert!(code != Some(0) && said.contains("--datastore-accept="), "{said}");
}
