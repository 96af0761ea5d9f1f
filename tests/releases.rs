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
