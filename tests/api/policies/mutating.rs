//! MutatingAdmissionPolicy.

use http::Method;
use serde_json::{Value, json};

use super::{MUTATING, MUTATING_BINDINGS, VALIDATING, VALIDATING_BINDINGS, extend};
use crate::support::client::Answer;
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, deployment};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_83_a_policy_counts_from_its_answer_on,
    admission_83_84_configurations,
    admission_85_86_patches,
    admission_4_87_reinvocation,
    conditions_variables_and_params,
    admission_88_every_kind_and_verb,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const PODS: &str = "/api/v1/namespaces/t/pods";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

fn policy(name: &str, mutations: Value, more: Value) -> Value {
    let mut spec = json!({"reinvocationPolicy": "Never", "mutations": mutations,
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
            "resources": ["configmaps", "deployments", "pods", "widgets", "namespaces", "*/scale"],
            "operations": ["CREATE", "UPDATE"]}]}});
    extend(&mut spec, more);
    json!({"metadata": {"name": name}, "spec": spec})
}

fn binding(name: &str, policy: &str, more: Value) -> Value {
    let mut spec = json!({"policyName": policy});
    extend(&mut spec, more);
    json!({"metadata": {"name": name}, "spec": spec})
}

fn configuration(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// Sets the policy `p` and its binding `b`, in place of those there are.
async fn only(server: &TestServer, mutations: Value, more: Value) {
    server.delete(format!("{MUTATING_BINDINGS}/b")).await;
    server.delete(format!("{MUTATING}/p")).await;
    server.post(MUTATING, &policy("p", mutations, more)).await.expect(201);
    server.post(MUTATING_BINDINGS, &binding("b", "p", json!({}))).await.expect(201);
}

/// The code, the reason and the message of a failure.
fn refused(answer: Answer) -> (u64, String, String) {
    let failure = answer.json();
    let text = |member: &str| failure[member].as_str().unwrap_or_default().to_owned();
    (failure["code"].as_u64().unwrap_or_default(), text("reason"), text("message"))
}

fn denied(why: &str) -> (u64, String, String) {
    (403, "Invalid".to_owned(), format!("policy 'p' with binding 'b' denied request: {why}"))
}

/// 83, and 62 of policies that mutate: only with a binding, from its answer on, on every server; what is added is nobody's.
async fn admission_83_a_policy_counts_from_its_answer_on(setup: Setup) {
    let one = setup.start().await;
    let other =
        if matches!(setup.database, Database::Postgres(_)) { Some(setup.start().await) } else { None };
    let other = other.as_ref().unwrap_or(&one);
    let labels = "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}";
    one.post(MUTATING, &policy("p", json!([configuration(labels)]), json!({}))).await.expect(201);
    let made = async || {
        let made = other.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", json!({"k": "v"}))).await;
        made.expect(201)["metadata"].clone()
    };
    assert_eq!(made().await.get("labels"), None);
    for _ in 0..2 {
        one.post(MUTATING_BINDINGS, &binding("b", "p", json!({}))).await.expect(201);
        let metadata = made().await;
        assert_eq!(metadata["labels"], json!({"added": "yes"}));
        let owned = metadata["managedFields"].to_string();
        assert!(owned.contains("f:k") && !owned.contains("added"), "{owned}");
        one.delete(format!("{MUTATING_BINDINGS}/b")).await.ok();
        assert_eq!(made().await.get("labels"), None);
    }
}

/// 83, 84. Configurations are merged by key and by field, get their defaults, and may not replace anything as a whole.
async fn admission_83_84_configurations(setup: Setup) {
    let server = setup.start().await;
    let container = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
        Object.spec.template.spec.containers{name: 'main', env: [
            Object.spec.template.spec.containers.env{name: 'A', value: object.metadata.name}]},
        Object.spec.template.spec.containers{name: 'side', image: 's', ports: [
            Object.spec.template.spec.containers.ports{containerPort: 1}]}]}}}}";
    only(&server, json!([configuration(container)]), json!({})).await;
    let mut body = deployment("d", json!({}));
    body["spec"]["template"]["spec"]["containers"] = json!([{"name": "main", "image": "i", "env": [{"name": "B", "value": "b"}, {"name": "A", "value": "a"}]}]);
    let made = server.post(DEPLOYMENTS, &body).await.expect(201);
    let containers = &made["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "i");
    assert_eq!(containers[0]["env"], json!([{"name": "B", "value": "b"}, {"name": "A", "value": "d"}]));
    assert_eq!(containers[1]["imagePullPolicy"], "Always");
    assert_eq!(containers[1]["ports"][0]["protocol"], "TCP");
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "j"}]}}}});
    let path = format!("{DEPLOYMENTS}/d?fieldManager=m&force=true");
    let request = server.request(Method::PATCH, path);
    let applied = request.body("application/apply-patch+yaml", applied.to_string()).await.ok();
    assert_eq!(applied["spec"]["template"]["spec"]["containers"][0]["image"], "j");
    // A field of an object that the expression makes can be selected.
    let made = "Object.metadata{labels: {'l': 'made'}, name: 'x'}";
    let selecting = format!(
        "Object{{metadata: Object.metadata{{labels: {made}.labels, annotations: {{'a': string(has({made}.labels) && \
         !has({made}.finalizers))}}}}}}"
    );
    only(&server, json!([configuration(&selecting)]), json!({})).await;
    let seen = server.post(CONFIGMAPS, &config_map("selecting", json!({}))).await.expect(201);
    assert_eq!(seen["metadata"]["labels"], json!({"l": "made"}));
    assert_eq!(seen["metadata"]["annotations"], json!({"a": "true"}));
    let unfit = "error applying patch: ";
    for (expression, why) in [
        (
            "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}], nodeSelector: {'a': 'b'}, \
             containers: [Object.spec.containers{name: 'c', args: ['a']}]}}",
            format!(
                "{unfit}invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.tolerations, \
                 .spec.nodeSelector, .spec.containers[0].args"
            ),
        ),
        (
            "Object{spec: Object.spec{nope: 1}}",
            format!("{unfit}failed to convert patch object to typed object: .spec.nope: field not declared in schema"),
        ),
        (
            "Object{spec: Object.spec{hostNetwork: 'x'}}",
            format!(
                "{unfit}failed to convert patch object to typed object: .spec.hostNetwork: expected boolean, got &{{x}}"
            ),
        ),
        (
            "Object{spec: Object.spec{securityContext: Object.spec.wrong{}}}",
            "type mismatch: unexpected type name \"Object.spec.wrong\", expected \"Object.spec.securityContext\", which \
             matches field name path from root Object type"
                .to_owned(),
        ),
        (
            "Object{metadata: Object.metadata{labels: {'a': object.metadata.annotations.no}}}",
            "expression 'Object{metadata: Object.metadata{labels: {'a': object.metadata.annotations.no}}}' resulted in \
             error: no such key: annotations"
                .to_owned(),
        ),
    ] {
        only(&server, json!([configuration(expression)]), json!({})).await;
        assert_eq!(refused(server.post(PODS, &pod("x")).await), denied(&why), "{expression}");
        only(&server, json!([configuration(expression)]), json!({"failurePolicy": "Ignore"})).await;
        server.post(format!("{PODS}?dryRun=All"), &pod("x")).await.expect(201);
    }
    let answer = server.get("/metrics").await.text();
    let counted =
        "apiserver_mutating_admission_policy_check_total{policy=\"p\",policy_binding=\"b\",error_type=\"";
    assert!(answer.contains(&format!("{counted}no_error\"}}")), "{answer}");
    assert!(answer.contains(&format!("{counted}invalid_error\"}}")));
}

/// 85, 86. JSON patches.
async fn admission_85_86_patches(setup: Setup) {
    let server = setup.start().await;
    let applied = async |expression: &str, more: Value| {
        only(&server, json!([patch(expression)]), more).await;
        server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", json!({"k": "v"}))).await
    };
    let key = "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b~c').replace('~', '').replace('/', ''), \
               value: 'x'}, JSONPatch{op: 'test', path: '/data/k', value: 'v'}]";
    let made = applied(key, json!({})).await.expect(201);
    assert_eq!(made["data"], json!({"k": "v", "a1b0c": "x"}));
    let escaped = "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', \
                   path: '/metadata/annotations/' + jsonpatch.escapeKey('ex.io/a'), value: string(1 + 1)}, \
                   JSONPatch{op: 'copy', from: '/data/k', path: '/data/l'}, JSONPatch{op: 'remove', path: '/data/k'}]";
    let made = applied(escaped, json!({})).await.expect(201);
    assert_eq!(made["metadata"]["annotations"], json!({"ex.io/a": "2"}));
    assert_eq!(made["data"], json!({"l": "v"}));
    // A test that fails leaves the object as it is.
    let test = "[JSONPatch{op: 'add', path: '/data/n', value: 'x'}, JSONPatch{op: 'test', path: '/data/k', value: 'w'}]";
    assert_eq!(applied(test, json!({})).await.expect(201)["data"], json!({"k": "v"}));
    for (expression, why) in [
        (
            "[JSONPatch{op: 'remove', path: '/data/no'}]",
            "JSON Patch: error in remove for path: '/data/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            "[JSONPatch{op: 'add', path: '/no/no', value: 1}]",
            "JSON Patch: add operation does not apply: doc is missing path: \"/no/no\": missing value",
        ),
        ("[JSONPatch{op: 'frob', path: '/data'}]", "JSON Patch: Unexpected kind: frob"),
        (
            "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: Object.data.b{}}}]",
            "type mismatch: unexpected type name \"Object.data.b\", expected \"Object.data.a\", which matches field name \
             path from root Object type",
        ),
    ] {
        assert_eq!(refused(applied(expression, json!({})).await), denied(why), "{expression}");
        applied(expression, json!({"failurePolicy": "Ignore"})).await.expect(201);
    }
    for failure_policy in ["Fail", "Ignore"] {
        let unknown = "[JSONPatch{op: 'add', path: '/nonsense', value: {'a': [1]}}]";
        let (code, reason, message) =
            refused(applied(unknown, json!({"failurePolicy": failure_policy})).await);
        assert_eq!((code, reason.as_str()), (500, "InternalError"));
        assert_eq!(message, "Internal error occurred: strict decoding error: unknown field \"nonsense\"");
    }
    let list = "[JSONPatch{op: 'add', path: '/spec/containers', value: [Object.spec.containers{name: 'c', image: 'i', \
                ports: [Object.spec.containers.ports{containerPort: 2}]}]}]";
    only(&server, json!([patch(list)]), json!({})).await;
    let made = server.post(PODS, &pod("x")).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["ports"], json!([{"containerPort": 2, "protocol": "TCP"}]));
    assert_eq!(made["spec"]["containers"].as_array().map(Vec::len), Some(1));
}

/// 4, 87. Mutations see those before them, webhooks see mutations, and policies that ask for it see the object again.
async fn admission_4_87_reinvocation(setup: Setup) {
    let server = setup.start().await;
    let web = WebhookServer::start(&[], |seen| {
        use base64::Engine as _;
        let operations = json!([{"op": "add", "path": "/data/web", "value": "1"}]).to_string();
        let patch = base64::engine::general_purpose::STANDARD.encode(operations);
        let response = json!({"uid": seen.body["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
            "patch": patch});
        let review =
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        (200, review.to_string())
    })
    .await;
    let count = |key: &str| {
        patch(&format!(
            "[JSONPatch{{op: 'add', path: '/data/{key}', value: (has(object.data.{key}) ? object.data.{key} : '') + \
             string(object.data.size())}}]"
        ))
    };
    let set = async |reinvocation: &str| {
        for name in ["p", "q"] {
            server.delete(format!("{MUTATING_BINDINGS}/{name}")).await;
            server.delete(format!("{MUTATING}/{name}")).await;
        }
        let again = json!({"reinvocationPolicy": reinvocation});
        server.post(MUTATING, &policy("p", json!([count("one"), count("two")]), again)).await.expect(201);
        let never = json!({"reinvocationPolicy": "Never"});
        server.post(MUTATING, &policy("q", json!([count("three")]), never)).await.expect(201);
        for name in ["p", "q"] {
            server.post(MUTATING_BINDINGS, &binding(name, name, json!({}))).await.expect(201);
        }
        let made = server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", json!({"k": ""}))).await;
        made.expect(201)["data"].clone()
    };
    assert_eq!(set("Never").await, json!({"k": "", "one": "1", "two": "2", "three": "3"}));
    // Without a webhook, too: the other policy has changed the object.
    assert_eq!(set("IfNeeded").await, json!({"k": "", "one": "14", "two": "24", "three": "3"}));
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps"], "operations": ["*"]});
    let hook = json!({"name": "h.ex.io", "clientConfig": web.client_config("/"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": [rule]});
    server.post(WEBHOOKS, &json!({"metadata": {"name": "h"}, "webhooks": [hook]})).await.expect(201);
    assert_eq!(set("IfNeeded").await, json!({"k": "", "one": "15", "two": "25", "three": "3", "web": "1"}));
    assert_eq!(set("Never").await, json!({"k": "", "one": "1", "two": "2", "three": "3", "web": "1"}));
    let sent = web.seen().into_iter().map(|seen| seen.body["request"]["object"]["data"].clone());
    assert!(sent.into_iter().all(|data| data.get("three").is_some()));
}

/// Conditions, variables, params, the authorizer, the Namespace, and configuration errors.
async fn conditions_variables_and_params(setup: Setup) {
    let server = setup.start().await;
    let label = |value: &str| {
        json!([configuration(&format!("Object{{metadata: Object.metadata{{labels: {{'l': {value}}}}}}}"))])
    };
    let made = async |name: &str| {
        server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map(name, json!({"k": "v"}))).await
    };
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    only(&server, label("'x'"), condition("object.metadata.name == 'a'")).await;
    assert_eq!(made("a").await.expect(201)["metadata"]["labels"]["l"], "x");
    assert_eq!(made("b").await.expect(201)["metadata"].get("labels"), None);
    only(&server, label("'x'"), condition("object.spec.no == 1")).await;
    assert_eq!(
        refused(made("a").await),
        denied("expression 'object.spec.no == 1' resulted in error: no such key: spec")
    );
    let variables = json!({"variables": [{"name": "m", "expression": "namespaceObject.metadata.name"},
        {"name": "n", "expression": "variables.m + '-' + request.operation"}]});
    only(&server, label("variables.n"), variables).await;
    assert_eq!(made("a").await.expect(201)["metadata"]["labels"]["l"], "t-CREATE");
    let allowed =
        "authorizer.group('').resource('pods').namespace('x').check('get').allowed() ? 'yes' : 'no'";
    only(&server, label(allowed), json!({})).await;
    assert_eq!(made("a").await.expect(201)["metadata"]["labels"]["l"], "yes");
    let costly =
        "string([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(a, lists.range(100000).all(b, b < a + 1000000)))";
    only(&server, label(costly), json!({})).await;
    let (code, _, why) = refused(made("a").await);
    assert_eq!(code, 403);
    assert!(why.ends_with("resulted in error: operation cancelled: actual cost limit exceeded"), "{why}");
    // A param of each of two names.
    let of_params =
        json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"}, "reinvocationPolicy": "IfNeeded"});
    let by_param = json!([patch(
        "[JSONPatch{op: 'add', path: '/data/' + params.metadata.name, value: params.metadata.labels.l}]"
    )]);
    only(&server, by_param, of_params).await;
    server.delete(format!("{MUTATING_BINDINGS}/b")).await.ok();
    let reference = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
    server.post(MUTATING_BINDINGS, &binding("b", "p", json!({"paramRef": reference}))).await.expect(201);
    let answer = made("a").await.json();
    let why = "policy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy \
               binding with `Deny` parameterNotFoundAction";
    assert_eq!(
        (&answer["code"], &answer["reason"], &answer["message"]),
        (&json!(403), &json!("Forbidden"), &json!(why))
    );
    assert_eq!(answer["details"], json!({"name": "a", "kind": "configmaps", "causes": [{"message": why}]}));
    for (name, value) in [("one", "1"), ("two", "2")] {
        let secret = json!({"metadata": {"name": name, "labels": {"l": value}}});
        server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    }
    assert_eq!(made("a").await.expect(201)["data"], json!({"k": "v", "one": "1", "two": "2"}));
    let unknown = json!({"paramKind": {"apiVersion": "ex.io/v1", "kind": "No"}});
    only(&server, label("'x'"), unknown).await;
    let why = "policy \"p\" denied request: failed to configure policy: failed to find resource referenced by \
               paramKind: 'ex.io/v1, Kind=No'";
    assert_eq!(refused(made("a").await), (403, "Forbidden".to_owned(), why.to_owned()));
}

/// Custom resources, subresources, other versions, patches and applies; and 88: what a policy may not match.
async fn admission_88_every_kind_and_verb(setup: Setup) {
    let server = setup.start().await;
    let mut deleting = policy("d", json!([configuration("Object{}")]), json!({}));
    deleting["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]);
    let failure = server.post(MUTATING, &deleting).await.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let property = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 3},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "all": {"type": "array", "items": {"type": "string"}}}});
    let schema = json!({"type": "object", "properties": {"spec": property}});
    let version = |name: &str, stored: bool| {
        json!({"name": name, "served": true, "storage": stored,
        "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version("v1", true), version("v2", false)]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let tagged = "Object{spec: Object.spec{tags: ['b', 'c']}, metadata: Object.metadata{labels: {'v': \
                  object.apiVersion.split('/')[1]}}}";
    let mut of_v2 = policy("p", json!([configuration(tagged)]), json!({}));
    of_v2["spec"]["matchConstraints"]["resourceRules"][0]["apiVersions"] = json!(["v2"]);
    server.post(MUTATING, &of_v2).await.expect(201);
    server.post(MUTATING_BINDINGS, &binding("b", "p", json!({}))).await.expect(201);
    let widgets = "/apis/ex.io/v1/namespaces/t/widgets";
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"tags": ["a", "b"]}});
    let made = server.post(widgets, &widget).await.expect(201);
    assert_eq!(made["apiVersion"], "ex.io/v1");
    assert_eq!(made["spec"], json!({"tags": ["a", "b", "c"], "size": 3}));
    assert_eq!(made["metadata"]["labels"]["v"], "v2");
    let patched = server.patch(format!("{widgets}/w"), &json!({"spec": {"tags": ["z"]}})).await.ok();
    assert_eq!(patched["spec"]["tags"], json!(["z", "b", "c"]));
    only(&server, json!([configuration("Object{spec: Object.spec{all: ['x']}}")]), json!({})).await;
    let why = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.all";
    let answer = server.patch(format!("{widgets}/w"), &json!({"spec": {"tags": ["y"]}})).await;
    assert_eq!(refused(answer), denied(why));
    // Unknown fields of custom resources are dropped.
    let unknown = "[JSONPatch{op: 'add', path: '/spec/nope', value: 1}, JSONPatch{op: 'replace', path: '/spec/size', \
                   value: 5}]";
    only(&server, json!([patch(unknown)]), json!({})).await;
    let patched = server.patch(format!("{widgets}/w"), &json!({"spec": {"tags": ["y"]}})).await.ok();
    assert_eq!((&patched["spec"]["size"], patched["spec"].get("nope")), (&json!(5), None));
    // A Scale is an object of its own.
    let scale =
        "object.kind == 'Scale' ? Object{spec: Object.spec{replicas: object.spec.replicas + 1}} : Object{}";
    only(&server, json!([configuration(scale)]), json!({})).await;
    server.post(DEPLOYMENTS, &deployment("d", json!({}))).await.expect(201);
    let scaled = server.patch(format!("{DEPLOYMENTS}/d/scale"), &json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    // A validating policy sees what the mutating one has made.
    only(
        &server,
        json!([configuration("Object{metadata: Object.metadata{labels: {'bad': 'yes'}}}")]),
        json!({}),
    )
    .await;
    let guard = json!({"metadata": {"name": "v"}, "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""],
        "apiVersions": ["*"], "resources": ["configmaps"], "operations": ["*"]}]},
        "validations": [{"expression": "!has(object.metadata.labels)"}]}});
    server.post(VALIDATING, &guard).await.expect(201);
    let bound =
        json!({"metadata": {"name": "v"}, "spec": {"policyName": "v", "validationActions": ["Deny"]}});
    server.post(VALIDATING_BINDINGS, &bound).await.expect(201);
    assert_eq!(server.post(CONFIGMAPS, &config_map("a", json!({}))).await.failure()["code"], 422);
    // Nothing that is deleted is mutated.
    server.delete(format!("{DEPLOYMENTS}/d")).await.ok();
}
