//! Server-side apply over HTTPS: `docs/spec/patch-apply.md`, assertions 38 to 67. What an apply makes of an object is in
//! `testdata/apply`; here is what is around it.

use futures_util::future::join;
use http::Method;
use serde_json::{Value, json};

use super::managers::{applied_spec, defaulted_spec, entry, put_as};
use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const HPAS: &str = "namespaces/t/horizontalpodautoscalers/h";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

on_every_store! {
    p38_p40_creation_repetition_and_sharing,
    p39_names,
    p41_p45_conflicts,
    p46_a_conflict_with_an_update,
    p51_p52_what_does_not_fit,
    p54_what_is_no_configuration,
    numbers_of_a_configuration_lose_their_spelling,
    p57_status,
    p61_versions,
    p62_kubectl_moves_to_the_server,
    p63_preconditions,
    p64_creation_needs_its_own_permission,
    p66_everything_given_up,
    p67_two_create_at_once,
    yaml_and_dry_run,
    managers_move_by_json_patch,
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

async fn apply(server: &TestServer, path: &str, manager: &str, config: &Value) -> Answer {
    let joint = if path.contains('?') { '&' } else { '?' };
    let request = server.request(Method::PATCH, format!("{path}{joint}fieldManager={manager}"));
    request.body("application/apply-patch+yaml", config.to_string()).await
}

/// Applies to the ConfigMap `c`.
async fn apply_data(server: &TestServer, manager: &str, data: Value) -> Answer {
    apply(server, &format!("{CONFIGMAPS}/c"), manager, &config(data)).await
}

fn applied<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    entry(object, manager, "Apply", "").map(|entry| &entry["fieldsV1"])
}

async fn p38_p40_creation_repetition_and_sharing(setup: Setup) {
    let server = setup.start().await;
    let created = apply_data(&server, "a", json!({"a": "1"})).await.expect(201);
    assert_eq!(applied(&created, "a"), Some(&json!({"f:data": {"f:a": {}}})));
    assert_eq!(created["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
    assert_eq!(apply_data(&server, "a", json!({"a": "1"})).await.ok(), created);
    let shared = apply_data(&server, "b", json!({"a": "1"})).await.ok();
    assert!(rv(&shared) > rv(&created));
    assert_eq!(applied(&shared, "a"), applied(&shared, "b"));
    assert_eq!(apply_data(&server, "b", json!({"a": "1"})).await.ok(), shared);
}

async fn p39_names(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let mut nameless = config(json!({"a": "1"}));
    nameless["metadata"] = json!({});
    let text = "the name of the object (c based on URL) was undeterminable: name must be provided";
    apply(&server, &c, "a", &nameless).await.bad_request(text);
    apply_data(&server, "a", json!({"a": "1"})).await.expect(201);
    apply(&server, &c, "a", &nameless).await.ok();
}

async fn p41_p45_conflicts(setup: Setup) {
    let server = setup.start().await;
    apply_data(&server, "a", json!({"x": "1"})).await.expect(201);
    let cause = |manager: &str, field: &str| {
        let message = format!("conflict with \"{manager}\"");
        json!({"reason": "FieldManagerConflict", "message": message, "field": field})
    };
    let text = "Apply failed with 1 conflict: conflict with \"a\": .data.x";
    let conflict = apply_data(&server, "b", json!({"x": "2"})).await;
    conflict.fails(409, "Conflict", text, json!({"causes": [cause("a", ".data.x")]}));
    apply_data(&server, "b", json!({"y": "1"})).await.ok();
    let text =
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\nconflicts with \"b\":\n- .data.y";
    let causes = json!({"causes": [cause("a", ".data.x"), cause("b", ".data.y")]});
    apply_data(&server, "c", json!({"x": "2", "y": "2"})).await.fails(409, "Conflict", text, causes);
    let forced = format!("{CONFIGMAPS}/c?force=true");
    let taken = apply(&server, &forced, "c", &config(json!({"x": "2"}))).await.ok();
    assert_eq!(taken["data"], json!({"x": "2", "y": "1"}));
    assert_eq!(applied(&taken, "a"), None);
}

async fn p46_a_conflict_with_an_update(setup: Setup) {
    let server = setup.start().await;
    let web = deployment("web", json!({"replicas": 1, "paused": true}));
    server.post(format!("{DEPLOYMENTS}?fieldManager=k"), &web).await.expect(201);
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3}});
    let path = format!("{DEPLOYMENTS}/web");
    let conflict = apply(&server, &path, "a", &config).await.failure();
    assert_eq!(
        conflict["message"],
        "Apply failed with 1 conflict: conflict with \"k\" using apps/v1: .spec.replicas"
    );
    let forced = apply(&server, &format!("{path}?force=1"), "a", &config).await.ok();
    assert_eq!(forced["spec"]["replicas"], 3);
    let left = entry(&forced, "k", "Update", "").expect("an entry");
    let mut spec = defaulted_spec();
    spec["f:paused"] = json!({});
    assert_eq!(left["fieldsV1"], json!({"f:spec": spec}));
}

async fn p51_p52_what_does_not_fit(setup: Setup) {
    let server = setup.start().await;
    let mut twice = config(json!({}));
    twice["metadata"]["finalizers"] = json!(["ex.io/x", "ex.io/x"]);
    let text = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .metadata.finalizers: duplicate \
                entries for key [=\"ex.io/x\"]";
    apply(&server, &format!("{CONFIGMAPS}/c"), "a", &twice).await.fails(500, "", text, Value::Null);
    let unknown = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "t"}, "spec": {"foo": 1}});
    let text = "failed to create typed patch object (t/web; apps/v1, Kind=Deployment): .spec.foo: field not declared \
                in schema";
    for query in ["", "?fieldValidation=Ignore"] {
        let answer = apply(&server, &format!("{DEPLOYMENTS}/web{query}"), "a", &unknown).await;
        answer.fails(500, "", text, Value::Null);
    }
}

async fn p54_what_is_no_configuration(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let kind = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind});
    let other = apply(&server, &c, "a", &kind("apps/v1", "StatefulSet")).await;
    other.bad_request("invalid object type: apps/v1, Kind=StatefulSet");
    apply(&server, &c, "a", &json!({})).await.bad_request("invalid object type: /, Kind=");
    let mut managed = config(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    apply(&server, &c, "a", &managed).await.bad_request("metadata.managedFields must be nil");
    let request = server.request(Method::PATCH, format!("{c}?fieldManager=a"));
    let malformed = request.body("application/apply-patch+yaml", "a: b: c").await;
    malformed.bad_request("error encoding patch: yaml: mapping values are not allowed in this context");
    let request = server.request(Method::PATCH, format!("{c}?fieldManager=a"));
    let malformed = request.body("application/apply-patch+yaml", " {\"a\":").await;
    malformed.bad_request(
        "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content",
    );
    let request = server.request(Method::PATCH, format!("{c}?fieldManager=a"));
    let list = request.body("application/apply-patch+yaml", "- a").await.failure();
    assert!(list["message"].as_str().expect("text").starts_with("error decoding patch: "), "{list}");
}

/// A configuration is YAML also where it is JSON.
async fn numbers_of_a_configuration_lose_their_spelling(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/t/leases/l?fieldManager=a";
    for (spelled, wanted, status) in [("15.0", 15, 201), ("2e1", 20, 200)] {
        let body = format!(
            r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"l"}},"spec":{{"leaseDurationSeconds":{spelled}}}}}"#
        );
        let lease = server.request(Method::PATCH, path).body("application/apply-patch+yaml", body).await;
        assert_eq!(lease.expect(status)["spec"]["leaseDurationSeconds"], wanted, "{spelled}");
    }
}

async fn p57_status(setup: Setup) {
    let server = setup.start().await;
    let web = format!("{DEPLOYMENTS}/web");
    let config = |replicas: u64| {
        let mut config = deployment("web", json!({"replicas": replicas}));
        config["status"] = json!({"replicas": replicas, "readyReplicas": replicas});
        config
    };
    let missing = apply(&server, &format!("{web}/status"), "s", &config(1)).await;
    assert_eq!(missing.failure()["code"], 404);
    let created = apply(&server, &web, "a", &config(1)).await.expect(201);
    assert_eq!(created["status"].get("readyReplicas"), None);
    let mut spec = applied_spec();
    spec["f:replicas"] = json!({});
    assert_eq!(applied(&created, "a"), Some(&json!({"f:spec": spec})));
    let status = apply(&server, &format!("{web}/status"), "s", &config(2)).await.ok();
    assert_eq!((&status["spec"]["replicas"], &status["status"]["readyReplicas"]), (&json!(1), &json!(2)));
    let owned = &entry(&status, "s", "Apply", "status").expect("an entry")["fieldsV1"];
    assert_eq!(owned, &json!({"f:status": {"f:readyReplicas": {}, "f:replicas": {}}}));
}

async fn p61_versions(setup: Setup) {
    let server = setup.start().await;
    let path = |version: &str| format!("/apis/autoscaling/{version}/{HPAS}");
    let config = |version: &str, most: u64| {
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"}, "spec": {"maxReplicas": most, "minReplicas": 1,
                "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}})
    };
    apply(&server, &path("v2"), "a", &config("v2", 3)).await.expect(201);
    let conflict = apply(&server, &path("v1"), "b", &config("v1", 5)).await.failure();
    assert_eq!(conflict["message"], "Apply failed with 1 conflict: conflict with \"a\": .spec.maxReplicas");
    let moved = apply(&server, &path("v1"), "a", &config("v1", 3)).await.ok();
    let managers = moved["metadata"]["managedFields"].as_array().expect("managers");
    assert_eq!(managers.len(), 1, "{moved}");
    assert_eq!(managers[0]["apiVersion"], "autoscaling/v1");
    assert_eq!(moved["spec"]["maxReplicas"], 3);
}

async fn p62_kubectl_moves_to_the_server(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let record = format!("{}\n", config(json!({"k": "1", "l": "1"})));
    let mut object = config(json!({"k": "1", "l": "1"}));
    object["metadata"]["annotations"] = json!({ANNOTATION: record});
    server.post(format!("{CONFIGMAPS}?fieldManager=kubectl-client-side-apply"), &object).await.expect(201);
    let wanted = json!({"k": "2", "l": "1"});
    assert_eq!(apply_data(&server, "other", wanted.clone()).await.failure()["code"], 409);
    let moved = apply_data(&server, "kubectl", wanted.clone()).await.ok();
    assert_eq!(moved["data"], wanted);
    let record = moved["metadata"]["annotations"][ANNOTATION].as_str().expect("a record");
    // Go prints maps, sorted.
    let applied = json!({"apiVersion": "v1", "data": wanted, "kind": "ConfigMap", "metadata": {"name": "c"}});
    assert_eq!(record, format!("{applied}\n"));
    // A value that is not the recorded one is somebody else's.
    put_as(&server, &c, "drift", {
        let mut drifted = moved.clone();
        drifted["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        drifted["data"]["l"] = "9".into();
        drifted
    })
    .await
    .ok();
    let conflict = apply_data(&server, "kubectl", json!({"k": "2", "l": "3"})).await.failure();
    assert_eq!(
        conflict["message"],
        "Apply failed with 1 conflict: conflict with \"drift\" using v1: .data.l"
    );
}

async fn p63_preconditions(setup: Setup) {
    let server = setup.start().await;
    let with = |field: &str, value: &Value| {
        let mut config = config(json!({"k": "1"}));
        config["metadata"][field] = value.clone();
        config
    };
    let c = format!("{CONFIGMAPS}/c");
    let text = "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided object specified uid x, \
                and no existing object was found";
    let details = json!({"name": "c", "kind": "configmaps"});
    apply(&server, &c, "a", &with("uid", &"x".into())).await.fails(409, "Conflict", text, details);
    let created = apply(&server, &c, "a", &with("resourceVersion", &"1".into())).await.expect(201);
    let stale = apply(&server, &c, "a", &with("resourceVersion", &"1".into())).await;
    assert_eq!(stale.failure()["code"], 409);
    let metadata = &created["metadata"];
    let mut both = with("resourceVersion", &metadata["resourceVersion"]);
    both["metadata"]["uid"] = metadata["uid"].clone();
    let found = apply(&server, &c, "a", &both).await.ok();
    assert_eq!(applied(&found, "a"), Some(&json!({"f:data": {"f:k": {}}})));
}

async fn p64_creation_needs_its_own_permission(setup: Setup) {
    let server = setup.start().await;
    // The user that nothing is permitted to is refused before; who may patch but not create is for RBAC.
    let request = server.anonymous().request(Method::PATCH, format!("{CONFIGMAPS}/c?fieldManager=a"));
    let refused = request.body("application/apply-patch+yaml", config(json!({})).to_string()).await;
    assert!([401, 403].contains(&refused.status), "{refused:?}");
}

async fn p66_everything_given_up(setup: Setup) {
    let server = setup.start().await;
    apply_data(&server, "a", json!({"x": "1"})).await.expect(201);
    apply_data(&server, "b", json!({"y": "1"})).await.ok();
    let mut bare = config(json!({}));
    bare.as_object_mut().expect("an object").remove("data");
    let left = apply(&server, &format!("{CONFIGMAPS}/c"), "a", &bare).await.ok();
    assert_eq!((&left["data"], applied(&left, "a")), (&json!({"y": "1"}), None));
}

async fn p67_two_create_at_once(setup: Setup) {
    let server = setup.start().await;
    let (one, other) =
        join(apply_data(&server, "a", json!({"x": "1"})), apply_data(&server, "b", json!({"y": "1"}))).await;
    let mut codes = [one.status, other.status];
    codes.sort_unstable();
    assert_eq!(codes, [200, 201]);
    let found = server.get(format!("{CONFIGMAPS}/c")).await.ok();
    assert_eq!(found["data"], json!({"x": "1", "y": "1"}));
    assert_eq!(applied(&found, "a"), Some(&json!({"f:data": {"f:x": {}}})));
    assert_eq!(applied(&found, "b"), Some(&json!({"f:data": {"f:y": {}}})));
}

async fn yaml_and_dry_run(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let yaml =
        "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  k: one\n  k: \"2\"\n";
    let apply = |query: &str| {
        let request = server.request(Method::PATCH, format!("{c}?fieldManager=a{query}"));
        request.body("application/apply-patch+yaml", yaml)
    };
    let tried = apply("&dryRun=All").await.expect(201);
    assert_eq!(tried["data"]["k"], "2");
    assert_eq!(server.get(&c).await.status, 404);
    assert_eq!(apply("").await.expect(201)["data"]["k"], "2");
}

async fn managers_move_by_json_patch(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("c", json!({"k": "1"})).await;
    let mut managers = created["metadata"]["managedFields"].clone();
    managers[0]["manager"] = "kubectl".into();
    managers[0]["operation"] = "Apply".into();
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": managers},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": created["metadata"]["resourceVersion"]},
    ]);
    let request = server.request(Method::PATCH, format!("{CONFIGMAPS}/c?fieldManager=kubectl"));
    let moved = request.body("application/json-patch+json", patch.to_string()).await.ok();
    assert_eq!(moved["metadata"]["managedFields"], managers);
}
