//! The operation CONNECT, as webhooks and policies see it.

use serde_json::{Value, json};

use super::streams::upgrade;
use super::{POD, with_pod};
use crate::support::kubelet::Kubelet;
use crate::support::server::{Setup, TestServer};
use crate::support::webhook::{Seen, WebhookServer};

on_every_store! {
    admission_14_a_webhook_sees_exec_and_refuses_it,
    a_webhook_changes_the_options,
    a_policy_refuses_what_it_is_about,
    proxies_are_seen_with_their_path,
    what_connects_is_discovered,
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1";

fn answer(seen: &Seen, allowed: bool, patch: Option<Value>) -> (u16, String) {
    use base64::Engine as _;
    let mut response = json!({"uid": seen.body["request"]["uid"], "allowed": allowed});
    if let Some(patch) = patch {
        response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch.to_string()).into();
        response["patchType"] = "JSONPatch".into();
    }
    (
        200,
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})
            .to_string(),
    )
}

async fn configure(server: &TestServer, kind: &str, hook: &WebhookServer, resources: &[&str]) {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": resources, "operations": ["CONNECT"]});
    let hook = json!({"name": "h.ex.io", "clientConfig": hook.client_config("/"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": [rule]});
    let configuration = json!({"metadata": {"name": "h"}, "webhooks": [hook]});
    server.post(format!("{ADMISSION}/{kind}"), &configuration).await.expect(201);
}

async fn admission_14_a_webhook_sees_exec_and_refuses_it(setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let hook = WebhookServer::start(&[], |seen| answer(seen, false, None)).await;
    configure(&server, "validatingwebhookconfigurations", &hook, &["pods/exec"]).await;
    let line = format!("POST {POD}/exec?command=ls&command=-l&stdout=1&container=c");
    let (_, head) = upgrade(&server.kubeconfig, &line, SPDY).await;
    assert_eq!(head.line, "HTTP/1.1 400 Bad Request", "refused before the upgrade");
    assert_eq!(kubelet.seen().len(), 0);
    let mut seen = hook.seen();
    assert_eq!(seen.len(), 1);
    let request = &mut seen[0].body["request"];
    request["uid"] = Value::Null;
    request["userInfo"] = Value::Null;
    let kind = json!({"group": "", "version": "v1", "kind": "PodExecOptions"});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    let object = json!({"kind": "PodExecOptions", "apiVersion": "v1", "stdout": true, "container": "c",
        "command": ["ls", "-l"]});
    let want = json!({"uid": null, "kind": kind, "resource": resource, "subResource": "exec", "requestKind": kind,
        "requestResource": resource, "requestSubResource": "exec", "name": "p", "namespace": "t",
        "operation": "CONNECT", "userInfo": null, "object": object, "oldObject": null, "dryRun": false,
        "options": null});
    assert_eq!(*request, want);
    // Others are not its matter.
    let (_, head) = upgrade(&server.kubeconfig, &format!("POST {POD}/attach"), SPDY).await;
    assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(hook.seen().len(), 0);
}

async fn a_webhook_changes_the_options(setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let hook = WebhookServer::start(&[], |seen| {
        answer(seen, true, Some(json!([{"op": "replace", "path": "/command", "value": ["true"]}])))
    })
    .await;
    configure(&server, "mutatingwebhookconfigurations", &hook, &["pods/*"]).await;
    let (_, head) = upgrade(&server.kubeconfig, &format!("GET {POD}/exec?command=rm&tty=1"), SPDY).await;
    assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(kubelet.only().line, "GET /exec/t/p/c?command=true&tty=1");
    // Reading a log connects to nothing.
    hook.seen();
    assert_eq!(server.get(format!("{POD}/log?container=x")).await.status, 400);
    assert_eq!(hook.seen().len(), 0);
}

async fn a_policy_refuses_what_it_is_about(setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"], "operations": ["CONNECT"]});
    let policy = json!({"metadata": {"name": "no-shells"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "request.options == null && !('sh' in object.command)", "message": "no shells"}]}});
    server.post(format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await.expect(201);
    let binding = json!({"metadata": {"name": "b"},
        "spec": {"policyName": "no-shells", "validationActions": ["Deny"]}});
    server.post(format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).await.expect(201);
    let refused = server.post(format!("{POD}/exec?command=sh"), &json!(null)).await;
    let text = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'no-shells' with binding 'b' denied request: no shells";
    let failure = refused.failure();
    assert_eq!((refused.status, &failure["message"]), (422, &json!(text)));
    server.post(format!("{POD}/exec?command=ls"), &json!(null)).await.bad_request("Upgrade request required");
}

async fn proxies_are_seen_with_their_path(setup: Setup) {
    let kubelet = Kubelet::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let server = with_pod(&setup, &kubelet).await;
    let hook = WebhookServer::start(&[], |seen| answer(seen, true, None)).await;
    configure(&server, "validatingwebhookconfigurations", &hook, &["nodes/proxy", "pods/proxy"]).await;
    for method in [http::Method::GET, http::Method::OPTIONS, http::Method::HEAD, http::Method::PATCH] {
        let path = "/api/v1/nodes/n/proxy/stats//x/?a=b";
        // The Node is on this host.
        assert_eq!(server.request(method, path).await.status, 400);
        let seen = hook.seen();
        let request = &seen[0].body["request"];
        let object = json!({"kind": "NodeProxyOptions", "apiVersion": "v1", "path": "/stats//x/"});
        assert_eq!((&request["object"], &request["operation"]), (&object, &json!("CONNECT")));
        assert_eq!((&request["name"], request.get("namespace")), (&json!("n"), None));
    }
    let id = "/api/v1/namespaces/t/pods/https:p:443/proxy";
    server.get(id).await.bad_request("address not allowed");
    assert_eq!(hook.seen()[0].body["request"]["name"], "https:p:443");
}

async fn what_connects_is_discovered(setup: Setup) {
    let server = setup.start_empty().await;
    let legacy = server.get("/api/v1").await.ok();
    let resources = legacy["resources"].as_array().expect("resources");
    let told = |name: &str| {
        let found = resources.iter().find(|one| one["name"] == name).expect(name);
        (found["kind"].clone(), found["verbs"].clone(), found.get("group").cloned())
    };
    let both = json!(["create", "get"]);
    let all = json!(["create", "delete", "get", "patch", "update"]);
    for (name, kind, verbs) in [
        ("pods/attach", "PodAttachOptions", &both),
        ("pods/exec", "PodExecOptions", &both),
        ("pods/portforward", "PodPortForwardOptions", &both),
        ("pods/log", "Pod", &json!(["get"])),
        ("pods/proxy", "PodProxyOptions", &all),
        ("services/proxy", "ServiceProxyOptions", &all),
        ("nodes/proxy", "NodeProxyOptions", &all),
    ] {
        assert_eq!(told(name), (json!(kind), verbs.clone(), None), "{name}");
    }
    let names: Vec<&str> = resources.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert!(names.is_sorted(), "{names:?}");
}
