//! MutatingAdmissionPolicies in `v1beta1`, which is off by default.

use http::Method;
use rowplane::kinds::built_in::enablement::Enablement;
use serde_json::{Value, json};

use super::{BETA, BETA_BINDINGS, MUTATING, MUTATING_BINDINGS};
use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    beta_versions_are_off_by_default,
    policies_of_v1beta1_are_those_of_v1,
}

const VERSION: &str = "admissionregistration.k8s.io/v1beta1";

fn policy(expression: &str) -> Value {
    json!({"apiVersion": VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"], "operations": ["CREATE"]}]}}})
}

fn binding() -> Value {
    json!({"apiVersion": VERSION, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "b"},
        "spec": {"policyName": "p"}})
}

async fn beta_versions_are_off_by_default(setup: Setup) {
    let server = setup.start().await;
    let groups = server.get("/apis").await.ok();
    let groups = groups["groups"].as_array().expect("groups");
    let group =
        groups.iter().find(|group| group["name"] == "admissionregistration.k8s.io").expect("the group");
    assert_eq!(group["versions"].as_array().expect("versions").len(), 1);
    assert_eq!(server.get(BETA).await.status, 404);
    assert_eq!(server.post(MUTATING, &policy("Object{}")).await.status, 400);
}

async fn policies_of_v1beta1_are_those_of_v1(mut setup: Setup) {
    setup.enablement = Enablement::parse(VERSION).expect("known");
    let server = setup.start().await;
    let groups = server.get("/apis/admissionregistration.k8s.io").await.ok();
    assert_eq!(groups["preferredVersion"]["version"], "v1");
    assert_eq!(groups["versions"][1]["version"], "v1beta1");
    let resources = server.get(format!("/apis/{VERSION}")).await.ok();
    assert_eq!(resources["resources"].as_array().expect("resources").len(), 2);

    let labels = "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}";
    let made = server.post(BETA, &policy(labels)).await;
    let deprecated = format!(
        "299 - \"{VERSION} MutatingAdmissionPolicy is deprecated in v1.37+, unavailable in v1.40+; \
         use admissionregistration.k8s.io/v1 MutatingAdmissionPolicy\""
    );
    assert_eq!(made.headers("warning"), [deprecated]);
    let made = made.expect(201);
    assert_eq!(made["apiVersion"], VERSION);
    assert_eq!(made["spec"]["failurePolicy"], "Fail");
    assert_eq!(made["spec"]["matchConstraints"]["resourceRules"][0]["scope"], "*");
    server.post(BETA_BINDINGS, &binding()).await.expect(201);
    let mutated = server.post(CONFIGMAPS, &config_map("a", json!({"k": "v"}))).await.expect(201);
    assert_eq!(mutated["metadata"]["labels"], json!({"added": "yes"}));

    let mut stored = server.get(format!("{MUTATING}/p")).await.ok();
    assert_eq!(stored["apiVersion"], "admissionregistration.k8s.io/v1");
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(stored["metadata"]["managedFields"][0]["apiVersion"], VERSION);
    stored["spec"]["failurePolicy"] = "Ignore".into();
    let updated = server.put(format!("{MUTATING}/p"), &stored).await;
    assert_eq!(updated.headers("warning"), Vec::<String>::new());
    assert_eq!(updated.ok()["metadata"]["generation"], 2);
    let listed = server.get(BETA).await.ok();
    assert_eq!(listed["apiVersion"], VERSION);
    assert_eq!(listed["items"][0]["spec"]["failurePolicy"], "Ignore");
    let applied = json!({"apiVersion": VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"failurePolicy": "Ignore"}});
    let request = server.request(Method::PATCH, format!("{BETA}/p?fieldManager=m"));
    let applied = request.body("application/apply-patch+yaml", applied.to_string()).await.ok();
    assert_eq!(applied["metadata"]["resourceVersion"].as_str().map(str::is_empty), Some(false));
    assert_eq!(applied["metadata"]["managedFields"].as_array().expect("managers").len(), 3);
    let mut watch = server.watch(format!("{BETA_BINDINGS}?watch=1")).await;
    assert_eq!(watch.expect_named("ADDED", "b").await["apiVersion"], VERSION);
    server.delete(format!("{MUTATING_BINDINGS}/b")).await.ok();
    assert_eq!(watch.expect_named("DELETED", "b").await["apiVersion"], VERSION);
    server.delete(format!("{BETA}/p")).await.ok();
    assert_eq!(server.get(format!("{MUTATING}/p")).await.status, 404);
    let failure = server.post(BETA, &policy("Object{")).await.failure();
    assert_eq!(failure["code"], 422, "{failure}");
}
