//! A standby that is behind takes over: acknowledged commits are lost, and clients must not be misled.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rowplane::storage::SAFETY_GAP;
use serde_json::json;

use super::cluster::Cluster;
use super::process::pause;
use super::replicas::Database;
use super::server::Server;
use crate::support::rest::{Client, revision};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const LOUD: &str = "may have lost acknowledged commits";

/// The first writer after the failover either has not seen the newest commits, like a paused replica, or has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_commits_are_noticed_whoever_writes_first() {
    for knows in [false, true] {
        Failover::begin().await.end(knows).await;
    }
}

struct Failover {
    paused: Server,
    witness: Server,
    primary: Arc<Cluster>,
    standby: Cluster,
}

impl Failover {
    /// Two servers on a primary with a standby; each has written and read.
    async fn begin() -> Self {
        let database = Database::postgres().await;
        let arguments = vec!["--feature-gates=APIServerIdentity=false".to_owned()];
        let paused = Server::start(&database, arguments.clone()).await;
        let witness = Server::start(&database, arguments).await;
        let Database::Postgres(primary) = database else { unreachable!("it was made above") };
        let primary = primary.get();
        let standby = primary.standby().await;
        Self { paused, witness, primary, standby }
    }

    async fn end(self, witness_first: bool) {
        let Self { paused, witness, primary, standby } = self;
        let kept = create(&witness.client, "kept").await;
        assert_eq!(revision(&get(&paused.client, "kept").await), kept);
        while standby.number("SELECT revision FROM clock").await < kept as i64 {
            pause().await;
        }
        standby.stop_receiving().await;

        // The following commits are acknowledged, seen by one server, and lost.
        paused.process().await.as_ref().expect("it runs").stop().await;
        let mut lost = Vec::new();
        for n in 0..5 {
            lost.push(create(&witness.client, &format!("lost-{n}")).await);
        }
        let newest = *lost.last().expect("five");
        primary.kill().await;
        standby.promote().await;
        for server in [&paused, &witness] {
            server.back.as_ref().expect("a way to the database").retarget(standby.target());
        }
        paused.process().await.as_ref().expect("it runs").go_on().await;

        let (first, second) = if witness_first { (&witness, &paused) } else { (&paused, &witness) };
        let mut written = Vec::new();
        for (server, name) in [(first, "first"), (first, "again"), (second, "second")] {
            written.push(create(&server.client, name).await);
        }
        assert!(written.is_sorted(), "{written:?}");
        assert!(written[0] > newest, "{} was used twice or the clock went back from {newest}", written[0]);
        assert!(written[0] > kept + SAFETY_GAP, "{written:?}");

        for server in [&paused, &witness] {
            let list = server.client.get(CONFIGMAPS).await.expect("an answer").ok();
            assert_eq!(names(&list), ["again", "first", "kept", "second"].map(str::to_owned).into());
            assert!(revision(&list) >= written[2]);
            assert_expired(&server.client, newest).await;
            let kept = get(&server.client, "kept").await;
            // Surviving objects can be updated as if nothing had happened.
            let path = format!("{CONFIGMAPS}/kept");
            server.client.put(&path, &kept).await.expect("an answer").ok();
        }
        let logs = [&paused, &witness].map(|server| server.installation.log());
        assert!(logs.iter().any(|log| log.contains(LOUD)), "{logs:?}");
        // There is only one jump, so clients need not list a second time.
        assert!(written[2] < kept + 2 * SAFETY_GAP, "{written:?}");
    }
}

/// History that is lost, or may be lost, counts as compacted.
async fn assert_expired(client: &Client, at: u64) {
    // Without a match, as watches: an explicit one reads what survived.
    let exact = format!("{CONFIGMAPS}?limit=1&resourceVersion={at}");
    let answer = client.get(&exact).await.expect("an answer");
    assert_eq!(answer.status, 410, "{}", answer.body);
    let mut watch =
        client.watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={at}")).await.expect("a watch");
    let event = watch.event().await;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
}

/// Creates an object, however often that fails: connections to the old primary must be given up first.
async fn create(client: &Client, name: &str) -> u64 {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    loop {
        match client.post(CONFIGMAPS, &object).await {
            Ok(answer) if answer.status == 201 => return revision(&answer.body),
            Ok(answer) if answer.status == 409 => return revision(&get(client, name).await),
            Ok(answer) => assert!(answer.status.is_server_error(), "{}: {}", answer.status, answer.body),
            Err(_) => {}
        }
        pause().await;
    }
}

async fn get(client: &Client, name: &str) -> serde_json::Value {
    let path = Path::new(CONFIGMAPS).join(name);
    client.get(path.to_str().expect("text")).await.expect("an answer").ok()
}

fn names(list: &serde_json::Value) -> BTreeSet<String> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}
