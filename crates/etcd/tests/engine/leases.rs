//! Leases. What takes time is looked at until it has happened; that nothing happens too early is measured.

use std::time::{Duration, Instant};

use rowplane_etcd::engine::Error;
use rowplane_etcd::wire::messages::{
    EventType, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    PutRequest, RequestOpKind,
};
use tokio::time::sleep;

use crate::support::{Database, Server, bytes, op, put, txn, watched};

async fn grant(server: &Server, ttl: i64) -> i64 {
    server.etcd.lease_grant(LeaseGrantRequest { ttl, id: 0 }).await.expect("grant").id
}

fn leased(key: &str, lease: i64) -> PutRequest {
    PutRequest { lease, ..put(key, "1") }
}

async fn left(server: &Server, id: i64) -> i64 {
    let request = LeaseTimeToLiveRequest { id, keys: false };
    server.etcd.lease_time_to_live(request).await.expect("time to live").ttl
}

async fn keep_alive(server: &Server, id: i64) -> i64 {
    server.etcd.lease_keep_alive(LeaseKeepAliveRequest { id }).await.expect("keep alive").ttl
}

/// Waits until a key is gone.
async fn gone(server: &Server, key: &str) {
    while server.get(key).await.is_some() {
        sleep(Duration::from_millis(20)).await;
    }
}

pub async fn a36_what_is_granted(database: &Database) {
    let server = database.server().await;
    let request = |ttl, id| LeaseGrantRequest { ttl, id };
    let answer = server.etcd.lease_grant(request(1, 0)).await.expect("grant");
    assert_eq!((answer.ttl, answer.id > 0), (2, true));
    assert_eq!(server.etcd.lease_grant(request(9_000_000_001, 0)).await.err(), Some(Error::TtlTooLarge));
    assert_eq!(server.etcd.lease_grant(request(60, 7)).await.expect("grant").id, 7);
    assert_eq!(server.etcd.lease_grant(request(60, 7)).await.err(), Some(Error::LeaseExists));
    let leases = server.etcd.lease_leases().await.expect("leases").leases;
    assert!(leases.iter().any(|lease| lease.id == 7));
    // No revision is taken.
    assert_eq!(server.revision().await, 1);
}

pub async fn a37_keys_go_with_their_lease(database: &Database) {
    let server = database.server().await;
    let mut watch = server.watch();
    watch.create(watched("\0", "\0", 0)).await;
    let begun = Instant::now();
    let lease = grant(&server, 2).await;
    let puts = ["c", "a", "b"].map(|key| op(RequestOpKind::Put(leased(key, lease))));
    server.etcd.txn(txn(vec![], puts.into(), vec![])).await.expect("txn");
    // Detached from it.
    server.put("b", "2").await;
    assert_eq!(watch.events(4).await.len(), 4);
    let events = watch.next().await.events;
    assert!(begun.elapsed() >= Duration::from_secs(2), "after {:?}", begun.elapsed());
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.kv.as_ref().map(|kv| (kv.key.clone(), kv.mod_revision))))
        .collect();
    let deleted = |key| (EventType::Delete as i32, Some((bytes(key), 4)));
    assert_eq!(told, [deleted("a"), deleted("c")]);
    assert!(server.get("b").await.is_some());
    assert_eq!(left(&server, lease).await, -1);
}

pub async fn a38_a_lease_lives_as_long_as_it_is_renewed(database: &Database) {
    let server = database.server().await;
    let lease = grant(&server, 2).await;
    server.etcd.put(leased("k", lease)).await.expect("put");
    let mut renewed = Instant::now();
    for _ in 0..6 {
        sleep(Duration::from_millis(500)).await;
        let now = Instant::now();
        if now - renewed >= Duration::from_millis(1900) {
            return; // On a machine that stands still for so long nothing can be told.
        }
        assert_eq!(keep_alive(&server, lease).await, 2);
        assert!(server.get("k").await.is_some());
        renewed = now;
    }
    gone(&server, "k").await;
    assert!(renewed.elapsed() >= Duration::from_secs(2));
    assert_eq!(keep_alive(&server, lease).await, 0);
    assert_eq!((keep_alive(&server, 99).await, left(&server, 99).await), (0, -1));
}

pub async fn a39_a_lease_that_is_revoked(database: &Database) {
    let server = database.server().await;
    let lease = grant(&server, 60).await;
    for key in ["b", "a", "kept"] {
        server.etcd.put(leased(key, lease)).await.expect("put");
    }
    server.put("kept", "2").await;
    let request = LeaseTimeToLiveRequest { id: lease, keys: true };
    let answer = server.etcd.lease_time_to_live(request).await.expect("time to live");
    assert_eq!((answer.granted_ttl, answer.keys), (60, vec![bytes("a"), bytes("b")]));
    assert!((50..=60).contains(&answer.ttl));
    let before = server.revision().await;
    let revoke = LeaseRevokeRequest { id: lease };
    let answer = server.etcd.lease_revoke(revoke.clone()).await.expect("revoke");
    assert_eq!(answer.header.expect("a header").revision, before + 1);
    assert_eq!((server.get("a").await, server.get("b").await), (None, None));
    assert!(server.get("kept").await.is_some());
    assert_eq!(server.etcd.put(leased("a", lease)).await.err(), Some(Error::LeaseNotFound));
    assert_eq!(server.etcd.lease_revoke(revoke).await.err(), Some(Error::LeaseNotFound));
    let empty = grant(&server, 60).await;
    server.etcd.lease_revoke(LeaseRevokeRequest { id: empty }).await.expect("revoke");
    assert_eq!(server.revision().await, before + 1);
}

pub async fn a40_a_lease_has_its_full_time_after_a_restart(database: &Database) {
    let server = database.server().await;
    let lease = grant(&server, 3).await;
    server.etcd.put(leased("k", lease)).await.expect("put");
    sleep(Duration::from_secs(2)).await;
    if server.get("k").await.is_none() {
        return; // On a machine that stands still for so long nothing can be told.
    }
    server.stop().await;
    let begun = Instant::now();
    let server = database.server().await;
    gone(&server, "k").await;
    assert!(begun.elapsed() >= Duration::from_secs(3), "after {:?}", begun.elapsed());
}
