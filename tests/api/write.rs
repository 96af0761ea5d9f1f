//! GET of one object and POST; dry runs of all writes.

use std::collections::HashSet;
use std::future::IntoFuture as _;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::client::Watch;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, rv};

pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

on_every_store! {
    list_watch_39_get_one,
    list_watch_67_get_with_watch_is_a_get,
    list_watch_70_a_revision_on_create,
    list_watch_71_create_what_exists,
    list_watch_71_one_of_many_creates,
    list_watch_72_the_server_s_own_fields,
    list_watch_73_generated_names,
    list_watch_73_generated_names_at_once,
    list_watch_93_dry_run,
    names_and_namespaces_of_bodies,
}

/// The next event is the one of an object written now: nothing came in between.
pub async fn no_event_until_now(server: &TestServer, watch: &mut Watch) {
    server.create("until-now", json!({})).await;
    watch.expect_named("ADDED", "until-now").await;
    server.remove("until-now").await;
    watch.expect_named("DELETED", "until-now").await;
}

pub fn at(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

async fn list_watch_39_get_one(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("x", json!({"n": "1"})).await);
    let new = server.set("x", json!({"n": "2"})).await;
    server.compact(server.revision().await).await;
    for query in [
        "".to_owned(),
        "?resourceVersion=".to_owned(),
        "?resourceVersion=0".to_owned(),
        format!("?resourceVersion={old}"),
        format!("?resourceVersion={old}&resourceVersionMatch=Exact"),
    ] {
        assert_eq!(server.get(format!("{}{query}", at("x"))).await.ok(), new, "{query}");
    }
    for name in ["x", "y"] {
        let future = server.revision().await + 1000;
        let failure = server.get(format!("{}?resourceVersion={future}", at(name))).await.failure();
        assert_eq!((&failure["code"], &failure["reason"]), (&json!(504), &json!("Timeout")));
    }
    let missing = server.get(at("y")).await;
    missing.fails(404, "NotFound", "configmaps \"y\" not found", json!({"name": "y", "kind": "configmaps"}));
    let missing = server.get(format!("{DEPLOYMENTS}/y")).await;
    let details = json!({"name": "y", "group": "apps", "kind": "deployments"});
    missing.fails(404, "NotFound", "deployments.apps \"y\" not found", details);
    let export = server.get(format!("{}?export=true", at("x"))).await;
    export.bad_request("the export parameter, deprecated since v1.14, is no longer supported");
}

async fn list_watch_67_get_with_watch_is_a_get(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    assert_eq!(server.get(format!("{}?watch=true", at("x"))).await.ok(), created);
}

async fn list_watch_70_a_revision_on_create(setup: Setup) {
    let server = setup.start().await;
    let with = |name: &str, revision: &str| json!({"metadata": {"name": name, "resourceVersion": revision}});
    let answer = server.post(CONFIGMAPS, &with("a", "5")).await;
    answer.fails(500, "", "resourceVersion should not be set on objects to be created", Value::Null);
    assert_eq!(server.get(at("a")).await.status, 404);
    for (name, revision) in [("a", "0"), ("b", ""), ("c", "nonsense")] {
        let created = server.post(CONFIGMAPS, &with(name, revision)).await.expect(201);
        assert!(rv(&created) > 0);
    }
}

async fn list_watch_71_create_what_exists(setup: Setup) {
    let server = setup.start().await;
    let object = json!({"metadata": {"name": "x", "finalizers": ["example.com/f"]}});
    server.post(CONFIGMAPS, &object).await.expect(201);
    let details = json!({"name": "x", "kind": "configmaps"});
    let text = "configmaps \"x\" already exists";
    server.post(CONFIGMAPS, &object).await.fails(409, "AlreadyExists", text, details.clone());
    server.remove("x").await;
    let text = "object is being deleted: configmaps \"x\" already exists";
    server.post(CONFIGMAPS, &object).await.fails(409, "AlreadyExists", text, details);
}

async fn list_watch_71_one_of_many_creates(setup: Setup) {
    let server = setup.start().await;
    let create =
        |n: usize| server.post(CONFIGMAPS, &config_map("x", json!({"n": n.to_string()}))).into_future();
    let answers = join_all((0..20).map(create)).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(won.len(), 1, "{answers:?}");
    assert_eq!(server.get(at("x")).await.ok(), won[0].json());
    for answer in lost {
        assert_eq!(answer.failure()["reason"], "AlreadyExists");
    }
}

async fn list_watch_72_the_server_s_own_fields(setup: Setup) {
    let server = setup.start().await;
    let mine = json!({"metadata": {
        "name": "x", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/mine",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 7
    }, "data": {"k": "v"}});
    let created = server.post(CONFIGMAPS, &mine).await.expect(201);
    let metadata = created["metadata"].as_object().expect("metadata");
    let mut fields: Vec<&str> = metadata.keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["creationTimestamp", "managedFields", "name", "namespace", "resourceVersion", "uid"]);
    assert_eq!((&created["kind"], &created["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!((&created["data"], &metadata["namespace"]), (&json!({"k": "v"}), &json!("t")));
    let uid = metadata["uid"].as_str().expect("a uid");
    assert!(uuid::Uuid::parse_str(uid).is_ok(), "{uid}");
    let time = metadata["creationTimestamp"].as_str().expect("a time");
    assert!(time.len() == 20 && time.ends_with('Z') && time > "2020", "{time}");
    assert_eq!(server.get(at("x")).await.ok(), created);
}

async fn list_watch_73_generated_names(setup: Setup) {
    let server = setup.start().await;
    let mut names = HashSet::new();
    for prefix in ["g-".to_owned(), "p".repeat(80)] {
        for _ in 0..3 {
            let object = json!({"metadata": {"generateName": prefix}});
            let answer = server.post(CONFIGMAPS, &object).await;
            let created = answer.expect(201);
            let name = created["metadata"]["name"].as_str().expect("a name").to_owned();
            let first = format!(r#""metadata":{{"name":"{name}","generateName":"#);
            assert!(answer.text().contains(&first), "{answer:?}");
            let (start, random) = name.split_at(name.len() - 5);
            assert_eq!(start, &prefix[..prefix.len().min(58)]);
            assert!(random.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{name}");
            assert!(names.insert(name));
        }
    }
    let both = json!({"metadata": {"generateName": "g-", "name": "own"}});
    assert_eq!(server.post(CONFIGMAPS, &both).await.expect(201)["metadata"]["name"], "own");
    let text =
        "configmaps \"own\" already exists, the server was not able to generate a unique name for the object";
    let details = json!({"name": "own", "kind": "configmaps", "retryAfterSeconds": 1});
    server.post(CONFIGMAPS, &both).await.fails(409, "AlreadyExists", text, details);
    let neither = server.post(CONFIGMAPS, &json!({"metadata": {}})).await;
    let cause = json!({
        "reason": "FieldValueRequired", "field": "metadata.name",
        "message": "Required value: name or generateName is required"
    });
    let text = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    neither.fails(422, "Invalid", text, json!({"kind": "ConfigMap", "causes": [cause]}));
}

/// All names of a prefix cannot be taken here; `generated_names.rs` tells what happens then.
async fn list_watch_73_generated_names_at_once(setup: Setup) {
    let server = setup.start().await;
    let create = |n: usize| {
        let object = json!({"metadata": {"generateName": "same-", "labels": {"n": n.to_string()}}});
        server.post(CONFIGMAPS, &object).into_future()
    };
    let answers = join_all((0..50).map(create)).await;
    let names: HashSet<String> =
        answers.iter().map(|answer| answer.expect(201)["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 50);
}

async fn names_and_namespaces_of_bodies(setup: Setup) {
    let server = setup.start().await;
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "default"}});
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    server.post(CONFIGMAPS, &elsewhere).await.bad_request(text);
    server.create("a", json!({})).await;
    server.put(at("a"), &elsewhere).await.bad_request(text);
    for name in ["a/b", "a%b", ".", "..", "UPPER", "-a", &"x".repeat(254)] {
        let answer = server.post(CONFIGMAPS, &json!({"metadata": {"name": name}})).await;
        let failure = answer.failure();
        assert_eq!((&failure["code"], &failure["reason"]), (&json!(422), &json!("Invalid")), "{name}");
        assert_eq!(failure["details"]["causes"][0]["field"], "metadata.name", "{name}");
    }
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"].as_array().map(Vec::len), Some(1));
}

async fn list_watch_93_dry_run(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"n": "1"})).await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    let tried = server
        .post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("y", json!({"k": "v"})))
        .await
        .expect(201);
    assert_eq!(tried["metadata"].get("resourceVersion"), None);
    assert!(tried["metadata"]["uid"].is_string() && tried["data"] == json!({"k": "v"}), "{tried}");
    assert_eq!(server.get(at("y")).await.status, 404);
    let exists = server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("x", json!({}))).await;
    assert_eq!(exists.failure()["reason"], "AlreadyExists");
    let mut body = created.clone();
    body["data"]["n"] = "2".into();
    let tried = server.put(format!("{}?dryRun=All", at("x")), &body).await.ok();
    assert_eq!(tried["data"]["n"], "2");
    let tried = server.patch(format!("{}?dryRun=All", at("x")), &json!({"data": {"n": "3"}})).await.ok();
    assert_eq!(tried["data"]["n"], "3");
    let deleted = server.delete(format!("{}?dryRun=All", at("x"))).await.ok();
    assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
    server.delete(format!("{CONFIGMAPS}?dryRun=All")).await.ok();
    assert_eq!(server.get(at("x")).await.ok(), created);
    assert_eq!(server.revision().await, start);
    no_event_until_now(&server, &mut watch).await;
    let bad = server.post(format!("{CONFIGMAPS}?dryRun=yes"), &config_map("y", json!({}))).await;
    bad.invalid_options(
        "CreateOptions",
        &[("FieldValueNotSupported", "dryRun", "Unsupported value: [\"yes\"]: supported values: \"All\"")],
    );
}
