//! Locks and elections.

use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::support::{post, refusal, server};

const NAME: &str = "bg==";

async fn lease(server: &rowplane_etcd::wire::Server, id: u64) {
    post(server, "lease/grant", json!({"ID": id, "TTL": 60})).await;
}

#[tokio::test]
async fn etcd_48_a_lock_is_held_by_one() {
    let server = server();
    for id in [1, 2, 3] {
        lease(&server, id).await;
    }
    let lock = |id| post(&server, "lock/lock", json!({"name": NAME, "lease": id}));
    let first = lock(1).await;
    // The keys are the protocol: n/1, in base64.
    assert_eq!(first["key"], "bi8x");
    let mut second = Box::pin(lock(2));
    while post(&server, "kv/range", json!({"key": "bi8y"})).await["count"] != "1" {
        assert!((&mut second).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    // One that goes away while it waits leaves its place.
    let mut third = Box::pin(lock(3));
    while post(&server, "kv/range", json!({"key": "bi8z"})).await["count"] != "1" {
        assert!((&mut third).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(third);
    while post(&server, "kv/range", json!({"key": "bi8z"})).await["count"] == "1" {
        tokio::task::yield_now().await;
    }
    assert!((&mut second).now_or_never().is_none(), "the first one holds it");
    post(&server, "lock/unlock", json!({"key": first["key"]})).await;
    assert_eq!(second.await["key"], "bi8y");
    // The end of a lease is the end of its lock.
    lease(&server, 4).await;
    let fourth = lock(4);
    post(&server, "lease/revoke", json!({"ID": 2})).await;
    assert_eq!(fourth.await["key"], "bi80");
}

#[tokio::test]
async fn etcd_48_one_is_elected() {
    let server = server();
    let none = refusal(&server, "election/leader", json!({"name": NAME}), "").await;
    assert_eq!(none, (2, "election: no leader".to_owned()));
    lease(&server, 1).await;
    lease(&server, 2).await;
    let campaign = |id, value: &str| {
        post(&server, "election/campaign", json!({"name": NAME, "lease": id, "value": value}))
    };
    let first = campaign(1, "YQ==").await["leader"].clone();
    let leader = async || -> Value {
        post(&server, "election/leader", json!({"name": NAME})).await["kv"]["value"].clone()
    };
    assert_eq!(leader().await, "YQ==");
    post(&server, "election/proclaim", json!({"leader": first, "value": "Yg=="})).await;
    assert_eq!(leader().await, "Yg==");
    let second = campaign(2, "Yw==");
    post(&server, "election/resign", json!({"leader": first})).await;
    second.await;
    assert_eq!(leader().await, "Yw==");
    let late = refusal(&server, "election/proclaim", json!({"leader": first, "value": "ZA=="}), "").await;
    assert_eq!(late, (2, "election: not leader".to_owned()));
    let missing = refusal(&server, "election/resign", json!({}), "").await;
    assert_eq!(missing, (2, "\"leader\" field must be provided".to_owned()));
}
