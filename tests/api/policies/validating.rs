//! ValidatingAdmissionPolicy.

use serde_json::{Value, json};

use super::{MUTATING, MUTATING_BINDINGS, VALIDATING as POLICIES, VALIDATING_BINDINGS as BINDINGS, extend};
use crate::support::client::Answer;
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, deployment};

on_every_store! {
    admission_62_a_binding_counts_from_its_answer_on,
    admission_63_64_65_66_67_refusals_and_messages,
    admission_68_69_70_71_72_params,
    admission_73_74_75_76_77_82_matching_and_variables,
    admission_78_79_annotations_and_costs,
    admission_80_the_authorizer,
    admission_122_a_request_whose_time_is_over_is_not_judged_to_its_end,
    admission_81_what_configures_admission,
    admission_89_types_are_checked,
}

/// A policy on ConfigMaps with these members of its spec.
fn policy(name: &str, spec: Value) -> Value {
    let mut whole = json!({"matchConstraints": {"resourceRules": [{"apiGroups": ["", "apps"], "apiVersions": ["*"],
        "resources": ["configmaps", "deployments", "namespaces"], "operations": ["*"]}]}});
    extend(&mut whole, spec);
    json!({"metadata": {"name": name}, "spec": whole})
}

fn binding(name: &str, policy: &str, spec: Value) -> Value {
    let mut whole = json!({"policyName": policy, "validationActions": ["Deny"]});
    extend(&mut whole, spec);
    json!({"metadata": {"name": name}, "spec": whole})
}

/// Sets the policy `p` and its binding `b`, in place of those there are.
async fn only(server: &TestServer, spec: Value, bound: Value) {
    server.delete(format!("{BINDINGS}/b")).await;
    server.delete(format!("{POLICIES}/p")).await;
    server.post(POLICIES, &policy("p", spec)).await.expect(201);
    server.post(BINDINGS, &binding("b", "p", bound)).await.expect(201);
}

async fn attempt(server: &TestServer, data: Value) -> Answer {
    server.post(format!("{CONFIGMAPS}?dryRun=All"), &config_map("a", data)).await
}

/// The code, the reason and the message of a failure, whose start is that of all denials.
fn denied(answer: Answer) -> (u64, String, String) {
    let failure = answer.json();
    let text = failure["message"].as_str().unwrap_or_default();
    let start =
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
    let why = text.strip_prefix(start).unwrap_or(text).to_owned();
    let reason = failure["reason"].as_str().unwrap_or_default().to_owned();
    (failure["code"].as_u64().unwrap_or_default(), reason, why)
}

fn validation(expression: &str, more: Value) -> Value {
    let mut validation = json!({"expression": expression});
    extend(&mut validation, more);
    json!([validation])
}

/// 62, 81. Without a binding a policy has no effect; with one it has from its answer on, on every server. Policies are seen
/// by none.
async fn admission_62_a_binding_counts_from_its_answer_on(setup: Setup) {
    let one = setup.start().await;
    let other =
        if matches!(setup.database, Database::Postgres(_)) { Some(setup.start().await) } else { None };
    let other = other.as_ref().unwrap_or(&one);
    let mut all = policy("p", json!({"validations": validation("false", json!({}))}));
    all["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = json!(["*"]);
    all["spec"]["matchConstraints"]["resourceRules"][0]["apiGroups"] = json!(["*"]);
    one.post(POLICIES, &all).await.expect(201);
    attempt(other, json!({})).await.expect(201);
    for _ in 0..3 {
        one.post(BINDINGS, &binding("b", "p", json!({}))).await.expect(201);
        let refused = attempt(other, json!({})).await;
        assert_eq!(denied(refused), (422, "Invalid".to_owned(), "failed expression: false".to_owned()));
        one.delete(format!("{BINDINGS}/b")).await.ok();
        attempt(other, json!({})).await.expect(201);
    }
    // Upstream's label tells no refusal from an error.
    let counted = "apiserver_validating_admission_policy_check_total{policy=\"p\",policy_binding=\"b\",\
                   error_type=\"invalid_error\",enforcement_action=\"deny\"} 3";
    assert!(other.get("/metrics").await.text().contains(counted));
}

/// 63, 64, 65, 66, 67. Refusals, their messages, and what else may become of a failure.
async fn admission_63_64_65_66_67_refusals_and_messages(setup: Setup) {
    let server = setup.start().await;
    let long = "x".repeat(6000);
    for (more, reason, code, message) in [
        (json!({}), "Invalid", 422, "failed expression: 'k' in object.data"),
        (json!({"reason": "Forbidden"}), "Forbidden", 403, "failed expression: 'k' in object.data"),
        (json!({"reason": "RequestEntityTooLarge", "message": " m "}), "RequestEntityTooLarge", 413, "m"),
        (
            json!({"message": "m", "messageExpression": "'say ' + object.metadata.name"}),
            "Invalid",
            422,
            "say a",
        ),
        (json!({"message": "m", "messageExpression": "'a\\nb'"}), "Invalid", 422, "m"),
        (json!({"message": "m", "messageExpression": "' '"}), "Invalid", 422, "m"),
        (json!({"message": "m", "messageExpression": format!("'{long}'")}), "Invalid", 422, "m"),
        (json!({"message": "m", "messageExpression": "string(object.data.missing)"}), "Invalid", 422, "m"),
    ] {
        only(&server, json!({"validations": validation("'k' in object.data", more)}), json!({})).await;
        let found = denied(attempt(&server, json!({"x": "y"})).await);
        assert_eq!(found, (code, reason.to_owned(), message.to_owned()));
        attempt(&server, json!({"k": "v"})).await.expect(201);
    }
    let failing = validation("object.data.k == 'v'", json!({}));
    only(&server, json!({"validations": failing}), json!({})).await;
    let why = "expression 'object.data.k == 'v'' resulted in error: no such key: k";
    assert_eq!(
        denied(attempt(&server, json!({"x": "y"})).await),
        (422, "Invalid".to_owned(), why.to_owned())
    );
    let refused = attempt(&server, json!({"x": "y"})).await.json();
    let cause = format!("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {why}");
    assert_eq!(
        refused["details"],
        json!({"name": "a", "kind": "configmaps", "causes": [{"message": cause}]})
    );
    only(&server, json!({"validations": failing}), json!({"validationActions": ["Warn", "Audit"]})).await;
    let warned = attempt(&server, json!({"x": "y"})).await;
    let text = format!("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': {why}");
    let header = warned.header("warning").expect("a warning").to_owned();
    assert_eq!(header, format!("299 - \"{text}\""));
    warned.expect(201);
    only(&server, json!({"validations": failing, "failurePolicy": "Ignore"}), json!({})).await;
    attempt(&server, json!({"x": "y"})).await.expect(201);
}

/// 68, 69, 70, 71, 72. Params.
async fn admission_68_69_70_71_72_params(setup: Setup) {
    let server = setup.start().await;
    let limits = |name: &str, label: &str, most: &str| json!({"metadata": {"name": name, "labels": {"l": label}}, "data": {"most": most}});
    let secrets = "/api/v1/namespaces/t/secrets";
    let text = |value: Value| json!({"metadata": value["metadata"], "stringData": value["data"]});
    let spec = |policy: &str| {
        json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"}, "failurePolicy": policy,
            "validations": validation("object.data.n != params.metadata.labels.l", json!({}))})
    };
    let by_name = |more: Value| {
        let mut reference = json!({"name": "one", "parameterNotFoundAction": "Deny"});
        extend(&mut reference, more);
        json!({"paramRef": reference})
    };
    let configured = |why: &str| (422, "Invalid".to_owned(), format!("failed to configure binding: {why}"));
    only(&server, spec("Fail"), by_name(json!({}))).await;
    let missing = "no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(denied(attempt(&server, json!({"n": "1"})).await), configured(missing));
    only(&server, spec("Fail"), by_name(json!({"parameterNotFoundAction": "Allow"}))).await;
    attempt(&server, json!({"n": "1"})).await.expect(201);
    only(&server, spec("Fail"), by_name(json!({}))).await;
    server.post(secrets, &text(limits("one", "1", "x"))).await.expect(201);
    assert_eq!(denied(attempt(&server, json!({"n": "1"})).await).0, 422);
    attempt(&server, json!({"n": "2"})).await.expect(201);
    server.patch(format!("{secrets}/one"), &json!({"metadata": {"labels": {"l": "2"}}})).await.ok();
    attempt(&server, json!({"n": "1"})).await.expect(201);
    assert_eq!(denied(attempt(&server, json!({"n": "2"})).await).0, 422);
    // One evaluation for each that is selected.
    server.post(secrets, &text(limits("three", "3", "x"))).await.expect(201);
    let selected = json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}});
    only(&server, spec("Fail"), selected).await;
    for (n, code) in [("2", 422), ("3", 422), ("4", 201)] {
        assert_eq!(u64::from(attempt(&server, json!({"n": n})).await.status), code, "{n}");
    }
    // Who manages a param is seen of custom resources only.
    let mut bare = spec("Fail");
    bare["validations"][0]["expression"] =
        "params.kind == 'Secret' && params.apiVersion == 'v1' && !has(params.metadata.managedFields)".into();
    only(&server, bare, by_name(json!({}))).await;
    attempt(&server, json!({"n": "1"})).await.expect(201);
    let mut of_cluster = spec("Fail");
    of_cluster["matchConstraints"] = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
        "operations": ["*"], "resources": ["clusterroles"]}]});
    only(&server, of_cluster, by_name(json!({}))).await;
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let refused = server.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.failure();
    let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
    assert!(refused["message"].as_str().expect("text").ends_with(why), "{refused}");
    // A custom resource counts as soon as it is served.
    let gauge = json!({"paramKind": {"apiVersion": "ex.io/v1", "kind": "Gauge"},
        "validations": validation("object.data.n != params.spec.n", json!({}))});
    let cluster = json!({"paramRef": {"name": "g", "parameterNotFoundAction": "Deny"}});
    only(&server, gauge.clone(), cluster.clone()).await;
    let refused = attempt(&server, json!({"n": "1"})).await.json();
    let why =
        "failed to configure policy: failed to find resource referenced by paramKind: 'ex.io/v1, Kind=Gauge'";
    assert_eq!(
        refused["message"],
        format!("configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: {why}")
    );
    let mut forgiving = gauge.clone();
    forgiving["failurePolicy"] = "Ignore".into();
    only(&server, forgiving, cluster.clone()).await;
    attempt(&server, json!({"n": "1"})).await.expect(201);
    only(&server, gauge, cluster).await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": "gauges.ex.io"}, "spec": {"group": "ex.io", "scope": "Cluster",
        "names": {"plural": "gauges", "kind": "Gauge"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    assert_eq!(denied(attempt(&server, json!({"n": "1"})).await), configured(missing));
    let object =
        json!({"apiVersion": "ex.io/v1", "kind": "Gauge", "metadata": {"name": "g"}, "spec": {"n": "1"}});
    server.post("/apis/ex.io/v1/gauges", &object).await.expect(201);
    assert_eq!(
        denied(attempt(&server, json!({"n": "1"})).await).2,
        "failed expression: object.data.n != params.spec.n"
    );
    attempt(&server, json!({"n": "2"})).await.expect(201);
}

/// 73, 74, 75, 76, 77, 82. What a policy matches and sees.
async fn admission_73_74_75_76_77_82_matching_and_variables(setup: Setup) {
    let server = setup.start().await;
    let rule = |resources: Value, more: Value| {
        let mut rule =
            json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources});
        extend(&mut rule, more);
        rule
    };
    let never = validation("false", json!({}));
    let excluded = json!({"validations": never, "matchConstraints": {"resourceRules": [rule(json!(["*"]), json!({}))],
        "excludeResourceRules": [rule(json!(["configmaps"]), json!({}))]}});
    only(&server, excluded, json!({})).await;
    attempt(&server, json!({})).await.expect(201);
    let web = "/apis/apps/v1/namespaces/t/deployments?dryRun=All";
    assert_eq!(server.post(web, &deployment("d", json!({}))).await.failure()["code"], 422);
    let named = |name: &str| {
        json!({"validations": never, "matchConstraints": {"resourceRules":
            [rule(json!(["configmaps"]), json!({"resourceNames": [name]}))]}})
    };
    only(&server, named("b"), json!({})).await;
    attempt(&server, json!({})).await.expect(201);
    only(&server, named("a"), json!({})).await;
    assert_eq!(attempt(&server, json!({})).await.failure()["code"], 422);
    let narrowed = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"x": "y"}}}});
    only(&server, json!({"validations": never}), narrowed).await;
    attempt(&server, json!({})).await.expect(201);
    server.delete(format!("{BINDINGS}/b")).await.ok();
    server.patch("/api/v1/namespaces/t", &json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
    for (expression, variables) in [
        ("namespaceObject.metadata.labels.x == 'y' && namespaceObject.metadata.name == 't'", json!([])),
        ("request.namespace == 't' && request.resource.resource == 'configmaps'", json!([])),
        ("(request.operation == 'DELETE') == (object == null)", json!([])),
        ("(request.operation == 'CREATE') == (oldObject == null)", json!([])),
        (
            "variables.ok",
            json!([{"name": "bad", "expression": "object.none"}, {"name": "ok", "expression": "true"}]),
        ),
        ("object.metadata.managedFields[0].fieldsV1 != null", json!([])),
    ] {
        only(
            &server,
            json!({"validations": validation(expression, json!({})), "variables": variables}),
            json!({}),
        )
        .await;
        attempt(&server, json!({"k": "v"})).await.expect(201);
    }
    let bad = json!({"validations": validation("variables.bad == 1", json!({})),
        "variables": [{"name": "bad", "expression": "object.none"}]});
    only(&server, bad, json!({})).await;
    let why = "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: no such \
               key: none";
    assert_eq!(denied(attempt(&server, json!({})).await).2, why);
    let cluster = json!({"validations": validation("!has(request.namespace) && namespaceObject == null", json!({})),
        "matchConstraints": {"resourceRules": [rule(json!(["clusterroles"]), json!({}))]}});
    only(&server, cluster, json!({})).await;
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    server.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.expect(201);
    // Of two policies that refuse, the first by name is answered, whichever was made first.
    server.delete(format!("{POLICIES}/p")).await.ok();
    for name in ["z", "y"] {
        let spec = json!({"validations": validation("false", json!({"message": name}))});
        server.post(POLICIES, &policy(name, spec)).await.expect(201);
        server.post(BINDINGS, &binding(name, name, json!({}))).await.expect(201);
    }
    let refused = attempt(&server, json!({})).await.json();
    assert!(refused["message"].as_str().expect("text").ends_with("'y' denied request: y"), "{refused}");
}

/// 78, 79. Annotations that fail, and expressions that cost too much.
async fn admission_78_79_annotations_and_costs(setup: Setup) {
    let server = setup.start().await;
    let annotated =
        json!({"auditAnnotations": [{"key": "k", "valueExpression": "string(object.data.missing)"}]});
    only(&server, annotated, json!({"validationActions": ["Audit"]})).await;
    let why = "expression 'string(object.data.missing)' resulted in error: no such key: missing";
    assert_eq!(
        denied(attempt(&server, json!({"x": "y"})).await),
        (422, "Invalid".to_owned(), why.to_owned())
    );
    let dear = "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))";
    only(&server, json!({"validations": validation(dear, json!({}))}), json!({})).await;
    let why =
        format!("expression '{dear}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(denied(attempt(&server, json!({})).await).2, why);
    let below = "lists.range(300).all(x, lists.range(300).all(y, x + y >= 0))";
    let many: Vec<Value> = (0..20).map(|_| json!({"expression": below})).collect();
    only(&server, json!({"validations": many}), json!({})).await;
    let why = "validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(denied(attempt(&server, json!({})).await).2, why);
}

/// 122. Expressions without end are interrupted when the request's time is over.
async fn admission_122_a_request_whose_time_is_over_is_not_judged_to_its_end(setup: Setup) {
    const POLICIES_IN_ALL: usize = 60;
    let server = setup.start().await;
    // Each takes nearly all that it may, and there are more of them than fit into a second.
    let dear = "lists.range(440).all(x, lists.range(440).all(y, x + y >= 0))";
    let validations: Vec<Value> = (0..10).map(|_| json!({"expression": dear})).collect();
    for number in 0..POLICIES_IN_ALL {
        let name = format!("p{number}");
        let spec = json!({"validations": validations});
        server.post(POLICIES, &policy(&name, spec)).await.expect(201);
        server.post(BINDINGS, &binding(&name, &name, json!({}))).await.expect(201);
    }
    let path = format!("{CONFIGMAPS}?dryRun=All&timeout=1s");
    server.post(path, &config_map("a", json!({}))).await.timed_out();
    server.get("/version").await.ok();
    assert!(checks(&server).await < POLICIES_IN_ALL as u64);
    // Nor afterwards.
    let begun = checks(&server).await;
    server
        .post(CONFIGMAPS.replace("configmaps", "secrets"), &json!({"metadata": {"name": "s"}}))
        .await
        .expect(201);
    assert_eq!(checks(&server).await, begun);
}

/// How many policies have been judged by.
async fn checks(server: &TestServer) -> u64 {
    let text = server.get("/metrics").await.text();
    let counts =
        text.lines().filter(|line| line.starts_with("apiserver_validating_admission_policy_check_total"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// 80. What an expression asks of the authorizer.
async fn admission_80_the_authorizer(setup: Setup) {
    let server = setup.start().await;
    for (expression, holds) in [
        ("authorizer.group('').resource('pods').namespace('x').check('get').allowed()", true),
        ("authorizer.requestResource.check('create').allowed()", true),
        ("authorizer.serviceAccount('t', 'nobody').group('').resource('pods').check('get').allowed()", false),
        ("authorizer.serviceAccount('t', 'nobody').path('/healthz').check('get').allowed()", false),
    ] {
        let created = server.delete(format!("{BINDINGS}/b")).await.status;
        assert!(created == 200 || created == 404);
        server.delete(format!("{POLICIES}/p")).await;
        let made = server
            .post(POLICIES, &policy("p", json!({"validations": validation(expression, json!({}))})))
            .await;
        if made.status == 422 {
            assert!(!holds, "{expression}: {made:?}");
            continue;
        }
        server.post(BINDINGS, &binding("b", "p", json!({}))).await.expect(201);
        let answer = attempt(&server, json!({})).await;
        assert_eq!(answer.status == 201, holds, "{expression}: {answer:?}");
    }
    let check = "authorizer.group('').resource('pods').check('VERB').allowed()";
    let of = |verbs: &[&str]| -> String {
        verbs.iter().map(|verb| check.replace("VERB", verb)).collect::<Vec<_>>().join(" && ")
    };
    only(&server, json!({"validations": validation(&of(&["get", "list"]), json!({}))}), json!({})).await;
    attempt(&server, json!({})).await.expect(201);
    let three = of(&["get", "list", "watch"]);
    only(&server, json!({"validations": validation(&three, json!({}))}), json!({})).await;
    let why =
        format!("expression '{three}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(denied(attempt(&server, json!({})).await).2, why);
    let told =
        validation("false", json!({"messageExpression": "authorizer.path('/').check('get').reason()"}));
    let refused = server.post(POLICIES, &policy("q", json!({"validations": told}))).await.failure();
    assert_eq!(refused["code"], 422, "{refused}");
}

/// 81. Policies see writes of webhooks' configurations, and none of policies and bindings.
async fn admission_81_what_configures_admission(setup: Setup) {
    let server = setup.start().await;
    let rule = json!({"apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]});
    let refusing =
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]});
    only(&server, refusing, json!({})).await;
    for kind in ["validating", "mutating"] {
        let hooks = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        let refused = server.post(hooks, &json!({"metadata": {"name": "h"}})).await.failure();
        let text = refused["message"].as_str().unwrap_or_default();
        assert!(text.contains("ValidatingAdmissionPolicy 'p' with binding 'b' denied request"), "{refused}");
    }
    server.post(POLICIES, &policy("q", json!({"validations": [{"expression": "false"}]}))).await.expect(201);
    server.post(BINDINGS, &binding("c", "q", json!({}))).await.expect(201);
    let mutations =
        json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]);
    let mut mutating = policy("m", json!({"mutations": mutations, "reinvocationPolicy": "Never"}));
    mutating["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["CREATE"]);
    server.post(MUTATING, &mutating).await.expect(201);
    let bound = json!({"metadata": {"name": "n"}, "spec": {"policyName": "m"}});
    server.post(MUTATING_BINDINGS, &bound).await.expect(201);
    // So an administrator gets out.
    server.delete(format!("{POLICIES}/p")).await.ok();
    server.delete(format!("{BINDINGS}/c")).await.ok();
}

/// Assertion 89: what is wrong with expressions if objects have their types is a warning at the write, and then in the status, which
/// follows the generation. Nothing is refused for it.
async fn admission_89_types_are_checked(setup: Setup) {
    let server = setup.start().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties":
        {"size": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": true}}}}});
    let definition = json!({"metadata": {"name": "gauges.ex.io"}, "spec": {"group": "ex.io", "scope": "Cluster",
        "names": {"plural": "gauges", "kind": "Gauge"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["*"]});
    let constraints = json!({"resourceRules": [rule("apps", "deployments"), rule("ex.io", "gauges")]});
    let checked = json!({"matchConstraints": constraints, "variables": [{"name": "s", "expression": "object.spec"}],
        "validations": [{"expression": "object.spec.nope == 1"}, {"expression": "object.spec.any == 'x'"},
            {"expression": "object.metadata.name == 'x'", "messageExpression": "object.spec.size + 'x'"}]});
    let made = server.post(POLICIES, &policy("p", checked)).await;
    let warnings = made.headers("warning");
    let complaint = "ERROR: <input>:1:12: undefined field 'nope'";
    for kind in ["apps/v1, Kind=Deployment", "ex.io/v1, Kind=Gauge"] {
        let text = format!("299 - \"spec.validations[0].expression: {kind}: {complaint}\"");
        assert!(warnings.contains(&text), "{warnings:?}");
    }
    made.expect(201);
    let status = async |generation: u64| loop {
        let found = server.get(format!("{POLICIES}/p")).await.ok();
        if found["status"]["observedGeneration"] == generation {
            return found;
        }
        tokio::task::yield_now().await;
    };
    let found = status(1).await;
    let marked = |column: usize, text: &str| format!("\n | {text}\n | {}^", ".".repeat(column - 1));
    let nope = format!("{complaint}{}", marked(12, "object.spec.nope == 1"));
    let wrong = &found["status"]["typeChecking"]["expressionWarnings"];
    assert_eq!(wrong[0]["fieldRef"], "spec.validations[0].expression");
    assert_eq!(
        wrong[0]["warning"],
        format!("apps/v1, Kind=Deployment: {nope}\n\nex.io/v1, Kind=Gauge: {nope}\n")
    );
    assert_eq!(wrong[1]["fieldRef"], "spec.validations[1].expression");
    let text = wrong[1]["warning"].as_str().expect("text");
    assert!(text.starts_with("apps/v1, Kind=Deployment: ") && !text.contains("Gauge"), "{text}");
    assert_eq!(wrong[2]["fieldRef"], "spec.validations[2].messageExpression");
    let entries = found["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|entry| entry["manager"] == "validatingadmissionpolicy-status");
    let entry = entry.expect("a manager of the status");
    assert_eq!((&entry["operation"], &entry["subresource"]), (&json!("Apply"), &json!("status")));
    let right = json!({"spec": {"validations": [{"expression": "has(object.spec)"}]}});
    let patched = server.patch(format!("{POLICIES}/p"), &right).await;
    assert_eq!(patched.headers("warning"), Vec::<String>::new());
    patched.ok();
    // As upstream's apply has it: of a struct whose members are all taken out, nothing is left.
    assert_eq!(status(2).await["status"], json!({"observedGeneration": 2}));
}
