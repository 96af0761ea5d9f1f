//! Objects that the server writes in one transaction: each with what a write of its own would bring.

use rowplane::api::write::together::{InsteadOf, Wanted};
use rowplane::api::{Api, Target};
use rowplane::cache::Range;
use rowplane::schema::names::Gvr;
use rowplane::tree;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    what_comes_with_a_write_comes_with_many,
}

fn wanted<'a>(api: &'a Api, resource: &Gvr, namespace: &'a str, object: &'a Value) -> Wanted<'a> {
    let resource = api.resources.get(resource).expect("served");
    let name = object["metadata"]["name"].as_str().expect("a name");
    let content: tree::Value = serde_json::from_str(&object.to_string()).expect("JSON");
    let object = content.as_object().expect("an object").clone();
    Wanted { target: Target { resource, namespace, name }, object, instead_of: InsteadOf::Nothing }
}

async fn what_comes_with_a_write_comes_with_many(mut setup: Setup) {
    setup.namespace_contents = true;
    let server = setup.start().await;
    let api = &server.api;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let definition = |plural: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.ex.io")}, "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    };
    let quota = |name: &str, hard: Value| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}});
    let (first, second) =
        (quota("first", json!({"secrets": "1"})), quota("second", json!({"count/secrets": "5"})));
    let admission = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let policy = json!({"apiVersion": admission, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "object.metadata.name != 'no'"}]}});
    let binding = json!({"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let widgets = definition("widgets", "Widget");
    let (core, quotas) = (Gvr::fixed("v1", "namespaces"), Gvr::fixed("v1", "resourcequotas"));
    let definitions = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let policies = Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicies");
    let bindings = Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings");
    let all = vec![
        wanted(api, &core, "", &namespace),
        wanted(api, &definitions, "", &widgets),
        wanted(api, &quotas, "t", &first),
        wanted(api, &quotas, "t", &second),
        wanted(api, &policies, "", &policy),
        wanted(api, &bindings, "", &binding),
    ];
    let before = server.revision().await;
    assert!(api.write_all(all).await.expect("written"));

    // A namespace brings its account and its certificate, in the same commit.
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        server.get(format!("/api/v1/namespaces/n/{path}")).await.ok();
    }
    // A definition keeps its names, and is served.
    let state = api.cache.any();
    let names = state.objects(api.hidden.definition_names.id());
    let names: Vec<_> = names.range(&Range::of(Some("ex.io"))).map(|row| row.name().to_owned()).collect();
    assert_eq!(names, ["kind/Widget", "kind/WidgetList", "widget", "widgets"]);
    server.get("/apis/ex.io/v1/namespaces/t/widgets").await.ok();
    // A quota makes the namespace's set another one, and counts.
    assert!(api.hidden.quota_sets.get(&state, "", "t").is_some_and(|set| set.revision().0 > before));
    let secret = |name: &str| json!({"metadata": {"name": name}});
    server.post("/api/v1/namespaces/t/secrets", &secret("a")).await.expect(201);
    assert_eq!(server.post("/api/v1/namespaces/t/secrets", &secret("b")).await.status, 403);
    let counted = server.get("/api/v1/namespaces/t/resourcequotas/second").await.ok();
    assert_eq!(counted["status"]["used"], json!({"count/secrets": "1"}));
    // What configures admission is in force, and others' writes on their way see it.
    assert_eq!(server.post(CONFIGMAPS, &config_map("no", json!({}))).await.status, 422);
    server.post(CONFIGMAPS, &config_map("yes", json!({}))).await.expect(201);
    server.stop().await;
}
