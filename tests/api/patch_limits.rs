//! Patches that are large, late or of the wrong type: `docs/spec/patch-apply.md`, assertions 6, 11, 14, 18 and 26.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

on_every_store! {
    patch_apply_6_limits,
    patch_apply_11_the_last_finalizer,
    patch_apply_14_places_that_are_not_there,
    patch_apply_18_values_of_another_type,
    patch_apply_26_lists_that_strategic_merge_patches_know,
}

async fn patch(server: &TestServer, path: &str, format: &str, body: &Value) -> Answer {
    server.request(Method::PATCH, path).body(format, body.to_string()).await
}

async fn deployment(server: &TestServer, container: Value) -> String {
    let object = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}});
    server.post(DEPLOYMENTS, &object).await.expect(201);
    format!("{DEPLOYMENTS}/web")
}

async fn patch_apply_6_limits(setup: Setup) {
    let server = setup.start().await;
    let stored = server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    let step = json!({"op": "test", "path": "/data/a", "value": "1"});
    let many = |count: usize| Value::Array(vec![step.clone(); count]);
    let text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    patch(&server, &c, JSON, &many(10_001)).await.fails(413, "RequestEntityTooLarge", text, Value::Null);
    assert_eq!(rv(&patch(&server, &c, JSON, &many(10_000)).await.ok()), rv(&stored));
    let large = server.request(Method::PATCH, &c).body(MERGE, vec![b' '; 3 * 1024 * 1024 + 1]).await;
    large.fails(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", Value::Null);
}

async fn patch_apply_11_the_last_finalizer(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let held = json!({"metadata": {"name": "c", "finalizers": ["ex.io/a"]}});
    server.post(CONFIGMAPS, &held).await.expect(201);
    server.delete(&*c).await.ok();
    patch(&server, &c, MERGE, &json!({"metadata": {"finalizers": []}})).await.ok();
    assert_eq!(server.get(&*c).await.failure()["code"], 404);
}

async fn patch_apply_14_places_that_are_not_there(setup: Setup) {
    let server = setup.start().await;
    let web = deployment(&server, json!({"name": "c", "image": "i"})).await;
    let step = json!([{"op": "replace", "path": "/spec/template/spec/containers/5/image", "value": "x"}]);
    let text = "the server rejected our request due to an error in our request";
    patch(&server, &web, JSON, &step).await.fails(422, "Invalid", text, json!({}));
}

async fn patch_apply_18_values_of_another_type(setup: Setup) {
    let server = setup.start().await;
    let web = deployment(&server, json!({"name": "c", "image": "i"})).await;
    let failure = patch(&server, &web, MERGE, &json!({"spec": {"replicas": "3"}})).await.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(422), &json!("Invalid")));
    let causes = failure["details"]["causes"].as_array().expect("causes");
    assert_eq!((causes.len(), &causes[0]["field"]), (1, &json!("patch")));
    let text = failure["message"].as_str().expect("a message");
    assert!(text.starts_with(" \"\" is invalid: patch: Invalid value: \"{"), "{text}");
}

async fn patch_apply_26_lists_that_strategic_merge_patches_know(setup: Setup) {
    let server = setup.start().await;
    let ports = json!([{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]);
    let web = deployment(&server, json!({"name": "c", "image": "i", "ports": ports})).await;
    let of = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let named = of(json!({"containers": [{"name": "c", "ports": [{"containerPort": 53, "name": "n"}]}]}));
    let patched = patch(&server, &web, STRATEGIC, &named).await.ok();
    let ports = &patched["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!((&ports[0]["name"], &ports[1]["name"]), (&json!("n"), &Value::Null));
    for key in ["a", "b"] {
        let tolerations = of(json!({"tolerations": [{"key": key, "operator": "Exists"}]}));
        let patched = patch(&server, &web, STRATEGIC, &tolerations).await.ok();
        let tolerations = patched["spec"]["template"]["spec"]["tolerations"].as_array().expect("tolerations");
        assert_eq!((tolerations.len(), &tolerations[0]["key"]), (1, &json!(key)));
    }
}
