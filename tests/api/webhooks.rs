//! Admission webhooks: sections 1 and 2 of `docs/spec/admission.md`.

mod calls;
mod chain;
mod manifests;
mod matching;
mod mutation;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::TestServer;
use crate::support::webhook::{Seen, WebhookServer};

pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A webhook of one rule, with these members besides.
pub fn hook(name: &str, client_config: Value, rule: Value, more: Value) -> Value {
    let mut rule_of_all = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps"],
        "operations": ["*"]});
    let mut hook = json!({"name": format!("{name}.ex.io"), "clientConfig": client_config,
        "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    extend(&mut rule_of_all, rule);
    hook["rules"] = json!([rule_of_all]);
    extend(&mut hook, more);
    hook
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

fn configuration(name: &str, hooks: Value) -> Value {
    json!({"metadata": {"name": name}, "webhooks": hooks})
}

pub async fn configure(server: &TestServer, kind: &str, name: &str, hooks: Value) {
    server.post(kind, &configuration(name, hooks)).await.expect(201);
}

/// The answer to a review.
fn reviewed(seen: &Seen, response: Value) -> (u16, String) {
    let mut whole = json!({"uid": seen.body["request"]["uid"], "allowed": true});
    extend(&mut whole, response);
    let review = json!({"kind": "AdmissionReview", "apiVersion": seen.body["apiVersion"], "response": whole});
    (200, review.to_string())
}

fn patch(operations: Value) -> Value {
    use base64::Engine as _;
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"patch": patch, "patchType": "JSONPatch"})
}

/// A server that allows everything.
pub async fn allowing() -> WebhookServer {
    WebhookServer::start(&["hook.t.svc"], |seen| reviewed(seen, json!({}))).await
}

/// The requests of reviews.
fn requests(server: &WebhookServer) -> Vec<Value> {
    server.seen().into_iter().map(|seen| seen.body["request"].clone()).collect()
}

/// The code and the message of a failure.
fn told(failure: &Value) -> (u64, String) {
    let message = failure["message"].as_str().unwrap_or_default().to_owned();
    (failure["code"].as_u64().unwrap_or_default(), message)
}

async fn metric(client: &Client, line: &str) -> bool {
    client.get("/metrics").await.text().lines().any(|found| found.starts_with(line))
}
