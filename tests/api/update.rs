//! PUT.

use std::future::IntoFuture as _;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use super::write::{DEPLOYMENTS, at, no_event_until_now};
use crate::support::server::{CONFIGMAPS, Setup, config_map, rv};

on_every_store! {
    list_watch_74_a_stale_revision,
    list_watch_75_a_put_without_revision,
    list_watch_76_a_put_that_changes_nothing,
    list_watch_77_another_uid,
    list_watch_78_another_name,
    list_watch_79_generation,
    a_put_that_creates,
    a_put_and_deletes_at_once,
    a_scale_of_nothing,
}

pub fn conflict(name: &str) -> (String, Value) {
    let message = format!(
        "Operation cannot be fulfilled on configmaps \"{name}\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    (message, json!({"name": name, "kind": "configmaps"}))
}

async fn list_watch_74_a_stale_revision(setup: Setup) {
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
    assert_eq!(server.put(at("x"), &malformed).await.failure()["code"], 500);
}

async fn list_watch_75_a_put_without_revision(setup: Setup) {
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

async fn list_watch_76_a_put_that_changes_nothing(setup: Setup) {
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

async fn list_watch_77_another_uid(setup: Setup) {
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

async fn list_watch_78_another_name(setup: Setup) {
    let server = setup.start().await;
    server.create("b", json!({})).await;
    let answer = server.put(at("b"), &config_map("a", json!({}))).await;
    answer.bad_request("the name of the object (a) does not match the name on the URL (b)");
    let answer = server.put(at("b"), &json!({"metadata": {}})).await;
    answer.bad_request("the name of the object (b based on URL) was undeterminable: name must be provided");
}

async fn list_watch_79_generation(setup: Setup) {
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

async fn a_put_that_creates(setup: Setup) {
    let server = setup.start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/t/leases";
    let lease = json!({"metadata": {"name": "l", "uid": ""}, "spec": {"leaseDurationSeconds": 5}});
    let path = format!("{leases}/l");
    server.put(format!("{path}?dryRun=All"), &lease).await.expect(201);
    assert_eq!(server.get(&path).await.status, 404);
    let created = server.put(&path, &lease).await.expect(201);
    assert!(created["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()), "{created}");
    let mut again = created.clone();
    again["spec"]["leaseDurationSeconds"] = 6.into();
    let updated = server.put(&path, &again).await.ok();
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    let nowhere = server.put("/apis/coordination.k8s.io/v1/namespaces/nowhere/leases/l", &lease).await;
    assert_eq!(nowhere.failure()["message"], "namespaces \"nowhere\" not found");
}

/// Whoever comes first, each answer tells what was at that moment, and in the end there is nothing.
async fn a_put_and_deletes_at_once(setup: Setup) {
    let server = setup.start().await;
    for round in 0..10 {
        let name = format!("n{round}");
        let created = server.create(&name, json!({})).await;
        let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&created))).await;
        let put = server.put(at(&name), &config_map(&name, json!({"k": "v"}))).into_future();
        let delete = || server.delete(at(&name)).into_future();
        let (put, one, two) = tokio::join!(put, delete(), delete());
        assert!(matches!(put.status, 200 | 404), "{put:?}");
        let mut deletes = [one.status, two.status];
        deletes.sort_unstable();
        assert_eq!(deletes, [200, 404], "{one:?} {two:?}");
        if put.status == 200 {
            assert_eq!(watch.expect("MODIFIED").await, put.ok());
        }
        watch.expect_named("DELETED", &name).await;
        assert_eq!(server.get(at(&name)).await.status, 404);
    }
}

/// Whatever way it is written: there is no parent that could be made of a Scale.
async fn a_scale_of_nothing(setup: Setup) {
    let server = setup.start().await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web", "namespace": "t"}, "spec": {"replicas": 2}});
    let apply = server.request(Method::PATCH, format!("{path}?fieldManager=a"));
    let applied = apply.body("application/apply-patch+yaml", scale.to_string()).await;
    let answers = [server.put(&path, &scale).await, server.patch(&path, &scale).await, applied];
    for answer in answers {
        let details = json!({"name": "web", "group": "apps", "kind": "deployments"});
        answer.fails(404, "NotFound", "deployments.apps \"web\" not found", details);
    }
}
