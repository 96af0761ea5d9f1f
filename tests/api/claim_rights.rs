//! Rights that the status of a ResourceClaim needs beside that of its verb.

use serde_json::{Value, json};

use crate::support::client::Request;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    the_right_to_a_status_binds_no_claim_and_speaks_for_no_driver,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims";
const DRIVER: &str = "system:serviceaccount:t:driver";

fn status(node: &str, devices: &[&str]) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let results: Vec<Value> = ["a", "b"]
        .map(|device| json!({"request": "r", "driver": "d.ex.io", "pool": "p", "device": device}))
        .into();
    let devices = devices.iter().map(|device| json!({"driver": "d.ex.io", "pool": "p", "device": device}));
    json!({
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}},
        "devices": devices.collect::<Vec<Value>>(),
    })
}

/// A PUT of the status by the driver's account, whose token was made for a node.
async fn put(server: &TestServer, node: &str, change: Value) -> Request {
    let mut claim = server.get(format!("{CLAIMS}/c")).await.ok();
    claim["status"] = change;
    let request = server.put(format!("{CLAIMS}/c/status"), &claim).header("impersonate-user", DRIVER);
    request.header("impersonate-extra-authentication.kubernetes.io%2fnode-name", node)
}

async fn grant(server: &TestServer, name: &str, resource: &str, verb: &str) {
    let rule = json!({"verbs": [verb], "apiGroups": ["resource.k8s.io"], "resources": [resource]});
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    server.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": DRIVER}]});
    server.post(format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
}

/// The fields that are forbidden, and what the first of them needs.
async fn forbidden(request: Request) -> (Vec<String>, String) {
    let failure = request.await.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes");
    let fields = causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned());
    (fields.collect(), causes[0]["message"].as_str().unwrap_or_default().to_owned())
}

async fn the_right_to_a_status_binds_no_claim_and_speaks_for_no_driver(setup: Setup) {
    let server = setup.start().await;
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}});
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}});
    server.post(CLAIMS, &claim).await.expect(201);
    grant(&server, "status", "resourceclaims/status", "update").await;
    let (fields, why) = forbidden(put(&server, "n", status("n", &[])).await).await;
    assert_eq!(fields, ["status.allocation"]);
    let expected = "Forbidden: changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
        verb=\"update\" permission: resourceclaims.resource.k8s.io is forbidden: User \"system:serviceaccount:t:driver\" \
        cannot update resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope";
    assert_eq!(why, expected);
    grant(&server, "binding", "resourceclaims/binding", "update").await;
    put(&server, "n", status("n", &[])).await.await.ok();

    let (fields, why) = forbidden(put(&server, "n", status("n", &["a"])).await).await;
    assert_eq!(fields, ["status.devices"]);
    let right = "resource=\"resourceclaims/driver\", verb=\"[associated-node:update arbitrary-node:update]\" permission: \
        resourceclaims.resource.k8s.io \"d.ex.io\" is forbidden";
    assert!(why.contains(right), "{why}");
    grant(&server, "near", "resourceclaims/driver", "associated-node:update").await;
    put(&server, "n", status("n", &["a"])).await.await.ok();
    let (_, why) = forbidden(put(&server, "elsewhere", status("n", &["a", "b"])).await).await;
    assert!(why.contains("verb=\"[arbitrary-node:update]\""), "{why}");
    // What is taken away is changed, too; what stays as it is needs nothing.
    forbidden(put(&server, "elsewhere", status("n", &[])).await).await;
    put(&server, "elsewhere", status("n", &["a"])).await.await.ok();
    grant(&server, "far", "resourceclaims/driver", "arbitrary-node:update").await;
    put(&server, "elsewhere", status("n", &["a", "b"])).await.await.ok();
}
