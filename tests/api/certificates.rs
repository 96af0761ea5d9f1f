//! `certificatesigningrequests/approval` beside the object and its status.

use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// A PKCS #10 request for `CN=test`, in PEM.
const PEM: &str = include_str!("../fixtures/request.pem");

on_every_store! {
    approval_changes_conditions_only,
    a_decision_stays,
    status_decides_nothing,
}

async fn request(server: &TestServer) -> Value {
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.encode(PEM);
    let request = json!({"metadata": {"name": "r", "labels": {"a": "b"}},
        "spec": {"request": pem, "signerName": "example.com/s", "usages": ["client auth"]}});
    server.post(REQUESTS, &request).await.expect(201)
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Because", "message": "of me"})
}

async fn approval_changes_conditions_only(setup: Setup) {
    let server = setup.start().await;
    let created = request(&server).await;
    let mut sent = created.clone();
    sent["status"] = json!({"conditions": [condition("Approved")], "certificate": "eA=="});
    sent["spec"]["signerName"] = "example.com/other".into();
    let path = format!("{REQUESTS}/r/approval");
    let approved = server.put(format!("{path}?fieldManager=m"), &sent).await.ok();
    let stored = &approved["status"]["conditions"][0];
    assert_eq!((&stored["type"], &stored["reason"]), (&json!("Approved"), &json!("Because")));
    assert!(stored["lastUpdateTime"].is_string() && stored["lastTransitionTime"].is_string(), "{stored}");
    assert_eq!(approved["status"]["certificate"], Value::Null);
    assert_eq!(approved["spec"], created["spec"]);
    let entries = approved["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|entry| entry["manager"] == "m").expect("m");
    assert_eq!(entry["subresource"], "approval");
    assert!(entry["fieldsV1"]["f:status"]["f:conditions"].is_object(), "{entry}");
    assert_eq!(server.get(&*path).await.ok(), approved);
}

async fn a_decision_stays(setup: Setup) {
    let server = setup.start().await;
    request(&server).await;
    let path = format!("{REQUESTS}/r/approval");
    let decide = json!({"status": {"conditions": [condition("Denied")]}});
    let decided = server.patch(&*path, &decide).await.ok();
    let withdrawn = server.patch(&*path, &json!({"status": {"conditions": []}})).await.failure();
    assert_eq!(withdrawn["code"], 422, "{withdrawn}");
    let cause = &withdrawn["details"]["causes"][0];
    assert_eq!(cause["field"], "status.conditions");
    assert_eq!(cause["message"], "Forbidden: updates may not remove a condition of type \"Denied\"");
    // Neither does the object say it in another way.
    let mut sent = decided.clone();
    sent["status"] = json!({});
    assert_eq!(server.put(format!("{REQUESTS}/r"), &sent).await.ok(), decided);
}

async fn status_decides_nothing(setup: Setup) {
    let server = setup.start().await;
    request(&server).await;
    let approve = json!({"status": {"conditions": [condition("Approved")]}});
    server.patch(format!("{REQUESTS}/r/status"), &approve).await;
    let stored = server.get(format!("{REQUESTS}/r")).await.ok();
    assert_eq!(stored["status"]["conditions"].as_array().map_or(0, Vec::len), 0, "{stored}");
    let failed = json!({"status": {"conditions": [condition("Failed")]}});
    let failed = server.patch(format!("{REQUESTS}/r/status"), &failed).await.ok();
    assert_eq!(failed["status"]["conditions"][0]["type"], "Failed");
    assert!(failed["status"]["conditions"][0]["lastUpdateTime"].is_string(), "{failed}");
}
