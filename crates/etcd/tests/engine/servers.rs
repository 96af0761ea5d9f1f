//! Several servers on one database.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rowplane_etcd::wire::messages::{LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest};
use tokio::time::sleep;

use crate::model;
use crate::support::{Database, modified_at, op_put, put, txn};

pub async fn a19_an_answered_write_is_seen_everywhere(database: &Database) {
    let (one, other) = (database.server().await, database.server().await);
    for number in 0..1000_u32 {
        let value = number.to_string();
        let (writes, reads) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let revision = writes.put("k", &value).await;
        let seen = reads.get("k").await.expect("the key");
        assert_eq!((&seen.value[..], seen.mod_revision), (value.as_bytes(), revision));
        // A compare that fails rests on the newest state, too.
        let swap = txn(vec![modified_at("k", revision)], vec![op_put("k", "swapped")], vec![]);
        assert!(reads.etcd.txn(swap).await.expect("txn").succeeded);
    }
    assert_eq!(one.etcd.newest_header().cluster_id, other.etcd.newest_header().cluster_id);
}

pub async fn a20_compare_and_swap_on_two_servers(database: &Database) {
    let servers = [database.server().await, database.server().await];
    servers[0].put("counter", "0").await;
    let count = async |number: usize| {
        let (server, mut won) = (&servers[number % 2], Vec::new());
        while won.len() < 10 {
            let seen = server.get("counter").await.expect("the key");
            let next = String::from_utf8_lossy(&seen.value).parse::<u64>().expect("a number") + 1;
            let is_seen = vec![modified_at("counter", seen.mod_revision)];
            let swap = txn(is_seen, vec![op_put("counter", &next.to_string())], vec![]);
            let answer = server.etcd.txn(swap).await.expect("txn");
            if answer.succeeded {
                won.push(answer.header.expect("a header").revision);
            }
        }
        won
    };
    let mut revisions: Vec<i64> = join_all((0..8).map(count)).await.concat();
    revisions.sort_unstable();
    assert_eq!(revisions, (3..83).collect::<Vec<_>>());
    assert_eq!(servers[1].get("counter").await.map(|kv| kv.version), Some(81));
}

pub async fn a35_watches_on_two_servers(database: &Database) {
    let servers = [database.server().await, database.server().await];
    model::run(&servers, 11).await;
}

pub async fn a40_what_another_server_has_renewed_lives_on(database: &Database) {
    let (one, other) = (database.server().await, database.server().await);
    let lease = one.etcd.lease_grant(LeaseGrantRequest { ttl: 2, id: 0 }).await.expect("grant").id;
    one.etcd.put(PutRequest { lease, ..put("k", "1") }).await.expect("put");
    let mut renewed = Instant::now();
    for _ in 0..8 {
        sleep(Duration::from_millis(500)).await;
        let now = Instant::now();
        if now - renewed >= Duration::from_millis(1900) {
            return; // On a machine that stands still for so long nothing can be told.
        }
        let request = LeaseKeepAliveRequest { id: lease };
        assert_eq!(other.etcd.lease_keep_alive(request).await.expect("keep alive").ttl, 2);
        renewed = now;
    }
    assert!(one.get("k").await.is_some());
    // The server that has renewed it goes; the other one ends it.
    other.stop().await;
    while one.get("k").await.is_some() {
        sleep(Duration::from_millis(20)).await;
    }
    assert!(renewed.elapsed() >= Duration::from_secs(2));
}
