//! Wall clocks that jump while a server runs: what it does about them, and that they do jump.

use serde_json::json;

use super::replicas::Database;
use super::server::Server;
use crate::support::clock::DAY;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_by_a_clock_that_jumps() {
    let server = Server::start(&Database::Sqlite, Vec::new()).await;
    let mut revision = 0;
    for ahead in [0, DAY, -DAY, DAY / 2] {
        server.installation.clock.set(ahead);
        let metadata = json!({"name": format!("n{}", ahead + DAY)});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let made = server.client.post(CONFIGMAPS, &object).await.expect("an answer").ok();
        let at = made["metadata"]["creationTimestamp"].as_str().expect("a time");
        let at: jiff::Timestamp = at.parse().expect("a time");
        let off = at.as_second() - jiff::Timestamp::now().as_second() - ahead;
        assert!(off.abs() < 600, "created at {at} on a clock that is {ahead} s ahead");
        let next = crate::support::rest::revision(&made);
        assert!(next > revision, "{next} after {revision}");
        revision = next;
    }
}

/// A server whose clock is ahead makes a new key for continue tokens, which other servers have not heard of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_goes_on_at_another_server_after_keys_have_been_rotated() {
    let database = Database::postgres().await;
    let ahead = Server::start(&database, Vec::new()).await;
    let other = Server::start(&database, Vec::new()).await;
    for name in ["a", "b"] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        ahead.client.post(CONFIGMAPS, &object).await.expect("an answer").ok();
    }
    ahead.process().await.take().expect("a server").terminate().await;
    ahead.installation.clock.set(DAY);
    *ahead.process().await = Some(ahead.installation.start().await);
    let page = ahead.client.get(&format!("{CONFIGMAPS}?limit=1")).await.expect("an answer").ok();
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let next = format!("{CONFIGMAPS}?limit=1&continue={token}");
    let next = other.client.get(&next).await.expect("an answer");
    assert_eq!(next.status, 200, "{}", next.body);
}
