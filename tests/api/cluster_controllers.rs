//! A server beside a kube-controller-manager, or without one, as in a test environment: what is left to it is not done.

use rowplane::server::config::Controllers;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, TestServer};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const SECRETS: &str = "/api/v1/namespaces/t/secrets";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const QUOTA: &str = "/api/v1/namespaces/t/resourcequotas";

on_every_store! {
    namespaces_stay_with_what_is_in_them,
    nobody_collects_garbage,
    cluster_roles_are_not_aggregated,
    a_quota_limits_nothing_until_its_status_has_limits,
    without_a_collector_nothing_waits_for_one,
    secrets_get_no_tokens,
    the_types_of_policies_are_not_checked,
    nothing_is_migrated,
    storage_versions_of_nobody_stay,
}

async fn start(setup: &mut Setup) -> TestServer {
    setup.controllers = Controllers::OfServer;
    setup.start().await
}

/// Reads until nothing can be under way any more that an earlier request has begun: a definition with this plural was
/// established, which is this server's own to do.
async fn own_controllers_have_passed(server: &TestServer, plural: &str) {
    let definition = json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": plural.to_uppercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    while server.get(format!("/apis/example.com/v1/{plural}")).await.status != 200 {
        tokio::task::yield_now().await;
    }
}

async fn namespaces_stay_with_what_is_in_them(mut setup: Setup) {
    let server = start(&mut setup).await;
    server.create("c", json!({})).await;
    let deleted = server.delete("/api/v1/namespaces/t").await.ok();
    assert_eq!(deleted["status"]["phase"], "Terminating");
    own_controllers_have_passed(&server, "passings").await;
    assert_eq!(server.get("/api/v1/namespaces/t").await.ok()["spec"]["finalizers"], json!(["kubernetes"]));
    server.get(format!("{CONFIGMAPS}/c")).await.ok();
    // As whoever ends it does.
    let mut namespace = server.get("/api/v1/namespaces/t").await.ok();
    namespace["spec"]["finalizers"] = json!([]);
    server.put("/api/v1/namespaces/t/finalize", &namespace).await.ok();
    assert_eq!(server.get("/api/v1/namespaces/t").await.status, 404);
}

async fn nobody_collects_garbage(mut setup: Setup) {
    let server = start(&mut setup).await;
    let made_up = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "made-up"}]);
    server
        .post(CONFIGMAPS, &json!({"metadata": {"name": "orphan", "ownerReferences": made_up}}))
        .await
        .expect(201);
    server.create("owner", json!({})).await;
    server.delete(format!("{CONFIGMAPS}/owner")).json(&json!({"propagationPolicy": "Foreground"})).await.ok();
    own_controllers_have_passed(&server, "passings").await;
    server.get(format!("{CONFIGMAPS}/orphan")).await.ok();
    let owner = server.get(format!("{CONFIGMAPS}/owner")).await.ok();
    assert_eq!(
        owner["metadata"]["finalizers"],
        json!(["foregroundDeletion"]),
        "whoever collects takes it off"
    );
}

async fn cluster_roles_are_not_aggregated(mut setup: Setup) {
    let server = start(&mut setup).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let whole = json!({"metadata": {"name": "whole"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    server.post(ROLES, &whole).await.expect(201);
    server
        .post(ROLES, &json!({"metadata": {"name": "part", "labels": {"a": "b"}}, "rules": rules}))
        .await
        .expect(201);
    let rules = |role: Value| role["rules"].as_array().map_or(0, Vec::len);
    assert_eq!(rules(server.get(format!("{ROLES}/whole")).await.ok()), 0);
    assert_eq!(rules(server.get(format!("{ROLES}/admin")).await.ok()), 0);
}

async fn a_quota_limits_nothing_until_its_status_has_limits(mut setup: Setup) {
    let server = start(&mut setup).await;
    let hard = json!({"configmaps": "1"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    let mut quota = server.post(QUOTA, &quota).await.expect(201);
    assert_eq!(quota["status"], json!({}));
    server.create("one", json!({})).await;
    server.create("two", json!({})).await;
    quota["status"] = json!({"hard": hard, "used": {"configmaps": "0"}});
    let written = server.put(format!("{QUOTA}/q/status"), &quota).await.ok();
    assert_eq!(
        written["status"],
        json!({"hard": hard, "used": {"configmaps": "2"}}),
        "counted by this server"
    );
    let refused = server.post(CONFIGMAPS, &json!({"metadata": {"name": "three"}})).await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

async fn without_a_collector_nothing_waits_for_one(mut setup: Setup) {
    setup.garbage_collection = false;
    let server = setup.start().await;
    for policy in ["Foreground", "Orphan"] {
        server.create("owner", json!({})).await;
        let answer = server
            .delete(format!("{CONFIGMAPS}/owner"))
            .json(&json!({"propagationPolicy": policy}))
            .await
            .ok();
        assert_eq!(answer["status"], "Success", "{policy}: {answer}");
        assert_eq!(server.get(format!("{CONFIGMAPS}/owner")).await.status, 404);
    }
}

async fn secrets_get_no_tokens(mut setup: Setup) {
    let server = start(&mut setup).await;
    let account = json!({"metadata": {"name": "robot"}});
    server.post("/api/v1/namespaces/t/serviceaccounts", &account).await.expect(201);
    let secret = json!({"metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"});
    let made = server.post(SECRETS, &secret).await.expect(201);
    own_controllers_have_passed(&server, "passings").await;
    assert_eq!(server.get(format!("{SECRETS}/s")).await.ok(), made);
    // Nor does the Secret go with its account.
    server.delete("/api/v1/namespaces/t/serviceaccounts/robot").await.ok();
    own_controllers_have_passed(&server, "others").await;
    server.get(format!("{SECRETS}/s")).await.ok();
}

async fn the_types_of_policies_are_not_checked(mut setup: Setup) {
    let server = start(&mut setup).await;
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["*"]});
    let policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.spec.nope == 1"}]}});
    server.post(POLICIES, &policy).await.expect(201);
    own_controllers_have_passed(&server, "passings").await;
    let status = server.get(format!("{POLICIES}/p")).await.ok()["status"].clone();
    assert!(status["observedGeneration"].is_null() && status["typeChecking"].is_null(), "{status}");
}

async fn nothing_is_migrated(mut setup: Setup) {
    let server = start(&mut setup).await;
    let migration =
        json!({"metadata": {"name": "m"}, "spec": {"resource": {"group": "", "resource": "configmaps"}}});
    server.post(MIGRATIONS, &migration).await.expect(201);
    own_controllers_have_passed(&server, "passings").await;
    let status = server.get(format!("{MIGRATIONS}/m")).await.ok()["status"].clone();
    assert!(status["conditions"].is_null(), "{status}");
}

async fn storage_versions_of_nobody_stay(mut setup: Setup) {
    setup.register("rowplane-0");
    let server = start(&mut setup).await;
    let entry = |id: &str| json!({"apiServerID": id, "encodingVersion": "v1", "decodableVersions": ["v1"]});
    let write = async |name: &str, servers: &[&str]| {
        let path = format!("{VERSIONS}/{name}");
        let mut object = server.get(&path).await.ok();
        let entries = object["status"]["storageVersions"].as_array().cloned().unwrap_or_default();
        object["status"]["storageVersions"] =
            entries.into_iter().chain(servers.iter().map(|id| entry(id))).collect();
        object["status"]["commonEncodingVersion"] = "v1".into();
        server.put(format!("{path}/status"), &object).await.ok();
    };
    server.post(VERSIONS, &json!({"metadata": {"name": "sv1.test"}})).await.expect(201);
    write("sv1.test", &["nobody"]).await;
    // Where this server is registered, nobody else may hold it up.
    write("core.pods", &["nobody"]).await;
    let names_nobody = async |name: &str| {
        server.get(format!("{VERSIONS}/{name}")).await.ok()["status"].to_string().contains("nobody")
    };
    while names_nobody("core.pods").await {
        tokio::task::yield_now().await;
    }
    assert!(names_nobody("sv1.test").await);
    server.stop().await;
}
