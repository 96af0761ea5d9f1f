//! Wall clocks that jump while a server runs: what it does about them, and that they do jump.

use serde_json::json;

use super::run::Database;
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
