//! Which requests a webhook is called for.

use http::Method;
use serde_json::{Value, json};

use super::{MUTATING, VALIDATING, allowing, configure, hook, metric, patch, requests, reviewed, told};
use crate::support::server::{CONFIGMAPS, Setup, config_map};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_21_22_what_no_webhook_sees,
    rules_for_what_no_webhook_sees_are_warned_of,
    admission_23_24_25_26_selectors_and_scopes,
    admission_27_28_29_equivalent_versions,
    admission_30_31_32_33_match_conditions,
    admission_61_custom_objects,
}

const HPAS_V1: &str = "/apis/autoscaling/v1/namespaces/t/horizontalpodautoscalers";
const EVENTS: &str = "/api/v1/namespaces/t/events";

/// 21, 22. What configures admission, and reviews, are seen by no webhook; a request for a token is.
async fn admission_21_22_what_no_webhook_sees(setup: Setup) {
    let server = setup.start().await;
    let refusing = WebhookServer::start(&[], |seen| reviewed(seen, json!({"allowed": false}))).await;
    server
        .post("/api/v1/namespaces/t/serviceaccounts", &json!({"metadata": {"name": "s"}}))
        .await
        .expect(201);
    let rule = json!({"resources": ["*/*"]});
    configure(&server, VALIDATING, "all", json!([hook("all", refusing.client_config("/"), rule, json!({}))]))
        .await;
    let refused = server.post(CONFIGMAPS, &config_map("a", json!({}))).await.failure();
    assert_eq!(refused["code"], 400);
    configure(&server, MUTATING, "other", json!([])).await;
    let review = json!({"spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}}});
    server.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.expect(201);
    let token = "/api/v1/namespaces/t/serviceaccounts/s/token";
    let refused = server.post(token, &json!({"spec": {}})).await.failure();
    assert_eq!(refused["code"], 400, "{refused}");
    // An administrator gets out.
    server.delete(format!("{VALIDATING}/all")).await.ok();
    server.create("a", json!({})).await;
}

/// A rule that names what no webhook sees is stored, with a warning for each such resource.
async fn rules_for_what_no_webhook_sees_are_warned_of(setup: Setup) {
    let server = setup.start().await;
    let rule = |groups: &[&str], resources: &[&str]| json!({"operations": ["*"], "apiGroups": groups, "apiVersions": ["v1"], "resources": resources});
    let rules = [
        rule(&["apps"], &["deployments"]),
        rule(
            &["authentication.k8s.io", "authorization.k8s.io"],
            &["tokenreviews", "subjectaccessreviews", "tokenreviews"],
        ),
        rule(&["*"], &["tokenreviews"]),
        rule(&["authentication.k8s.io"], &["*"]),
    ];
    let hook = json!({"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "s"}}, "rules": rules});
    let told = |resource: &str| {
        format!(
            "299 - \"webhooks[0].rules[1]: {resource} is excluded from admission webhooks; this rule will have no effect\""
        )
    };
    for path in [VALIDATING, MUTATING] {
        let made = server.post(path, &json!({"metadata": {"name": "w"}, "webhooks": [hook]})).await;
        made.expect(201);
        let want =
            [told("tokenreviews.authentication.k8s.io"), told("subjectaccessreviews.authorization.k8s.io")];
        assert_eq!(made.headers("warning"), want);
        let changed = server.patch(format!("{path}/w"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(changed.headers("warning"), want);
    }
}

/// 23, 24, 25, 26. Selectors and scopes.
async fn admission_23_24_25_26_selectors_and_scopes(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    let namespaces = "/api/v1/namespaces";
    let labelled = |name: &str, value: &str| json!({"metadata": {"name": name, "labels": {"in": value}}});
    server.post(namespaces, &labelled("yes", "1")).await.expect(201);
    server.post(namespaces, &labelled("no", "0")).await.expect(201);
    let selected = json!({"namespaceSelector": {"matchLabels": {"in": "1"}}});
    let rule = json!({"resources": ["configmaps", "namespaces", "clusterroles"]});
    configure(&server, VALIDATING, "v", json!([hook("v", web.client_config("/"), rule, selected)])).await;
    let called = || requests(&web).len();
    for (namespace, calls) in [("yes", 1), ("no", 0)] {
        let path = format!("{namespaces}/{namespace}/configmaps");
        server.post(path, &config_map("a", json!({}))).await.expect(201);
        assert_eq!(called(), calls, "{namespace}");
    }
    // Of a Namespace that is written the new labels count, of one that is deleted the stored ones.
    server.patch(format!("{namespaces}/no"), &json!({"metadata": {"labels": {"in": "1"}}})).await.ok();
    assert_eq!(called(), 1);
    server.patch(format!("{namespaces}/no"), &json!({"metadata": {"labels": {"in": "0"}}})).await.ok();
    assert_eq!(called(), 0);
    let mut watch = server.watch(format!("{namespaces}?watch=1&fieldSelector=metadata.name%3Dyes")).await;
    server.delete(format!("{namespaces}/yes")).await.ok();
    while watch.next().await.expect("the namespace goes")["type"] != "DELETED" {}
    assert!(called() > 0);
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    server.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.expect(201);
    assert_eq!(called(), 1, "what is in no namespace is never excluded");
    server.delete(format!("{VALIDATING}/v")).await.ok();

    let selected = json!({"objectSelector": {"matchLabels": {"in": "1"}}});
    configure(&server, VALIDATING, "v", json!([hook("v", web.client_config("/"), json!({}), selected)]))
        .await;
    let mut object = config_map("o", json!({}));
    object["metadata"]["labels"] = json!({"in": "1"});
    server.post(CONFIGMAPS, &object).await.expect(201);
    server.patch(format!("{CONFIGMAPS}/o"), &json!({"metadata": {"labels": null}})).await.ok();
    assert_eq!(called(), 2, "the old object is selected");
    server.set("o", json!({"k": "v"})).await;
    assert_eq!(called(), 0);
    server.delete(format!("{VALIDATING}/v")).await.ok();

    for scope in ["Cluster", "Namespaced"] {
        let rule = json!({"resources": ["*"], "scope": scope});
        let path = format!("/{scope}");
        let hooks = json!([hook("v", web.client_config(&path), rule, json!({}))]);
        configure(&server, VALIDATING, &scope.to_lowercase(), hooks).await;
    }
    let scopes = || -> Vec<String> { web.seen().into_iter().map(|seen| seen.path).collect() };
    server.post(namespaces, &labelled("new", "0")).await.expect(201);
    assert_eq!(scopes(), ["/Cluster?timeout=10s"]);
    server.set("o", json!({"k": "w"})).await;
    assert_eq!(scopes(), ["/Namespaced?timeout=10s"]);
}

/// 27, 28, 29. Other versions of a resource.
async fn admission_27_28_29_equivalent_versions(setup: Setup) {
    let server = setup.start().await;
    let web = WebhookServer::start(&[], |seen| {
        let is_v2 = seen.body["request"]["kind"]["version"] == "v2";
        let operations = json!([{"op": "add", "path": "/spec/minReplicas", "value": 2}]);
        reviewed(seen, if is_v2 { patch(operations) } else { json!({}) })
    })
    .await;
    let rule = |group: &str, version: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": [version], "resources": [resource]});
    let scalers = rule("autoscaling", "v2", "horizontalpodautoscalers");
    configure(&server, MUTATING, "m", json!([hook("m", web.client_config("/"), scalers.clone(), json!({}))]))
        .await;
    let exact = json!({"matchPolicy": "Exact"});
    configure(&server, VALIDATING, "exact", json!([hook("v", web.client_config("/exact"), scalers, exact)]))
        .await;
    let scaler = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 70,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let made = server.post(HPAS_V1, &scaler).await.expect(201);
    assert_eq!(made["apiVersion"], "autoscaling/v1");
    assert_eq!(made["spec"]["minReplicas"], 2, "{made}");
    let seen = requests(&web);
    assert_eq!(seen.len(), 1, "exact ones are not called");
    let request = &seen[0];
    assert_eq!((&request["kind"]["version"], &request["resource"]["version"]), (&json!("v2"), &json!("v2")));
    assert_eq!(request["requestKind"]["version"], "v1");
    assert_eq!(request["requestResource"]["version"], "v1");
    assert_eq!(request["object"]["apiVersion"], "autoscaling/v2");
    assert_eq!(request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);

    let events = rule("events.k8s.io", "v1", "events");
    configure(&server, VALIDATING, "events", json!([hook("e", web.client_config("/"), events, json!({}))]))
        .await;
    let event = json!({"metadata": {"name": "e"}, "message": "m", "reason": "r", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "t"}});
    server.post(EVENTS, &event).await.expect(201);
    let seen = requests(&web);
    assert_eq!(seen[0]["object"]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(seen[0]["object"]["note"], "m");
    assert_eq!(seen[0]["object"]["regarding"]["name"], "p");
    assert_eq!(seen[0]["requestKind"]["group"], "");
}

/// 30, 31, 32, 33. Match conditions.
async fn admission_30_31_32_33_match_conditions(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    let conditions = |expressions: &[&str], more: Value| {
        let list: Vec<Value> = expressions
            .iter()
            .enumerate()
            .map(|(number, text)| json!({"name": format!("c{number}"), "expression": text}))
            .collect();
        let mut more = more;
        more["matchConditions"] = list.into();
        json!([hook("v", web.client_config("/"), json!({}), more)])
    };
    let (calls, skips) = (Some(1), Some(0));
    for (expressions, policy, outcome) in [
        (&["object.metadata.name == 'a'"][..], "Fail", calls),
        (&["object.metadata.name != 'a'"], "Fail", skips),
        (&["namespaceObject == null && oldObject == null"], "Fail", calls),
        (
            &["request.operation == 'CREATE' && request.userInfo.username == 'kubernetes-admin'"],
            "Fail",
            calls,
        ),
        (&["object.data.x == ''"], "Ignore", skips),
        (&["object.data.x == ''", "false"], "Fail", skips),
        (&["false", "object.data.x == ''"], "Fail", skips),
        (&["object.data.x == ''"], "Fail", None),
    ] {
        configure(&server, VALIDATING, "v", conditions(expressions, json!({"failurePolicy": policy}))).await;
        let answer =
            server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", json!({"k": "v"}))).await;
        match outcome {
            Some(calls) => {
                answer.expect(201);
                assert_eq!(requests(&web).len(), calls, "{expressions:?}");
            }
            None => {
                let text = "configmaps \"a\" is forbidden: expression 'object.data.x == ''' resulted in error: no such \
                            key: x";
                assert_eq!(told(&answer.failure()), (403, text.to_owned()));
                assert!(web.seen().is_empty());
            }
        }
        server.delete(format!("{VALIDATING}/v")).await.ok();
    }
    let labels = "{name=\"v.ex.io\",kind=\"webhook\",type=\"validating\",operation=\"CREATE\"}";
    // Upstream has another word for the step in this metric alone.
    let excluded = labels.replace("validating", "validate");
    assert!(
        metric(&server, &format!("apiserver_admission_match_condition_exclusions_total{excluded} 4")).await
    );
    let errors = "apiserver_admission_match_condition_evaluation_errors_total";
    assert!(metric(&server, &format!("{errors}{labels} 2")).await);
    let times = "apiserver_admission_match_condition_evaluation_seconds_count";
    assert!(metric(&server, &format!("{times}{labels} ")).await);
}

/// 61. Custom objects are seen as their schema has them, and judged by it afterwards.
async fn admission_61_custom_objects(setup: Setup) {
    let server = setup.start().await;
    let web = WebhookServer::start(&[], |seen| {
        let color = seen.body["request"]["object"]["spec"]["color"].as_str().unwrap_or_default().to_owned();
        let to: Value = if color == "bad" { json!(7) } else { json!("green") };
        reviewed(
            seen,
            patch(json!([{"op": "replace", "path": "/spec/color", "value": to},
            {"op": "add", "path": "/spec/unknown", "value": 1}])),
        )
    })
    .await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "color": {"type": "string"}, "size": {"type": "integer", "default": 3}}}}});
    let definition = json!({"metadata": {"name": "paints.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "paints", "kind": "Paint"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let rule = json!({"apiGroups": ["ex.io"], "resources": ["paints"]});
    configure(&server, MUTATING, "m", json!([hook("m", web.client_config("/"), rule, json!({}))])).await;
    let paints = "/apis/ex.io/v1/namespaces/t/paints";
    let paint = |color: &str| {
        json!({"apiVersion": "ex.io/v1", "kind": "Paint", "metadata": {"name": "p"},
            "spec": {"color": color, "other": true}})
    };
    let made = server.post(paints, &paint("red")).await.expect(201);
    assert_eq!(made["spec"], json!({"color": "green", "size": 3}));
    assert_eq!(requests(&web)[0]["object"]["spec"], json!({"color": "red", "size": 3}));
    let mut bad = paint("bad");
    bad["metadata"]["name"] = "q".into();
    let refused = server.request(Method::POST, paints).json(&bad).await.failure();
    assert_eq!(refused["code"], 422, "{refused}");
}
