//! `pods/eviction`: what a disruption budget lets happen.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer};

pub const PODS: &str = "/api/v1/namespaces/t/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/t/poddisruptionbudgets";
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

on_every_store! {
    a_pod_without_a_budget_goes,
    a_budget_counts_down,
    a_budget_that_is_used_up,
    budgets_that_cannot_be_asked,
    pods_that_are_not_ready,
    pods_that_do_not_work,
    preconditions_and_dry_runs,
    evictions_that_make_no_sense,
}

/// A pod on a node, as its kubelet reports it.
async fn running(server: &TestServer, name: &str, ready: &str) -> Value {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
    });
    server.post(PODS, &pod).await.expect(201);
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    server.patch(format!("{PODS}/{name}/status"), &status).await.ok()
}

/// A budget of which the controller says this.
async fn budget(server: &TestServer, name: &str, status: Value) -> Value {
    let budget = json!({"metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    server.post(BUDGETS, &budget).await.expect(201);
    report(server, name, status).await
}

async fn report(server: &TestServer, name: &str, status: Value) -> Value {
    server.patch(format!("{BUDGETS}/{name}/status"), &json!({"status": status})).await.ok()
}

fn healthy(allowed: i64) -> Value {
    json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3})
}

async fn evict(server: &TestServer, name: &str, options: Value) -> Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options});
    server.post(format!("{PODS}/{name}/eviction"), &eviction).await
}

fn refused_because(message: &str, retry_after: Option<u64>) -> Value {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = seconds.into();
    }
    details
}

async fn a_pod_without_a_budget_goes(setup: Setup) {
    let server = setup.start().await;
    let pod = running(&server, "p", "True").await;
    let start = server.revision().await;
    let answer = evict(&server, "p", Value::Null).await;
    let done =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    assert_eq!(answer.expect(201), done);
    let mut watch = server.watch(format!("{PODS}?watch=1&resourceVersion={start}")).await;
    let marked = watch.next().await.expect("a change");
    assert_eq!(marked["type"], "MODIFIED");
    let conditions = marked["object"]["status"]["conditions"].as_array().expect("conditions");
    let target =
        conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").expect("one more");
    assert_eq!((&target["status"], &target["reason"]), (&json!("True"), &json!("EvictionByEvictionAPI")));
    assert_eq!(target["message"], "Eviction API: evicting");
    assert!(target["lastTransitionTime"].is_string(), "{target}");
    assert_eq!(marked["object"]["metadata"]["uid"], pod["metadata"]["uid"]);
    assert_eq!(watch.next().await.expect("the end")["type"], "DELETED");
    server.get(format!("{PODS}/p")).await.failure();
    evict(&server, "p", Value::Null).await.fails(
        404,
        "NotFound",
        "pods \"p\" not found",
        json!({"name": "p", "kind": "pods"}),
    );
}

async fn a_budget_counts_down(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b", "c"] {
        running(&server, name, "True").await;
    }
    budget(&server, "web", healthy(2)).await;
    evict(&server, "a", Value::Null).await.expect(201);
    let after = server.get(format!("{BUDGETS}/web")).await.ok();
    assert_eq!(after["status"]["disruptionsAllowed"], 1, "{after}");
    assert!(after["status"]["disruptedPods"]["a"].is_string(), "{after}");
    assert_eq!(after["spec"]["minAvailable"], 1);
    assert_eq!(after["metadata"]["generation"], 1);
    evict(&server, "b", Value::Null).await.expect(201);
    let after = server.get(format!("{BUDGETS}/web")).await.ok();
    assert_eq!(after["status"]["disruptionsAllowed"], 0, "{after}");
    let condition = &after["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("DisruptionAllowed"), &json!("False")));
    assert_eq!(
        (&condition["reason"], &condition["observedGeneration"]),
        (&json!("InsufficientPods"), &json!(1))
    );
    // Nobody has counted the pods anew: three of two are healthy, and still nothing may go.
    let why = "The disruption budget web does not allow evicting pods currently";
    evict(&server, "c", Value::Null).await.fails(429, "TooManyRequests", REFUSED, refused_because(why, None));
    server.get(format!("{PODS}/c")).await.ok();
    // Pods that the budget does not select go anyway.
    server.patch(format!("{PODS}/c"), &json!({"metadata": {"labels": {"app": "other"}}})).await.ok();
    evict(&server, "c", Value::Null).await.expect(201);
}

async fn a_budget_that_is_used_up(setup: Setup) {
    let server = setup.start().await;
    running(&server, "p", "True").await;
    let none = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2});
    budget(&server, "web", none).await;
    let why = "The disruption budget web needs 2 healthy pods and has 2 currently";
    evict(&server, "p", Value::Null).await.fails(429, "TooManyRequests", REFUSED, refused_because(why, None));
    let failed = json!({"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed",
        "message": "no controller", "lastTransitionTime": "2030-01-01T00:00:00Z"}]});
    report(&server, "web", failed).await;
    let why = "The disruption budget web does not allow evicting pods currently because it failed sync: no controller";
    evict(&server, "p", Value::Null).await.fails(429, "TooManyRequests", REFUSED, refused_because(why, None));
    let told = json!({"currentHealthy": 3, "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "Because",
        "message": "of this", "lastTransitionTime": "2030-01-01T00:00:00Z"}]});
    report(&server, "web", told).await;
    let why = "The disruption budget web does not allow evicting pods currently (Because): of this";
    evict(&server, "p", Value::Null).await.fails(429, "TooManyRequests", REFUSED, refused_because(why, None));
}

async fn budgets_that_cannot_be_asked(setup: Setup) {
    let server = setup.start().await;
    running(&server, "p", "True").await;
    let stored = budget(&server, "web", healthy(1)).await;
    // A controller that has not seen the newest spec counts for nothing.
    let mut changed = stored.clone();
    changed["spec"]["minAvailable"] = 2.into();
    server.put(format!("{BUDGETS}/web"), &changed).await.ok();
    let why = "The disruption budget web is still being processed by the server.";
    let details = refused_because(why, Some(10));
    evict(&server, "p", Value::Null).await.fails(429, "TooManyRequests", REFUSED, details);
    report(&server, "web", json!({"observedGeneration": 2})).await;
    budget(&server, "more", healthy(1)).await;
    let two =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    evict(&server, "p", Value::Null).await.fails(500, "", two, Value::Null);
    server.delete(format!("{BUDGETS}/more")).await.ok();
    evict(&server, "p", Value::Null).await.expect(201);
}

async fn pods_that_are_not_ready(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b", "c"] {
        running(&server, name, "False").await;
    }
    let short = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 3});
    budget(&server, "web", short).await;
    let why = "The disruption budget web needs 2 healthy pods and has 1 currently";
    evict(&server, "a", Value::Null).await.fails(429, "TooManyRequests", REFUSED, refused_because(why, None));
    // Enough others are healthy.
    report(&server, "web", json!({"currentHealthy": 2})).await;
    evict(&server, "a", Value::Null).await.expect(201);
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let merged = server.get(format!("{BUDGETS}/web")).await.ok();
    let mut merged = merged;
    merged["spec"]["unhealthyPodEvictionPolicy"] = always["spec"]["unhealthyPodEvictionPolicy"].clone();
    server.put(format!("{BUDGETS}/web"), &merged).await.ok();
    report(&server, "web", json!({"currentHealthy": 0, "observedGeneration": 2})).await;
    evict(&server, "b", Value::Null).await.expect(201);
    let after = server.get(format!("{BUDGETS}/web")).await.ok();
    assert_eq!(after["status"]["disruptedPods"], Value::Null, "{after}");
}

async fn pods_that_do_not_work(setup: Setup) {
    let server = setup.start().await;
    let none = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 2, "expectedPods": 2});
    budget(&server, "web", none).await;
    for phase in ["Pending", "Succeeded", "Failed"] {
        running(&server, "p", "True").await;
        server.patch(format!("{PODS}/p/status"), &json!({"status": {"phase": phase}})).await.ok();
        evict(&server, "p", Value::Null).await.expect(201);
        server.get(format!("{PODS}/p")).await.failure();
    }
}

async fn preconditions_and_dry_runs(setup: Setup) {
    let server = setup.start().await;
    let pod = running(&server, "p", "True").await;
    // Who is refused by a precondition has taken its disruption all the same.
    let budget = budget(&server, "web", healthy(3)).await;
    let unchanged = async || {
        assert_eq!(server.get(format!("{PODS}/p")).await.ok(), pod);
        assert_eq!(
            server.get(format!("{BUDGETS}/web")).await.ok()["metadata"]["resourceVersion"],
            budget["metadata"]["resourceVersion"]
        );
    };
    evict(&server, "p", json!({"dryRun": ["All"]})).await.expect(201);
    unchanged().await;
    let eviction = json!({"metadata": {"name": "p"}});
    server.post(format!("{PODS}/p/eviction?dryRun=All"), &eviction).await.expect(201);
    unchanged().await;
    let uid = pod["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let other = evict(&server, "p", json!({"preconditions": {"uid": "x"}})).await.failure();
    let text = format!(
        "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (x) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
    );
    assert_eq!((&other["reason"], &other["message"]), (&json!("Conflict"), &json!(text)));
    let old = evict(&server, "p", json!({"preconditions": {"resourceVersion": "1"}})).await.failure();
    assert_eq!(old["reason"], "Conflict");
    let now = server.get(format!("{PODS}/p")).await.ok()["metadata"]["resourceVersion"].clone();
    evict(&server, "p", json!({"preconditions": {"uid": uid, "resourceVersion": now}})).await.expect(201);
    server.get(format!("{PODS}/p")).await.failure();
}

async fn evictions_that_make_no_sense(setup: Setup) {
    let server = setup.start().await;
    running(&server, "p", "True").await;
    let path = format!("{PODS}/p/eviction");
    server
        .post(&*path, &json!({"metadata": {"name": "q"}}))
        .await
        .bad_request("name in URL does not match name in Eviction object");
    let wrong = server.post(&*path, &json!({"kind": "Pod", "metadata": {"name": "p"}})).await.failure();
    assert_eq!(wrong["code"], 400);
    for answer in
        [server.get(&*path).await, server.put(&*path, &json!({})).await, server.delete(&*path).await]
    {
        assert_eq!(answer.failure()["code"], 405);
    }
    server.get(format!("{PODS}/p")).await.ok();
}
