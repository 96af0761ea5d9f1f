//! The kind, and the APIServices of what the server answers itself: 1.1 and 1.2.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::extension::API_SERVICES;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    cluster_1_names_and_priorities,
    cluster_2_local_and_remote_ones,
    cluster_3_a_local_one_is_available_at_once,
    cluster_4_built_in_versions_have_one_each,
    cluster_5_those_of_the_server_and_of_definitions,
    cluster_6_one_without_the_label_is_nobodys,
}

fn local(name: &str, group: &str, priorities: (i64, i64)) -> Value {
    json!({"metadata": {"name": name}, "spec": {"group": group, "version": "v1",
        "groupPriorityMinimum": priorities.0, "versionPriority": priorities.1}})
}

fn causes(answer: &Answer) -> Vec<(String, String)> {
    let status = answer.expect(422);
    let causes = status["details"]["causes"].as_array().expect("causes");
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "message"))).collect()
}

async fn cluster_1_names_and_priorities(setup: Setup) {
    let server = setup.start().await;
    let refused = server.post(API_SERVICES, &local("v1.other", "g", (0, 1001))).await;
    let found = causes(&refused);
    let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["metadata.name", "spec.groupPriorityMinimum", "spec.versionPriority"]);
    assert!(found[0].1.contains("must be `spec.version+\".\"+spec.group`: \"v1.g\""), "{found:?}");
    assert!(found[1].1.contains("must be positive and less than 20000"), "{found:?}");
    assert!(found[2].1.contains("must be positive and less than 1000"), "{found:?}");
    let refused = server.post(API_SERVICES, &local("v1.g", "g", (20001, 0))).await;
    assert_eq!(causes(&refused).len(), 2);
    server.post(API_SERVICES, &local("v1.g", "g", (20000, 1000))).await.expect(201);
}

async fn cluster_2_local_and_remote_ones(setup: Setup) {
    let server = setup.start().await;
    let mut bundled = local("v1.g", "g", (1, 1));
    bundled["spec"]["caBundle"] = json!("YWJj");
    let found = causes(&server.post(API_SERVICES, &bundled).await);
    assert_eq!(found[0].0, "spec.caBundle");
    assert!(found[0].1.contains("\"3 bytes\": local APIServices may not have a caBundle"), "{found:?}");
    let mut remote = local("v1.g", "g", (1, 1));
    remote["spec"]["service"] = json!({"namespace": "t", "name": "none"});
    remote["status"] = json!({"conditions": [{"type": "Available", "status": "True"}]});
    let made = server.post(API_SERVICES, &remote).await.expect(201);
    assert_eq!(made["spec"]["service"]["port"], 443);
    assert_eq!(made["status"], json!({}), "the status in the request is dropped");
}

async fn cluster_3_a_local_one_is_available_at_once(setup: Setup) {
    let server = setup.start().await;
    let made = server.post(API_SERVICES, &local("v1.g", "g", (1, 1))).await.expect(201);
    let condition = &made["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Local")));
}

async fn cluster_4_built_in_versions_have_one_each(setup: Setup) {
    let server = setup.start().await;
    let all = server.get(API_SERVICES).await.ok();
    let found: Vec<(&str, i64, i64)> = all["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| {
            assert_eq!(item["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "onstart");
            let number = |field: &str| item["spec"][field].as_i64().expect("a number");
            let name = item["metadata"]["name"].as_str().expect("a name");
            (name, number("groupPriorityMinimum"), number("versionPriority"))
        })
        .collect();
    for wanted in
        [("v1.", 18000, 1), ("v1.apps", 17800, 15), ("v2.autoscaling", 17500, 30), ("v1.batch", 17400, 15)]
    {
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    }
    assert!(found.iter().all(|(name, ..)| *name != "v1.apiregistration.k8s.io"), "{found:?}");
    let check = server.get("/readyz/autoregister-completion").await;
    assert_eq!((check.status, check.text()), (200, "ok".to_owned()));
}

fn groups(apis: &Value) -> Vec<&str> {
    apis["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| group["name"].as_str().expect("a name"))
        .collect()
}

fn definition(served: bool) -> Value {
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version("v1", served, false), version("v2", true, true)]}})
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Waits until there is an APIService that is not this one, or none.
async fn changed(server: &TestServer, name: &str, before: &str) -> Option<Value> {
    loop {
        let found = server.get(format!("{API_SERVICES}/{name}")).await;
        if found.status == 404 {
            return None;
        }
        let found = found.ok();
        if found["metadata"]["uid"] != before {
            return Some(found);
        }
        tokio::task::yield_now().await;
    }
}

async fn present(server: &TestServer, name: &str) -> Value {
    loop {
        let found = server.get(format!("{API_SERVICES}/{name}")).await;
        if found.status == 200 {
            return found.ok();
        }
        tokio::task::yield_now().await;
    }
}

async fn gone(server: &TestServer, name: &str) {
    while server.get(format!("{API_SERVICES}/{name}")).await.status != 404 {
        tokio::task::yield_now().await;
    }
}

async fn cluster_5_those_of_the_server_and_of_definitions(setup: Setup) {
    let server = setup.start().await;
    server.delete(format!("{API_SERVICES}/v1.apps")).await.ok();
    assert!(!groups(&server.get("/apis").await.ok()).contains(&"apps"));
    server.get("/apis/apps/v1/deployments").await.ok();
    server.post(DEFINITIONS, &definition(true)).await.expect(201);
    let made = present(&server, "v1.ex.io").await;
    assert_eq!(made["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "true"}));
    assert_eq!(
        made["spec"],
        json!({"group": "ex.io", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100})
    );
    server.delete(format!("{API_SERVICES}/v1.ex.io")).await.ok();
    let uid = made["metadata"]["uid"].as_str().expect("a uid").to_owned();
    while changed(&server, "v1.ex.io", &uid).await.is_none() {}
    let patch = json!({"spec": {"versions": definition(false)["spec"]["versions"]}});
    server.patch(format!("{DEFINITIONS}/widgets.ex.io"), &patch).await.ok();
    gone(&server, "v1.ex.io").await;
    server.get(format!("{API_SERVICES}/v2.ex.io")).await.ok();
    server.stop().await;
    let server = setup.start().await;
    server.get(format!("{API_SERVICES}/v1.apps")).await.ok();
    assert!(groups(&server.get("/apis").await.ok()).contains(&"apps"));
    server.get(format!("{API_SERVICES}/v2.ex.io")).await.ok();
}

async fn cluster_6_one_without_the_label_is_nobodys(setup: Setup) {
    let server = setup.start().await;
    server.post(DEFINITIONS, &definition(true)).await.expect(201);
    for name in ["v1.ex.io", "v2.ex.io"] {
        present(&server, name).await;
    }
    let patch = json!({"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}}});
    server.patch(format!("{API_SERVICES}/v1.ex.io"), &patch).await.ok();
    server.delete(format!("{DEFINITIONS}/widgets.ex.io")).await.ok();
    gone(&server, "v2.ex.io").await;
    server.get(format!("{API_SERVICES}/v1.ex.io")).await.ok();
}
