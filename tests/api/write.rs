//! GET of one object, POST, PUT and PATCH.

use std::collections::HashSet;
use std::future::IntoFuture as _;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::client::Watch;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

on_both_databases! {
    c39_get_one,
    c67_get_with_watch_is_a_get,
    c70_a_revision_on_create,
    c71_create_what_exists,
    c72_the_server_s_own_fields,
    c73_generated_names,
    c73_no_free_name,
    c74_a_stale_revision,
    c75_a_put_without_revision,
    c76_a_put_that_changes_nothing,
    c77_another_uid,
    c78_another_name,
    c79_generation,
    c80_parallel_patches,
    c81_patch_of_what_is_missing,
    c93_dry_run,
    names_and_namespaces_of_bodies,
    json_patches,
}

/// The next event is the one of an object written now: nothing came in between.
async fn no_event_until_now(server: &TestServer, watch: &mut Watch) {
    server.create("until-now", json!({})).await;
    watch.expect_named("ADDED", "until-now").await;
    server.remove("until-now").await;
    watch.expect_named("DELETED", "until-now").await;
}

fn at(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

fn conflict(name: &str) -> (String, Value) {
    let message = format!(
        "Operation cannot be fulfilled on configmaps \"{name}\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    (message, json!({"name": name, "kind": "configmaps"}))
}

async fn c39_get_one(setup: Setup) {
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

async fn c67_get_with_watch_is_a_get(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    assert_eq!(server.get(format!("{}?watch=true", at("x"))).await.ok(), created);
}

async fn c70_a_revision_on_create(setup: Setup) {
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

async fn c71_create_what_exists(setup: Setup) {
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

async fn c72_the_server_s_own_fields(setup: Setup) {
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

async fn c73_generated_names(setup: Setup) {
    let server = setup.start().await;
    let mut names = HashSet::new();
    for prefix in ["g-".to_owned(), "p".repeat(80)] {
        for _ in 0..3 {
            let object = json!({"metadata": {"generateName": prefix}});
            let created = server.post(CONFIGMAPS, &object).await.expect(201);
            let name = created["metadata"]["name"].as_str().expect("a name").to_owned();
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

/// All names of a prefix cannot be taken in a test; that a name is looked for again is `api`'s own test.
async fn c73_no_free_name(setup: Setup) {
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

async fn c74_a_stale_revision(setup: Setup) {
    let server = setup.start().await;
    let mut stale = server.create("x", json!({"n": "1"})).await;
    let current = server.set("x", json!({"n": "2"})).await;
    stale["data"]["n"] = "3".into();
    let (message, details) = conflict("x");
    server.put(at("x"), &stale).await.fails(409, "Conflict", &message, details.clone());
    assert_eq!(server.get(at("x")).await.ok(), current);
    let put = |n: usize| {
        let mut new = current.clone();
        new["data"]["n"] = format!("writer {n}").into();
        server.put(at("x"), &new).into_future()
    };
    let answers = join_all((0..8).map(put)).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(won.len(), 1, "{answers:?}");
    for answer in lost {
        answer.fails(409, "Conflict", &message, details.clone());
    }
    let malformed = json!({"metadata": {"name": "x", "resourceVersion": "abc"}});
    assert_eq!(server.put(at("x"), &malformed).await.failure()["code"], 400);
}

async fn c75_a_put_without_revision(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"n": "1"})).await;
    for revision in [json!({"name": "x"}), json!({"name": "x", "resourceVersion": "0"})] {
        let n = revision.to_string();
        let put = server.put(at("x"), &json!({"metadata": revision, "data": {"n": n}})).await.ok();
        assert!(rv(&put) > rv(&created));
        assert_eq!((&put["metadata"]["uid"], &put["data"]["n"]), (&created["metadata"]["uid"], &json!(n)));
    }
    // A built-in kind that wants a revision answers as custom resources do.
    let leases = "/apis/coordination.k8s.io/v1/namespaces/t/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 5}});
    server.post(leases, &lease).await.expect(201);
    let answer = server.put(format!("{leases}/l"), &lease).await;
    let text = "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
                specified for an update";
    let cause = json!({
        "reason": "FieldValueInvalid", "field": "metadata.resourceVersion",
        "message": "Invalid value: 0: must be specified for an update"
    });
    let details = json!({"name": "l", "group": "coordination.k8s.io", "kind": "leases", "causes": [cause]});
    answer.fails(422, "Invalid", text, details);
}

async fn c76_a_put_that_changes_nothing(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"n": "1"})).await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    let bare = json!({"metadata": {"name": "x"}, "data": {"n": "1"}});
    for body in [&created, &bare] {
        assert_eq!(server.put(at("x"), body).await.ok(), created);
    }
    assert_eq!(server.set("x", json!({"n": "1"})).await, created);
    assert_eq!(server.revision().await, start);
    no_event_until_now(&server, &mut watch).await;
    // A stale revision is a conflict even so.
    let changed = server.set("x", json!({"n": "2"})).await;
    let mut stale = changed.clone();
    stale["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let (message, details) = conflict("x");
    server.put(at("x"), &stale).await.fails(409, "Conflict", &message, details);
}

async fn c77_another_uid(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    let mut other = created.clone();
    let uid = "11111111-2222-3333-4444-555555555555";
    other["metadata"]["uid"] = uid.into();
    let failure = server.put(at("x"), &other).await.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(409), &json!("Conflict")));
    let message = failure["message"].as_str().expect("a message");
    let stored = created["metadata"]["uid"].as_str().expect("a uid");
    assert!(message.starts_with("Operation cannot be fulfilled on configmaps \"x\": "), "{message}");
    let end = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}");
    assert!(message.ends_with(&end), "{message}");
    let missing = server.put(at("y"), &config_map("y", json!({}))).await;
    missing.fails(404, "NotFound", "configmaps \"y\" not found", json!({"name": "y", "kind": "configmaps"}));
}

async fn c78_another_name(setup: Setup) {
    let server = setup.start().await;
    server.create("b", json!({})).await;
    let answer = server.put(at("b"), &config_map("a", json!({}))).await;
    answer.bad_request("the name of the object (a) does not match the name on the URL (b)");
    let answer = server.put(at("b"), &json!({"metadata": {}})).await;
    answer.bad_request("the name of the object (b based on URL) was undeterminable: name must be provided");
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

async fn c79_generation(setup: Setup) {
    let server = setup.start().await;
    let deployment = json!({"metadata": {"name": "d", "generation": 40}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    }});
    let created = server.post(DEPLOYMENTS, &deployment).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d");
    assert_eq!(created["metadata"]["generation"], 1);
    let mut body = created.clone();
    body["metadata"]["generation"] = 7.into();
    body["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    assert_eq!(server.put(&path, &body).await.ok(), created, "nothing changed");
    let labelled = server.patch(&path, &json!({"metadata": {"labels": {"l": "1"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let scaled = server.patch(&path, &json!({"spec": {"replicas": 2}})).await.ok();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let patch = json!({"status": {"replicas": 2}, "spec": {"replicas": 9}});
    let reported = server.patch(format!("{path}/status"), &patch).await.ok();
    assert_eq!((&reported["metadata"]["generation"], &reported["spec"]["replicas"]), (&json!(2), &json!(2)));
    assert_eq!(reported["status"]["replicas"], 2);
    // And the other way round: a write to the object leaves its status alone.
    let written =
        server.patch(&path, &json!({"status": {"replicas": 5}, "spec": {"replicas": 3}})).await.ok();
    assert_eq!((&written["status"]["replicas"], &written["metadata"]["generation"]), (&json!(2), &json!(3)));
}

async fn c80_parallel_patches(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"k": "v"})).await;
    let patch = |n: usize| server.patch(at("x"), &json!({"data": {format!("k{n}"): "v"}})).into_future();
    let answers = join_all((0..50).map(patch)).await;
    let revisions: HashSet<u64> = answers.iter().map(|answer| rv(&answer.ok())).collect();
    assert_eq!(revisions.len(), 50);
    let data = server.get(at("x")).await.ok()["data"].clone();
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(51));
    let stale =
        json!({"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"n": "1"}});
    let (message, details) = conflict("x");
    server.patch(at("x"), &stale).await.fails(409, "Conflict", &message, details);
}

async fn c81_patch_of_what_is_missing(setup: Setup) {
    let server = setup.start().await;
    let missing = server.patch(at("x"), &json!({"data": {}})).await;
    missing.fails(404, "NotFound", "configmaps \"x\" not found", json!({"name": "x", "kind": "configmaps"}));
}

async fn json_patches(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({"a": "1", "b": "2"})).await;
    let patch = |operations: Value| {
        server
            .request(http::Method::PATCH, at("x"))
            .body("application/json-patch+json", operations.to_string())
    };
    let done = patch(json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "3"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}
    ]));
    let done = done.await.ok();
    assert_eq!((&done["data"], &done["metadata"]["labels"]), (&json!({"a": "3"}), &json!({"l": "1"})));
    let failed = patch(json!([
        {"op": "replace", "path": "/data/a", "value": "4"}, {"op": "test", "path": "/data/a", "value": "1"}
    ]));
    let text = "the server rejected our request due to an error in our request";
    failed.await.fails(422, "Invalid", text, json!({}));
    let missing = patch(json!([{"op": "remove", "path": "/data/nothing"}]));
    missing.await.fails(422, "Invalid", text, json!({}));
    assert_eq!(patch(json!({"op": "remove"})).await.failure()["code"], 400);
    assert_eq!(server.get(at("x")).await.ok(), done);
    let uid = patch(json!([{"op": "replace", "path": "/metadata/uid", "value": "u"}])).await.failure();
    assert_eq!((&uid["code"], &uid["details"]["causes"][0]["field"]), (&json!(422), &json!("metadata.uid")));
}

async fn c93_dry_run(setup: Setup) {
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
