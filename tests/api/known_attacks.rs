//! Attacks on kube-apiserver that were published, as far as no other file of these tests tries them.

use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Spellings of this host, of a link, and of none.
const FORBIDDEN: [&str; 7] =
    ["127.0.0.1", "localhost", "::1", "0.0.0.0", "0", "2130706433", "169.254.169.254"];

on_every_store! {
    nobody_gets_at_custom_objects_by_another_path,
    a_node_leads_nobody_to_this_host,
    endpoints_lead_nobody_to_this_host,
}

async fn define(server: &TestServer, plural: &str, kind: &str, scope: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": format!("{plural}.ex.io")}, "spec": {"group": "ex.io", "scope": scope,
        "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    server.post(DEFINITIONS, &definition).await.expect(201);
}

fn object(kind: &str) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": {"secret": "hidden"}})
}

/// An object of the cluster by a path of a namespace (CVE-2019-11247), and one of a resource whose name begins alike
/// (CVE-2022-3162).
async fn nobody_gets_at_custom_objects_by_another_path(setup: Setup) {
    std::fs::write(setup.file("tokens.csv"), "root-token,root,u-2,system:masters\nalice-token,alice,u-1\n")
        .expect("write");
    let server = setup.start().await;
    for (plural, kind, scope) in [
        ("globals", "Global", "Cluster"),
        ("foos", "Foo", "Namespaced"),
        ("foosbars", "FoosBar", "Namespaced"),
    ] {
        define(&server, plural, kind, scope).await;
    }
    server.post("/apis/ex.io/v1/globals", &object("Global")).await.expect(201);
    server.post("/apis/ex.io/v1/namespaces/t/foosbars", &object("FoosBar")).await.expect(201);
    let rule = json!({"verbs": ["*"], "apiGroups": ["ex.io"], "resources": ["globals", "foos"]});
    let role = json!({"metadata": {"name": "r"}, "rules": [rule]});
    server.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "r"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    let local = "/apis/ex.io/v1/namespaces/t/globals";
    for answer in [alice.get(local).await, alice.get(format!("{local}/x")).await] {
        assert_eq!(answer.status, 404, "{answer:?}");
    }
    assert_eq!(alice.delete(format!("{local}/x")).await.status, 404);
    server.get("/apis/ex.io/v1/globals/x").await.ok();
    let foos = "/apis/ex.io/v1/namespaces/t/foos";
    assert_eq!(alice.get(foos).await.ok()["items"], json!([]));
    assert_eq!(alice.get("/apis/ex.io/v1/namespaces/t/foosbars").await.status, 403);
    assert_eq!(alice.get(format!("{foos}/../foosbars/x")).await.status, 403);
}

/// The status of a Node says where its kubelet is (CVE-2022-3294).
async fn a_node_leads_nobody_to_this_host(setup: Setup) {
    let server = setup.start().await;
    server.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    for address in FORBIDDEN {
        let kind = if address == "localhost" { "Hostname" } else { "InternalIP" };
        let status = json!({"status": {"addresses": [{"type": kind, "address": address}]}});
        server.patch("/api/v1/nodes/n/status", &status).await.ok();
        server.get("/api/v1/nodes/https:n:443/proxy/version").await.bad_request("address not allowed");
    }
}

/// Addresses that somebody writes for a Service are those of other hosts (CVE-2021-25737).
async fn endpoints_lead_nobody_to_this_host(setup: Setup) {
    let server = setup.start().await;
    for address in FORBIDDEN {
        let endpoints = json!({"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": address}]}]});
        let answer = server.post("/api/v1/namespaces/t/endpoints", &endpoints).await;
        assert_eq!(answer.status, 422, "{address}: {answer:?}");
        let family = if address.contains(':') { "IPv6" } else { "IPv4" };
        let slice = json!({"metadata": {"name": "s"}, "addressType": family, "endpoints": [{"addresses": [address]}]});
        let answer = server.post("/apis/discovery.k8s.io/v1/namespaces/t/endpointslices", &slice).await;
        assert_eq!(answer.status, 422, "{address}: {answer:?}");
    }
}
