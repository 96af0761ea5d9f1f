//! Authorizers that a file names, webhooks and policies (assertions 72 to 75 of `docs/spec/auth.md`).

use std::path::PathBuf;

use rowplane::auth::abac::Abac;
use rowplane::auth::authorization_config;
use rowplane::auth::authorizer::Mode;
use rowplane::server::config::{Authorization, SettingsFile};
use serde_json::{Value, json};

use crate::support::conversion_hook::Hook;
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn users(setup: &Setup) {
    let lines = "root-token,root,u-2,system:masters\nalice-token,alice,u-1,devs\nbob-token,bob,,\n";
    std::fs::write(setup.file("tokens.csv"), lines).expect("write");
}

/// A kubeconfig that names the hook.
fn kubeconfig(setup: &Setup, hook: &Hook) -> PathBuf {
    let path = setup.file("hook.kubeconfig");
    let cluster = json!({
        "server": format!("https://{}/authorize", hook.address),
        "certificate-authority-data": hook.ca_bundle,
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hook",
        "contexts": [{"name": "hook", "context": {"cluster": "hook", "user": ""}}],
        "clusters": [{"name": "hook", "cluster": cluster}],
    });
    std::fs::write(&path, kubeconfig.to_string()).expect("write");
    path
}

fn webhook(name: &str, kubeconfig: &PathBuf, more: Value) -> Value {
    let mut webhook = json!({
        "timeout": "30s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
    });
    webhook.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"type": "Webhook", "name": name, "webhook": webhook})
}

fn write(setup: &Setup, authorizers: &[Value]) {
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    });
    setup.replace("authorization.yaml", &file.to_string());
}

/// Lets alice and bob read ConfigMaps.
async fn grant(server: &TestServer) {
    let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    server.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let subjects = json!([{"kind": "User", "name": "alice"}, {"kind": "User", "name": "bob"}]);
    let role = json!({"kind": "ClusterRole", "name": "reader"});
    let binding = json!({"metadata": {"name": "reader"}, "roleRef": role, "subjects": subjects});
    server.post(format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
}

fn says(hook: &Hook, status: Value) {
    hook.lie(move |review, _| {
        json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "status": status})
    });
}

async fn metric(server: &TestServer, line: &str) -> bool {
    let text = server.get("/metrics").await.text();
    text.lines().any(|found| found.starts_with(line))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_72_73_74_75_a_file_names_authorizers_and_is_read_again() {
    let (mut setup, hook) = (Setup::new(Database::memory()), Hook::start().await);
    users(&setup);
    let kubeconfig = kubeconfig(&setup, &hook);
    let but_bob = json!({"matchConditions": [{"expression": "request.user != 'bob'"}]});
    let rbac = json!({"type": "RBAC", "name": "rbac"});
    write(&setup, &[webhook("one", &kubeconfig, but_bob.clone()), rbac.clone()]);
    let path = setup.file("authorization.yaml");
    let (authorizers, text) = authorization_config::load(&path).expect("a configuration");
    let file = Some(SettingsFile { path, text });
    setup.authorization = Authorization { authorizers, policies: Abac::default(), file };
    says(&hook, json!({"allowed": false, "denied": true, "reason": "not today"}));
    let server = setup.start().await;
    grant(&server).await;
    let (alice, bob) = (server.token("alice-token"), server.token("bob-token"));
    assert!(hook.seen().is_empty(), "masters are asked about nowhere");

    // 72: a webhook that denies ends it, with its reason, though RBAC would allow.
    let selected = format!("{CONFIGMAPS}?labelSelector=a%20in%20(b,c)&fieldSelector=metadata.name=x");
    let refused = alice.get(&selected).await.failure();
    assert_eq!(
        refused["message"],
        "configmaps \"x\" is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \"\" in the \
         namespace \"t\": not today"
    );
    let asked = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {
            "user": "alice",
            "uid": "u-1",
            "groups": ["devs", "system:authenticated"],
            "resourceAttributes": {
                "namespace": "t", "verb": "list", "version": "v1", "resource": "configmaps", "name": "x",
                "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]},
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
            },
        },
        "status": {"allowed": false},
    });
    assert_eq!(hook.seen(), [asked]);
    // 74: an equal question is not asked again.
    assert_eq!(alice.get(&selected).await.status, 403);
    assert!(hook.seen().is_empty());
    // 73: about bob the webhook is not asked.
    assert_eq!(bob.get(CONFIGMAPS).await.status, 200);
    assert!(hook.seen().is_empty());
    // Without an opinion RBAC decides; it allows what it likes, also what RBAC does not.
    says(&hook, json!({"allowed": false, "reason": "hm"}));
    assert_eq!(alice.get(CONFIGMAPS).await.status, 200);
    assert_eq!(alice.get(format!("{CONFIGMAPS}/x")).await.status, 404);
    let refused = alice.get("/api/v1/secrets").await.failure();
    assert!(
        refused["message"].as_str().expect("a message").ends_with("at the cluster scope: one: hm"),
        "{refused}"
    );
    says(&hook, json!({"allowed": true}));
    assert_eq!(alice.get("/api/v1/nodes").await.status, 200);
    assert_eq!(alice.get("/metrics").await.status, 200);
    hook.seen();
    // Neither yes nor no is an answer of both.
    says(&hook, json!({"allowed": true, "denied": true}));
    let both = alice.get("/api/v1/pods").await;
    assert_eq!((both.status, both.text()), (500, "Internal Server Error: \"/api/v1/pods\": webhook subject access review returned both allow and deny response\n".to_owned()));

    // 72: while it cannot be asked, RBAC may allow; else nobody knows.
    hook.answer(401, "");
    assert_eq!(alice.get(format!("{CONFIGMAPS}/y")).await.status, 404);
    let unknown = alice.get("/api/v1/services").await;
    assert_eq!(unknown.status, 500);
    assert!(
        unknown.text().contains("the server has asked for the client to provide credentials"),
        "{}",
        unknown.text()
    );
    for line in [
        "apiserver_authorization_decisions_total{type=\"Webhook\",name=\"one\",decision=\"denied\"}",
        "apiserver_authorization_decisions_total{type=\"RBAC\",name=\"rbac\",decision=\"allowed\"}",
        "apiserver_authorization_webhook_evaluations_total{name=\"one\",result=\"success\"}",
        "apiserver_authorization_webhook_evaluations_fail_open_total{name=\"one\",result=\"error\"} 2",
        "apiserver_authorization_match_condition_exclusions_total{type=\"Webhook\",name=\"one\"} 1",
        "authorization_attempts_total{result=\"denied\"}",
        "authorization_attempts_total{result=\"error\"} 2",
    ] {
        assert!(metric(&server, line).await, "{line}: {}", server.get("/metrics").await.text());
    }
    let rules = json!({"spec": {"namespace": "t"}});
    let rules = bob.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &rules).await;
    let status = rules.expect(201)["status"].clone();
    assert_eq!(status["incomplete"], true);
    assert_eq!(status["evaluationError"], "webhook authorizer does not support user rule resolution");

    // 75: a webhook that denies when it cannot be asked, without a restart.
    let strict = webhook("two", &kubeconfig, json!({"failurePolicy": "Deny"}));
    write(&setup, &[strict.clone(), rbac.clone()]);
    server.reload_credentials().await;
    assert_eq!(bob.get(CONFIGMAPS).await.status, 500);
    // An erroneous condition is a failure, too (73).
    let erroneous = json!({"matchConditions": [{"expression": "request.nonResourceAttributes.path == '/'"}]});
    write(&setup, &[webhook("three", &kubeconfig, erroneous), rbac.clone()]);
    server.reload_credentials().await;
    assert_eq!(bob.get(CONFIGMAPS).await.status, 200);
    assert!(bob.get("/api/v1/pods").await.text().contains("no such key: nonResourceAttributes"));
    // What may not be changes nothing.
    for wrong in [
        vec![strict.clone()],
        vec![rbac.clone(), json!({"type": "RBAC", "name": "rbac"})],
        vec![rbac.clone(), json!({"type": "Node", "name": "node"})],
    ] {
        write(&setup, &wrong);
        server.reload_credentials().await;
        assert_eq!(bob.get(CONFIGMAPS).await.status, 200);
        assert!(bob.get("/api/v1/pods").await.text().contains("no such key"));
    }
    write(&setup, &[rbac]);
    server.reload_credentials().await;
    assert_eq!(bob.get("/api/v1/pods").await.status, 403);
    for line in [
        "apiserver_authorization_config_controller_automatic_reloads_total{status=\"success\",apiserver_id_hash=\"\"} 3",
        "apiserver_authorization_config_controller_automatic_reloads_total{status=\"failure\",apiserver_id_hash=\"\"} 3",
        "apiserver_authorization_config_controller_last_config_info{apiserver_id_hash=\"\",hash=\"sha256:",
    ] {
        assert!(metric(&server, line).await, "{line}: {}", server.get("/metrics").await.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_in_lines_decide() {
    let mut setup = Setup::new(Database::memory());
    users(&setup);
    let spec = json!({"user": "alice", "readonly": true, "namespace": "t", "resource": "configmaps"});
    let policy =
        json!({"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec});
    std::fs::write(setup.file("policy.jsonl"), format!("# who\n{policy}\n")).expect("write");
    setup.authorization = vec![Mode::Abac].into();
    setup.authorization.policies = Abac::load(&setup.file("policy.jsonl")).expect("policies");
    let server = setup.start().await;
    let alice = server.token("alice-token");
    assert_eq!(alice.get(CONFIGMAPS).await.status, 200);
    let refused = alice.delete(CONFIGMAPS).await.failure();
    assert!(refused["message"].as_str().expect("a message").ends_with(": No policy matched."), "{refused}");
    server.stop().await;
}
