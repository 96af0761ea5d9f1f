//! DELETE of one object.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

const FINALIZER: &str = "example.com/f";

on_every_store! {
    list_watch_82_an_immediate_delete,
    list_watch_83_preconditions,
    list_watch_84_85_finalizers,
    list_watch_86_87_what_a_terminating_object_refuses,
    list_watch_88_propagation,
    list_watch_89_orphan_dependents_false,
    list_watch_90_the_body_beats_the_query,
    list_watch_84_generation_grows_with_a_deletion,
    a_pod_has_a_grace_period,
    some_kinds_answer_with_the_object,
}

fn at(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

pub async fn delete_with(server: &TestServer, path: &str, options: Value) -> Answer {
    server.delete(path).json(&options).await
}

/// A ConfigMap that stays until its finalizer is gone.
pub async fn held(server: &TestServer, name: &str) -> Value {
    let object = json!({"metadata": {"name": name, "finalizers": [FINALIZER]}, "data": {"k": "v"}});
    server.post(CONFIGMAPS, &object).await.expect(201)
}

async fn list_watch_82_an_immediate_delete(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    let details = json!({"name": "x", "kind": "configmaps", "uid": created["metadata"]["uid"]});
    let want = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    assert_eq!(server.delete(at("x")).await.ok(), want);
    let details = json!({"name": "x", "kind": "configmaps"});
    for answer in [server.get(at("x")).await, server.delete(at("x")).await] {
        answer.fails(404, "NotFound", "configmaps \"x\" not found", details.clone());
    }
}

async fn list_watch_83_preconditions(setup: Setup) {
    let server = setup.start().await;
    let old = server.create("x", json!({})).await;
    let current = server.set("x", json!({"k": "v"})).await;
    let uid = current["metadata"]["uid"].as_str().expect("a uid");
    let (stale, fresh) = (rv(&old), rv(&current));
    let details = json!({"name": "x", "kind": "ConfigMap"});
    let text = format!(
        "Operation cannot be fulfilled on ConfigMap \"x\": the UID in the precondition (other) does not match the UID \
         in record ({uid}). The object might have been deleted and then recreated"
    );
    let answer = delete_with(&server, &at("x"), json!({"preconditions": {"uid": "other"}})).await;
    answer.fails(409, "Conflict", &text, details.clone());
    let text = format!(
        "Operation cannot be fulfilled on ConfigMap \"x\": the ResourceVersion in the precondition ({stale}) does not \
         match the ResourceVersion in record ({fresh}). The object might have been modified"
    );
    let answer =
        delete_with(&server, &at("x"), json!({"preconditions": {"resourceVersion": stale.to_string()}}))
            .await;
    answer.fails(409, "Conflict", &text, details.clone());
    // The same from the query, as the body is empty.
    let answer = server.delete(format!("{}?resourceVersion={stale}", at("x"))).await;
    answer.fails(409, "Conflict", &text, details);
    let both = json!({"preconditions": {"uid": uid, "resourceVersion": fresh.to_string()}});
    delete_with(&server, &at("x"), both).await.ok();
}

async fn list_watch_84_85_finalizers(setup: Setup) {
    let server = setup.start().await;
    let created = held(&server, "x").await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&created))).await;
    let terminating = server.delete(at("x")).await.ok();
    assert!(rv(&terminating) > rv(&created));
    assert!(terminating["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(terminating["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(watch.expect("MODIFIED").await, terminating);
    assert_eq!(server.delete(at("x")).await.ok(), terminating, "again is no change");
    // 85: the last finalizer goes, and the object with it.
    let mut released = terminating.clone();
    released["metadata"].as_object_mut().expect("metadata").remove("finalizers");
    released["data"]["k"] = "last".into();
    let answer = server.put(at("x"), &released).await.ok();
    assert_eq!(answer["metadata"].get("finalizers"), None);
    assert_eq!(server.get(at("x")).await.status, 404);
    let mut deleted = watch.expect("DELETED").await;
    assert_eq!(rv(&deleted), server.revision().await);
    deleted["metadata"]["resourceVersion"] = terminating["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, terminating, "the last stored state, finalizer and all");
    server.create("y", json!({})).await;
    watch.expect_named("ADDED", "y").await;
}

async fn list_watch_86_87_what_a_terminating_object_refuses(setup: Setup) {
    let server = setup.start().await;
    held(&server, "x").await;
    let terminating = server.delete(at("x")).await.ok();
    let mut more = terminating.clone();
    more["metadata"]["finalizers"] = json!([FINALIZER, "example.com/g"]);
    let message = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                   []string{\"example.com/g\"}";
    let cause = json!({"reason": "FieldValueForbidden", "message": message, "field": "metadata.finalizers"});
    let text = format!("ConfigMap \"x\" is invalid: metadata.finalizers: {message}");
    let details = json!({"name": "x", "kind": "ConfigMap", "causes": [cause]});
    server.put(at("x"), &more).await.fails(422, "Invalid", &text, details);
    // 87
    let mut without = terminating.clone();
    let metadata = without["metadata"].as_object_mut().expect("metadata");
    metadata.remove("deletionTimestamp");
    metadata.remove("deletionGracePeriodSeconds");
    without["data"]["k"] = "new".into();
    let stored = server.put(at("x"), &without).await.ok();
    assert_eq!(stored["metadata"]["deletionTimestamp"], terminating["metadata"]["deletionTimestamp"]);
    assert_eq!(
        (&stored["metadata"]["deletionGracePeriodSeconds"], &stored["data"]["k"]),
        (&json!(0), &json!("new"))
    );
    let mut moved = stored.clone();
    moved["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    let kept = server.put(at("x"), &moved).await.ok();
    assert_eq!(kept["metadata"]["deletionTimestamp"], stored["metadata"]["deletionTimestamp"], "put back");
    moved["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"].clone();
    moved["metadata"]["deletionGracePeriodSeconds"] = 7.into();
    let failure = server.put(at("x"), &moved).await.failure();
    let cause = json!({
        "reason": "FieldValueInvalid", "field": "metadata.deletionGracePeriodSeconds",
        "message": "Invalid value: 7: field is immutable"
    });
    assert_eq!(failure["details"]["causes"], json!([cause]));
    // Only a DELETE begins a deletion.
    let mut alive = server.create("y", json!({})).await;
    alive["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    let failure = server.put(at("y"), &alive).await.failure();
    assert_eq!(failure["details"]["causes"][0]["field"], "metadata.deletionTimestamp");
}

async fn list_watch_88_propagation(setup: Setup) {
    let server = setup.start().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        // The collector takes its finalizer off again; what the answer says was stored.
        let name = policy.to_lowercase();
        held(&server, &name).await;
        let answer = delete_with(&server, &at(&name), json!({"propagationPolicy": policy})).await.ok();
        assert_eq!(answer["metadata"]["finalizers"], json!([FINALIZER, finalizer]));
    }
    server.create("x", json!({})).await;
    let both =
        delete_with(&server, &at("x"), json!({"propagationPolicy": "Foreground", "orphanDependents": true}))
            .await;
    both.invalid_options(
        "DeleteOptions",
        &[(
            "FieldValueInvalid",
            "propagationPolicy",
            "Invalid value: \"Foreground\": orphanDependents and deletionPropagation cannot be both set",
        )],
    );
    let unknown = delete_with(&server, &at("x"), json!({"propagationPolicy": "x"})).await;
    unknown.invalid_options(
        "DeleteOptions",
        &[(
            "FieldValueNotSupported",
            "propagationPolicy",
            "Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        )],
    );
    assert_eq!(server.get(at("x")).await.status, 200);
}

async fn list_watch_89_orphan_dependents_false(setup: Setup) {
    let server = setup.start().await;
    held(&server, "x").await;
    let answer = delete_with(&server, &at("x"), json!({"orphanDependents": false})).await;
    assert!(answer.expect(202)["metadata"]["deletionTimestamp"].is_string());
    server.create("y", json!({})).await;
    delete_with(&server, &at("y"), json!({"orphanDependents": false})).await.ok();
}

async fn list_watch_90_the_body_beats_the_query(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&created))).await;
    let path = format!("{}?propagationPolicy=Orphan", at("x"));
    assert_eq!(delete_with(&server, &path, json!({})).await.ok()["status"], "Success");
    watch.expect_named("DELETED", "x").await;
    // Without a body the query counts: the object stays for a moment, marked.
    server.create("x", json!({})).await;
    watch.expect_named("ADDED", "x").await;
    server.delete(&path).await.ok();
    assert_eq!(watch.expect("MODIFIED").await["metadata"]["finalizers"], json!(["orphan"]));
}

async fn list_watch_84_generation_grows_with_a_deletion(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/apps/v1/namespaces/t/deployments";
    let mut deployment = deployment("d", json!({}));
    deployment["metadata"]["finalizers"] = json!([FINALIZER]);
    let created = server.post(path, &deployment).await.expect(201);
    assert_eq!(created["metadata"]["generation"], 1);
    let mut watch = server.watch(format!("{path}?watch=1&resourceVersion={}", rv(&created))).await;
    let terminating = server.delete(format!("{path}/d")).await.ok();
    assert_eq!(
        (&terminating["metadata"]["generation"], &terminating["kind"]),
        (&json!(2), &json!("Deployment"))
    );
    assert_eq!(terminating["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(terminating["metadata"]["deletionTimestamp"].is_string() && rv(&terminating) > rv(&created));
    assert_eq!(watch.expect("MODIFIED").await, terminating);
    assert_eq!(server.delete(format!("{path}/d")).await.ok(), terminating, "again is no change");
}

async fn a_pod_has_a_grace_period(setup: Setup) {
    let server = setup.start().await;
    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let path = format!("{pods}/p");
    let first = server.delete(&path).await.ok();
    assert_eq!(first["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(server.delete(&path).await.ok(), first, "no shorter period, no change");
    let shorter = delete_with(&server, &path, json!({"gracePeriodSeconds": 5})).await.ok();
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert!(
        shorter["metadata"]["deletionTimestamp"].as_str() < first["metadata"]["deletionTimestamp"].as_str()
    );
    let last = delete_with(&server, &path, json!({"gracePeriodSeconds": 0})).await.ok();
    assert_eq!(last["kind"], "Pod");
    assert_eq!(server.get(&path).await.status, 404);
}

/// `ReturnDeletedObject` of upstream's registries; DeviceTaintRules in v1 are without it.
async fn some_kinds_answer_with_the_object(setup: Setup) {
    let server = setup.start().await;
    let rule = json!({"deviceSelector": {"driver": "a.example.com"}, "taint": {"key": "a.example.com/b", "effect": "NoSchedule"}});
    for (path, object, answer) in [
        ("/apis/resource.k8s.io/v1/devicetaintrules", json!({"spec": rule}), "Status"),
        ("/apis/resource.k8s.io/v1/deviceclasses", json!({"spec": {}}), "DeviceClass"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", json!({"value": 5}), "Status"),
        ("/apis/storage.k8s.io/v1/storageclasses", json!({"provisioner": "a.example.com/b"}), "StorageClass"),
    ] {
        let mut object = object;
        object["metadata"] = json!({"name": "one"});
        server.post(path, &object).await.expect(201);
        assert_eq!(server.delete(format!("{path}/one")).await.ok()["kind"], answer, "{path}");
    }
}
