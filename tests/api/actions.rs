//! What is sent and never stored: reviews and bindings pass the chain of admission as the creation of such an object
//! (`docs/spec/admission.md`, section 1.2). The store does not matter to them, so the tests run in memory.

use rowplane::api::admission::Settings;
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::server::{Setup, TestServer};

const SUBJECT: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const TOKEN: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn local(namespace: &str) -> (String, Value) {
    let path = format!("/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews");
    let attributes = json!({"namespace": namespace, "verb": "get", "resource": "pods"});
    (path, json!({"spec": {"user": "u", "resourceAttributes": attributes}}))
}

fn subject() -> Value {
    json!({"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}})
}

async fn start(enabled: &[&str]) -> TestServer {
    let mut setup = Setup::new(Database::memory());
    setup.admission = Settings::new(enabled, &["ServiceAccount"]).expect("known plugins");
    setup.start().await
}

#[track_caller]
fn refused(failure: &Value, code: u16, text: &str) {
    assert_eq!((&failure["code"], failure["message"].as_str()), (&json!(code), Some(text)), "{failure}");
}

/// How many creates have passed, or have not, through a half of the chain.
async fn passes(server: &TestServer, half: &str, rejected: bool) -> u64 {
    let text = server.get("/metrics").await.text();
    let labels = format!("type=\"{half}\",operation=\"CREATE\",rejected=\"{rejected}\"");
    let line = format!("apiserver_admission_step_admission_duration_seconds_count{{{labels}}} ");
    text.lines().find_map(|one| one.strip_prefix(&line)?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn reviews_pass_the_plugins_that_are_on() {
    let server = start(&["NamespaceExists", "OwnerReferencesPermissionEnforcement"]).await;
    let before = (passes(&server, "admit", false).await, passes(&server, "validate", true).await);
    let (path, review) = local("nowhere");
    refused(&server.post(path, &review).await.failure(), 404, "namespaces \"nowhere\" not found");
    let after = (passes(&server, "admit", false).await, passes(&server, "validate", true).await);
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));

    // The rules of the kind come first.
    let (path, _) = local("nowhere");
    assert_eq!(server.post(path, &json!({"spec": {"user": "u"}})).await.status, 422);
    let (path, review) = local("t");
    let answer = server.post(format!("{path}?dryRun=All"), &review).await.expect(201);
    assert_eq!(
        (&answer["metadata"]["namespace"], &answer["status"]),
        (&json!("t"), &json!({"allowed": false}))
    );
    let other = json!({"metadata": {"namespace": "other"}, "spec": review["spec"]});
    server
        .post(path, &other)
        .await
        .bad_request("the namespace of the provided object does not match the namespace sent on the request");

    // Metadata must be empty, but a uid and a time are dropped before anybody looks.
    let mut stamped = subject();
    stamped["metadata"] = json!({"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let answer = server.post(SUBJECT, &stamped).await.expect(201);
    assert!(answer["metadata"]["uid"].is_null(), "{answer}");
    stamped["metadata"] = json!({"name": "n"});
    assert_eq!(server.post(SUBJECT, &stamped).await.status, 422);

    let alice = server.token("alice-token");
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "blockOwnerDeletion": true});
    let owned = json!({"metadata": {"name": "x", "ownerReferences": [owner, owner]}});
    let text = "selfsubjectreviews.authentication.k8s.io \"x\" is forbidden: cannot set blockOwnerDeletion if an ownerReference \
                refers to a resource you can't set finalizers on: , <nil>";
    let answer = alice.post(SELF, &owned).await;
    assert!(answer.header("warning").is_some_and(|text| text.contains("duplicate entries;")), "{answer:?}");
    refused(&answer.failure(), 403, text);
    server.post(SELF, &owned).await.expect(201);
}

/// 3. NamespaceLifecycle tells nobody by a review whether a namespace exists, or ends; NamespaceAutoProvision makes it.
#[tokio::test]
async fn admission_3_a_review_of_rights_needs_no_namespace_but_may_make_one() {
    let plain = start(&[]).await;
    let (path, review) = local("nowhere");
    plain.post(path, &review).await.expect(201);
    let account = json!({"metadata": {"name": "sa", "finalizers": ["ex.io/stay"]}});
    plain.post("/api/v1/namespaces/t/serviceaccounts", &account).await.expect(201);
    plain.delete("/api/v1/namespaces/t").await.ok();
    let (path, review) = local("t");
    plain.post(path, &review).await.expect(201);
    let failure = plain.post("/api/v1/namespaces/t/serviceaccounts/sa/token", &json!({})).await.failure();
    let text = "serviceaccounts \"sa\" is forbidden: unable to create new content in namespace t because it is being terminated";
    refused(&failure, 403, text);

    let server = start(&["NamespaceAutoProvision"]).await;
    let (path, review) = local("new");
    server.post(format!("{path}?dryRun=All"), &review).await.expect(201);
    assert_eq!(server.get("/api/v1/namespaces/new").await.status, 404);
    server.post(path, &review).await.expect(201);
    server.get("/api/v1/namespaces/new").await.ok();
}

#[tokio::test]
async fn a_server_that_denies_everything_answers_no_review() {
    let mut setup = Setup::new(Database::memory());
    setup.start().await.stop().await;
    setup.admission = Settings::new(&["AlwaysDeny"], &[]).expect("known plugins");
    let server = setup.start_empty().await;
    let why = "admission control is denying all modifications";
    // Even a question that could not be answered.
    for (path, review, resource) in [
        (SUBJECT, json!({}), "subjectaccessreviews.authorization.k8s.io"),
        (TOKEN, json!({"spec": {"token": "root-token"}}), "tokenreviews.authentication.k8s.io"),
        (SELF, json!({}), "selfsubjectreviews.authentication.k8s.io"),
    ] {
        let text = format!("{resource} \"Unknown\" is forbidden: {why}");
        refused(&server.post(path, &review).await.failure(), 403, &text);
    }
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    let text = format!("bindings \"p\" is forbidden: {why}");
    refused(&server.post("/api/v1/namespaces/t/bindings", &binding).await.failure(), 403, &text);
}

/// A policy that wants to see `bindings` sees no `pods/binding`, and the other way round.
#[tokio::test]
async fn bindings_are_a_resource_of_their_own() {
    let server = start(&[]).await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["bindings"]});
    let condition = "has(object.metadata.uid) || request.kind.kind != 'Binding' || has(request.subResource)";
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": condition, "message": "no"}]}});
    server.post(format!("{group}/validatingadmissionpolicies"), &policy).await.expect(201);
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    server.post(format!("{group}/validatingadmissionpolicybindings"), &binding).await.expect(201);

    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let bind = json!({"metadata": {"name": "q", "uid": "of nobody"}, "target": {"name": "n"}});
    let text =
        "bindings \"q\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
    let failure = server.post("/api/v1/namespaces/t/bindings", &bind).await.failure();
    refused(&failure, 422, text);
    server.delete(format!("{group}/validatingadmissionpolicies/p")).await.ok();
    // The uid of a body without a path is the client's, and is dropped.
    server.post("/api/v1/namespaces/t/bindings", &bind).await.expect(201);
    assert_eq!(server.get(format!("{pods}/q")).await.ok()["spec"]["nodeName"], "n");
}
