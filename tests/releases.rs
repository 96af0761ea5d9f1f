//! A server of an earlier release beside one of this code, on one database, with definitions and custom objects.
//!
//! `tests/upstream/releases/run COMMIT` builds the earlier one, which takes minutes, and runs these tests with it.

mod support;

use std::path::PathBuf;

use http::StatusCode;
use serde_json::{Value, json};

use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn older() -> PathBuf {
    std::env::var_os("ROWPLANE_OLDER").expect("ROWPLANE_OLDER, the server of an earlier release").into()
}

fn definition(plural: &str, kind: &str) -> Value {
    let size = json!({"type": "integer", "maximum": 9});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size},
        "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size != 5"}]}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.two.ex.io")},
        "spec": {"group": "two.ex.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}]}})
}

fn objects(plural: &str) -> String {
    format!("/apis/two.ex.io/v1/namespaces/default/{plural}")
}

fn object(kind: &str, name: &str, size: i64) -> Value {
    json!({"apiVersion": "two.ex.io/v1", "kind": kind, "metadata": {"name": name}, "spec": {"size": size}})
}

async fn gone(client: &Client, path: &str) {
    while client.get(path).await.expect("an answer").status != StatusCode::NOT_FOUND {}
}

/// What one server defines, the other one serves; what one changes, the other one's next write is judged by.
async fn define_use_change_delete(definer: &Client, user: &Client, plural: &str, kind: &str) {
    let (path, all) = (format!("{DEFINITIONS}/{plural}.two.ex.io"), objects(plural));
    definer.post(DEFINITIONS, &definition(plural, kind)).await.expect("an answer").ok();
    // Servers of releases that follow definitions by the feed alone know of this one a moment later.
    while user.get(&all).await.expect("an answer").status == StatusCode::NOT_FOUND {}
    let made = user.post(&all, &object(kind, "a", 3)).await.expect("an answer").ok();
    let refused = definer.post(&all, &object(kind, "b", 5)).await.expect("an answer");
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.body);
    assert_eq!(definer.get(&format!("{all}/a")).await.expect("an answer").ok(), made);

    let changed = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "maximum": 2}, "more": {"type": "string", "default": "d"}}}}}}}]}});
    definer.merge(&path, &changed).await.expect("an answer").ok();
    let refused = user.post(&all, &object(kind, "c", 3)).await.expect("an answer");
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.body);
    let read = user.get(&format!("{all}/a")).await.expect("an answer").ok();
    assert_eq!((&read["spec"]["more"], revision(&read)), (&json!("d"), revision(&made)));

    let rival = definition(&format!("{plural}x"), kind);
    let rival = user.post(DEFINITIONS, &rival).await.expect("an answer").ok();
    let conditions = rival["status"]["conditions"].as_array().expect("conditions");
    let refused =
        conditions.iter().any(|found| found["type"] == "NamesAccepted" && found["status"] == "False");
    assert!(refused, "{rival}");
    user.delete(&format!("{DEFINITIONS}/{plural}x.two.ex.io"), None).await.expect("an answer").ok();

    definer.delete(&path, None).await.expect("an answer").ok();
    gone(user, &path).await;
    gone(user, &all).await;
    gone(definer, &all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tests/upstream/releases/run has the server of an earlier release"]
async fn both_on_postgres() {
    let older = older();
    let schema = Schema::create().await;
    let old = Installation::postgres(&schema).of(&older);
    let new = Installation::postgres(&schema);
    let old_server = old.start().await;
    let old_client = old.client().await;
    old_client.post(DEFINITIONS, &definition("keeps", "Keep")).await.expect("an answer").ok();
    old_client.post(&objects("keeps"), &object("Keep", "before", 1)).await.expect("an answer").ok();
    let new_server = new.start().await;
    let new_client = new.client().await;
    define_use_change_delete(&old_client, &new_client, "firsts", "First").await;
    define_use_change_delete(&new_client, &old_client, "seconds", "Second").await;
    new_client.post(&objects("keeps"), &object("Keep", "after", 2)).await.expect("an answer").ok();
    for client in [&old_client, &new_client] {
        let kept = client.get(&objects("keeps")).await.expect("an answer").ok();
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(2), "{kept}");
    }
    old_server.terminate().await;
    old_server.end().await;
    define_use_change_delete(&new_client, &new_client, "thirds", "Third").await;
    new_server.terminate().await;
    assert_eq!(new_server.end().await.code(), Some(0));
}

/// A rolling upgrade: servers of both releases write to one database at once. The older one goes on when the newer one has
/// added to the schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tests/upstream/releases/run has the server of an earlier release"]
async fn both_write_at_once() {
    const WRITES: usize = 150;
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let schema = Schema::create().await;
    let (old, new) = (Installation::postgres(&schema).of(&older()), Installation::postgres(&schema));
    let old_server = old.start().await;
    let new_server = new.start().await;
    let clients = [old.client().await, new.client().await];
    let start = revision(&clients[0].get(MAPS).await.expect("an answer").ok());
    let watched = |server: usize| {
        let client = clients[server].clone();
        tokio::spawn(async move {
            let path = format!("{MAPS}?watch=true&resourceVersion={start}");
            let mut watch = client.watch(&path).await.expect("a watch");
            let mut seen = Vec::new();
            while seen.len() < 4 * WRITES {
                seen.push(revision(&watch.event().await["object"]));
            }
            seen
        })
    };
    let watches = [watched(0), watched(1)];
    let writers = (0..4).map(|writer| {
        let client = clients[writer % 2].clone();
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            for n in 0..WRITES {
                let name = format!("w{writer}-{n}");
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
                revisions.push(revision(&client.post(MAPS, &map).await.expect("an answer").ok()));
            }
            revisions
        })
    });
    let mut answered = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        answered.extend(writer.await.expect("a writer"));
    }
    answered.sort_unstable();
    assert!(answered.windows(2).all(|pair| pair[0] < pair[1]), "a revision was given twice");
    for watch in watches {
        assert_eq!(watch.await.expect("a watch"), answered, "each event once, in order");
    }
    old_server.terminate().await;
    assert_eq!(old_server.end().await.code(), Some(0));
    new_server.terminate().await;
    assert_eq!(new_server.end().await.code(), Some(0));
}

/// The file goes to the newer release, and back: nothing in it is unknown to the older one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tests/upstream/releases/run has the server of an earlier release"]
async fn a_file_of_both_in_turn() {
    let older = older();
    let mut installation = Installation::sqlite().of(&older);
    let newer = PathBuf::from(env!("CARGO_BIN_EXE_rowplane"));
    for (turn, program) in [&older, &newer, &older, &newer].into_iter().enumerate() {
        installation = installation.of(program);
        let server = installation.start().await;
        let client = installation.client().await;
        if turn == 0 {
            client.post(DEFINITIONS, &definition("keeps", "Keep")).await.expect("an answer").ok();
        }
        let name = format!("of-{turn}");
        client.post(&objects("keeps"), &object("Keep", &name, 1)).await.expect("an answer").ok();
        let kept = client.get(&objects("keeps")).await.expect("an answer").ok();
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(turn + 1), "{kept}");
        define_use_change_delete(&client, &client, &format!("turns{turn}"), "Turn").await;
        server.terminate().await;
        assert_eq!(server.end().await.code(), Some(0));
    }
}

/// Objects of the kinds that every release has.
fn plain_objects(mark: &str) -> Vec<(&'static str, Value)> {
    let metadata = |name: &str| json!({"name": format!("{name}-{mark}"), "labels": {"mark": mark}});
    let pod = json!({"containers": [{"name": "app", "image": "i"}]});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let selector = json!({"matchLabels": {"app": "a"}});
    vec![
        (
            "/api/v1/namespaces/default/configmaps",
            json!({"metadata": metadata("map"), "data": {"long": "x".repeat(5000)}}),
        ),
        (
            "/api/v1/namespaces/default/secrets",
            json!({"metadata": metadata("secret"), "data": {"a": "YQ=="}}),
        ),
        ("/api/v1/namespaces/default/pods", json!({"metadata": metadata("pod"), "spec": pod})),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": metadata("web"), "spec": {"ports": [{"port": 80}]}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": metadata("deployment"), "spec": {"selector": selector, "template": template}}),
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"metadata": metadata("scaler"),
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"metadata": metadata("role"), "rules": []}),
        ),
    ]
}

/// Makes objects, changes half of them, and returns what is there by its path.
async fn fill(client: &Client, mark: &str) -> Vec<(String, Value)> {
    let mut made = Vec::new();
    for (number, (collection, object)) in plain_objects(mark).into_iter().enumerate() {
        let created = client.post(collection, &object).await.expect("an answer").ok();
        let path = format!("{collection}/{}", created["metadata"]["name"].as_str().expect("a name"));
        let now = match number % 2 {
            0 => created,
            _ => client
                .merge(&path, &json!({"metadata": {"annotations": {"changed": mark}}}))
                .await
                .expect("an answer")
                .ok(),
        };
        made.push((path, now));
    }
    made
}

/// That everything is as it was answered, also for a watch that begins before all of it.
async fn holds(client: &Client, start: u64, made: &[(String, Value)]) {
    for (path, object) in made {
        let found = client.get(path).await.expect("an answer").ok();
        assert_eq!(found, *object, "{path}");
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut watch = client
        .watch(&format!("{maps}?watch=true&labelSelector=mark&resourceVersion={start}"))
        .await
        .expect("a watch");
    for (_, object) in made.iter().filter(|(path, _)| path.starts_with(maps)) {
        let event = watch.event().await;
        assert_eq!((&event["type"], &event["object"]), (&json!("ADDED"), object));
    }
}

/// What the older release wrote is there for the newer one. Going back, the older one either has all that the newer one wrote,
/// or it says that the tables are newer, and the newer one goes on with all of it.
async fn there_and_back(old: Installation, new: Installation) {
    let (old, new) = (old.of(&older()).with("--compaction-interval=0"), new.with("--compaction-interval=0"));
    let server = old.start().await;
    let client = old.client().await;
    let start = revision(&client.get("/api/v1/namespaces/default/configmaps").await.expect("an answer").ok());
    let mut made = fill(&client, "older").await;
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));

    let server = new.start().await;
    let client = new.client().await;
    holds(&client, start, &made).await;
    made.extend(fill(&client, "newer").await);
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));

    match old.try_start().await {
        Some(server) => {
            println!("the older release has taken the store back");
            let client = old.client().await;
            holds(&client, start, &made).await;
            made.extend(fill(&client, "back").await);
            server.terminate().await;
            assert_eq!(server.end().await.code(), Some(0));
        }
        None => {
            let (code, message) = old.refused().await;
            assert!(
                code != Some(0) && message.contains("schema is newer than this server knows"),
                "{message}"
            );
            println!("the older release has refused the store");
        }
    }
    let _server = new.start().await;
    holds(&new.client().await, start, &made).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tests/upstream/releases/run has the server of an earlier release"]
async fn there_and_back_on_sqlite() {
    let old = Installation::sqlite();
    let new = old.beside();
    there_and_back(old, new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tests/upstream/releases/run has the server of an earlier release"]
async fn there_and_back_on_postgres() {
    let schema = Schema::create().await;
    there_and_back(Installation::postgres(&schema), Installation::postgres(&schema)).await;
}
