//! Objects that upstream refuses, and the whole answer. What every kind has to be is compared with upstream's own
//! verdicts elsewhere (`crates/api/tests/modules/verdicts.rs`).

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup};

const PODS: &str = "/api/v1/namespaces/t/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

on_every_store! {
    several_causes_are_one_answer,
    one_cause_stands_alone,
    selectors_match_and_stay,
    kept_maps_stay,
    statuses_have_rules_of_their_own,
    every_way_to_write_is_checked,
    expressions_speak_of_what_there_is,
    an_empty_list_is_not_none,
    names_of_events_come_last,
    templates_of_claims_are_validated_before_they_are_immutable,
    declared_rules_come_last,
    unions_are_declared,
    a_name_that_no_path_can_have_is_told_alone,
}

/// Each cause is (reason, field, message).
#[track_caller]
fn refused(answer: &Answer, kind: (&str, &str), name: &str, causes: &[(&str, &str, &str)]) {
    let (group, kind) = kind;
    let mut texts: Vec<String> =
        causes.iter().map(|(_, field, message)| format!("{field}: {message}")).collect();
    // The text says once what the causes say twice.
    texts.dedup();
    let texts = if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) };
    let causes: Vec<Value> = causes
        .iter()
        .map(|(reason, field, message)| json!({"reason": reason, "message": message, "field": field}))
        .collect();
    let mut details = json!({"name": name, "kind": kind, "causes": causes});
    let mut called = kind.to_owned();
    if !group.is_empty() {
        details["group"] = json!(group);
        called = format!("{kind}.{group}");
    }
    answer.fails(422, "Invalid", &format!("{called} \"{name}\" is invalid: {texts}"), details);
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "nginx:1"}]}})
}

fn web() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
            },
        },
    })
}

async fn several_causes_are_one_answer(setup: Setup) {
    let server = setup.start().await;
    let mut pod = pod("p");
    pod["spec"]["restartPolicy"] = json!("Sometimes");
    pod["spec"]["containers"] = json!([
        {"name": "App", "ports": [{"containerPort": 0}]},
        {"name": "App", "image": "nginx:1", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}},
    ]);
    let label = "Invalid value: \"App\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let causes = [
        ("FieldValueInvalid", "spec.containers[0].name", label),
        ("FieldValueRequired", "spec.containers[0].image", "Required value"),
        ("FieldValueRequired", "spec.containers[0].ports[0].containerPort", "Required value"),
        ("FieldValueInvalid", "spec.containers[1].name", label),
        ("FieldValueDuplicate", "spec.containers[1].name", "Duplicate value: \"App\""),
        (
            "FieldValueInvalid",
            "spec.containers[1].resources.requests",
            "Invalid value: \"2\": must be less than or equal to cpu limit of 1500m",
        ),
        (
            "FieldValueNotSupported",
            "spec.restartPolicy",
            "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
    ];
    let answer = server.post(PODS, &pod).await;
    // Upstream's order of these depends on its version; they are all there.
    let mut found: Vec<Value> = answer.failure()["details"]["causes"].as_array().expect("causes").clone();
    found.sort_by_key(ToString::to_string);
    let mut wanted: Vec<Value> = causes
        .iter()
        .map(|(reason, field, message)| json!({"reason": reason, "message": message, "field": field}))
        .collect();
    wanted.sort_by_key(ToString::to_string);
    assert_eq!(found, wanted);
    assert_eq!(server.get(format!("{PODS}/p")).await.failure()["code"], 404);
}

async fn one_cause_stands_alone(setup: Setup) {
    let server = setup.start().await;
    let mut empty = pod("p");
    empty["spec"]["containers"] = json!([]);
    let cause = [("FieldValueRequired", "spec.containers", "Required value")];
    refused(&server.post(PODS, &empty).await, ("", "Pod"), "p", &cause);
    let mut imageless = pod("p");
    imageless["spec"]["containers"][0] = json!({"name": "app"});
    let cause = [("FieldValueRequired", "spec.containers[0].image", "Required value")];
    refused(&server.post(PODS, &imageless).await, ("", "Pod"), "p", &cause);
}

async fn selectors_match_and_stay(setup: Setup) {
    let server = setup.start().await;
    let kind = ("apps", "Deployment");
    let mut other = web();
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let cause = [(
        "FieldValueInvalid",
        "spec.template.metadata.labels",
        "Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`",
    )];
    refused(&server.post(DEPLOYMENTS, &other).await, kind, "web", &cause);
    server.post(DEPLOYMENTS, &web()).await.expect(201);
    other["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    let cause = [(
        "FieldValueInvalid",
        "spec.selector",
        "Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: field is immutable",
    )];
    refused(&server.put(format!("{DEPLOYMENTS}/web"), &other).await, kind, "web", &cause);
    let negative = server.patch(format!("{DEPLOYMENTS}/web"), &json!({"spec": {"replicas": -1}})).await;
    let cause =
        [("FieldValueInvalid", "spec.replicas", "Invalid value: -1: must be greater than or equal to 0")];
    refused(&negative, kind, "web", &cause);
}

async fn kept_maps_stay(setup: Setup) {
    let server = setup.start().await;
    let fixed = json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": true});
    server.post(CONFIGMAPS, &fixed).await.expect(201);
    let why = "Forbidden: field is immutable when `immutable` is set";
    for (change, field) in [(json!({"data": {"a": "2"}}), "data"), (json!({"immutable": null}), "immutable")]
    {
        let answer = server.patch(format!("{CONFIGMAPS}/c"), &change).await;
        refused(&answer, ("", "ConfigMap"), "c", &[("FieldValueForbidden", field, why)]);
    }
    let labelled = json!({"metadata": {"labels": {"still": "writable"}}});
    server.patch(format!("{CONFIGMAPS}/c"), &labelled).await.ok();
}

async fn statuses_have_rules_of_their_own(setup: Setup) {
    let server = setup.start().await;
    server.post(DEPLOYMENTS, &web()).await.expect(201);
    let status = format!("{DEPLOYMENTS}/web/status");
    let answer = server.patch(&status, &json!({"status": {"replicas": 1, "readyReplicas": 2}})).await;
    let cause = [(
        "FieldValueInvalid",
        "status.readyReplicas",
        "Invalid value: 2: cannot be greater than status.replicas",
    )];
    refused(&answer, ("apps", "Deployment"), "web", &cause);
    server.patch(&status, &json!({"status": {"replicas": 2, "readyReplicas": 2}})).await.ok();
}

async fn every_way_to_write_is_checked(setup: Setup) {
    let server = setup.start().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let at = format!("{PODS}/p");
    let field = "spec.containers[0].image";
    let kind = ("", "Pod");
    let cause = ("FieldValueRequired", field, "Required value");
    // Upstream looks at images of a new version twice.
    let twice = [cause, cause];
    let strategic = json!({"spec": {"containers": [{"name": "app", "image": ""}]}}).to_string();
    let answer = server
        .request(http::Method::PATCH, &at)
        .body("application/strategic-merge-patch+json", strategic.clone())
        .await;
    refused(&answer, kind, "p", &twice);
    let operations = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": ""}]).to_string();
    let answer =
        server.request(http::Method::PATCH, &at).body("application/json-patch+json", operations).await;
    refused(&answer, kind, "p", &twice);
    let applied = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"},
        "spec": {"containers": [{"name": "app"}]},
    });
    let answer = server
        .request(http::Method::PATCH, format!("{PODS}/q?fieldManager=test"))
        .body("application/apply-patch+yaml", applied.to_string())
        .await;
    refused(&answer, kind, "q", &[cause]);
    let answer = server.post(format!("{PODS}?dryRun=All"), &applied).await;
    refused(&answer, kind, "q", &[cause]);
    assert_eq!(server.get(&at).await.ok()["spec"]["containers"][0]["image"], "nginx:1");
}

async fn expressions_speak_of_what_there_is(setup: Setup) {
    let server = setup.start_empty().await;
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let policy = |expression: &str| {
        let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["deployments"]}]);
        json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": rules},
            "variables": [{"name": "replicas", "expression": "object.spec.replicas"}],
            "validations": [{"expression": expression}]}})
    };
    let tried = "variables.replicas <= 5 &&\n  objekt.spec.paused";
    let why = "compilation failed: ERROR: <input>:2:3: undeclared reference to 'objekt' (in container '')\n \
               |   objekt.spec.paused\n | ..^";
    let message = format!("Invalid value: {tried:?}: {why}");
    let answer = server.post(policies, &policy(tried)).await;
    let kind = ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy");
    let field = "spec.validations[0].expression";
    refused(&answer, kind, "p", &[("FieldValueInvalid", field, &message)]);
    let text = "Invalid value: \"variables.replicas\": must evaluate to bool but got dyn";
    let answer = server.post(policies, &policy("variables.replicas")).await;
    refused(&answer, kind, "p", &[("FieldValueInvalid", field, text)]);
    server.post(policies, &policy("variables.replicas <= 5")).await.expect(201);

    let crd = |rule: &str| {
        let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]}})
    };
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = server.post(crds, &crd("self.replicsa > 0")).await.failure();
    let cause = &answer["details"]["causes"][0];
    let field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!((&answer["code"], &cause["field"]), (&json!(422), &json!(field)), "{answer}");
    let text = cause["message"].as_str().expect("a message");
    assert!(text.contains("ERROR: <input>:1:5: undefined field 'replicsa'"), "{text}");
    server.post(crds, &crd("self.replicas > 0")).await.expect(201);
}

async fn an_empty_list_is_not_none(setup: Setup) {
    let server = setup.start().await;
    let scalers = "/apis/autoscaling/v2/namespaces/t/horizontalpodautoscalers";
    let scaler = |behavior: Value| {
        json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "behavior": behavior,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}})
    };
    let told = "must specify at least one Policy";
    for side in ["scaleDown", "scaleUp"] {
        let field = format!("spec.behavior.{side}.policies");
        let causes = [("FieldValueRequired", &*field, &*format!("Required value: {told}"))];
        let kind = ("autoscaling", "HorizontalPodAutoscaler");
        let refuses = async |rules: Value| {
            let answer = server.post(scalers, &scaler(json!({side: rules}))).await;
            refused(&answer, kind, "h", &causes);
        };
        refuses(json!({"policies": []})).await;
        refuses(json!({"policies": [], "selectPolicy": "Disabled"})).await;
    }
    let made = server.post(scalers, &scaler(json!({"scaleUp": {"policies": null}}))).await.expect(201);
    assert_eq!(made["spec"]["behavior"]["scaleUp"]["policies"].as_array().map(Vec::len), Some(2));
    let patch = json!({"spec": {"behavior": {"scaleUp": {"policies": []}}}});
    let field = "spec.behavior.scaleUp.policies";
    let causes = [("FieldValueRequired", field, &*format!("Required value: {told}"))];
    let answer = server.patch(format!("{scalers}/h"), &patch).await;
    refused(&answer, ("autoscaling", "HorizontalPodAutoscaler"), "h", &causes);
    // JSON that is kept as it is does not change by an empty list either.
    let revisions = "/apis/apps/v1/namespaces/t/controllerrevisions";
    let revision = |data: Value| json!({"metadata": {"name": "r"}, "revision": 1, "data": data});
    server.post(revisions, &revision(json!({"a": "b", "n": null}))).await.expect(201);
    server.put(format!("{revisions}/r"), &revision(json!({"a": "b", "n": null}))).await.ok();
    for data in
        [json!({"a": "b", "n": null, "l": []}), json!({"a": "b"}), json!({"a": "b", "n": null, "s": {}})]
    {
        let answer = server.put(format!("{revisions}/r"), &revision(data)).await;
        let causes = &answer.failure()["details"]["causes"];
        assert_eq!(
            (&causes[0]["field"], causes.as_array().map(Vec::len)),
            (&json!("data"), Some(1)),
            "{causes}"
        );
        assert!(causes[0]["message"].as_str().is_some_and(|text| text.ends_with(": field is immutable")));
    }
}

async fn templates_of_claims_are_validated_before_they_are_immutable(setup: Setup) {
    let server = setup.start().await;
    let templates = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaimtemplates";
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}});
    let template = |request: &Value| json!({"metadata": {"name": "a"}, "spec": {"spec": {"devices": {"requests": [request]}}}});
    server.post(templates, &template(&request)).await.expect(201);
    let refused = server.put(format!("{templates}/a"), &template(&json!({"name": "gpu"}))).await.failure();
    assert_eq!(fields(&refused), ["spec.spec.devices.requests[0]", "spec"]);
    server.stop().await;
}

fn fields(refused: &Value) -> Vec<&str> {
    let causes = refused["details"]["causes"].as_array().expect("causes");
    causes.iter().filter_map(|cause| cause["field"].as_str()).collect()
}

async fn declared_rules_come_last(setup: Setup) {
    let server = setup.start().await;
    let templates = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaimtemplates";
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}});
    let template = |requests: &[&Value]| json!({"metadata": {"name": "a"}, "spec": {"spec": {"devices": {"requests": requests}}}});
    server.post(templates, &template(&[&request])).await.expect(201);
    let refused = server.put(format!("{templates}/a"), &template(&[&request, &request])).await.failure();
    assert_eq!(fields(&refused), ["spec", "spec.spec.devices.requests[1]"]);
    // Both rules of the list are declared; a list that is too long has no other error.
    let many: Vec<&Value> = vec![&request; 33];
    let refused = server.post(templates, &template(&many)).await.failure();
    assert_eq!(
        refused["details"]["causes"],
        json!([{"reason": "FieldValueTooMany", "field": "spec.spec.devices.requests",
        "message": "Too many: 33: must have at most 32 items"}])
    );
    server.stop().await;
}

async fn unions_are_declared(setup: Setup) {
    let server = setup.start().await;
    let slice = |attribute: Value| {
        json!({"metadata": {"name": "s"}, "spec": {
            "driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu", "attributes": {"model": attribute}}],
        }})
    };
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let all = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";
    for (attribute, message) in [
        (json!({}), format!("Invalid value: \"\": must specify one of: {all}")),
        (
            json!({"int": 1, "string": "a"}),
            format!("Invalid value: \"{{`int`, `string`}}\": must specify exactly one of: {all}"),
        ),
    ] {
        let refused = server.post(slices, &slice(attribute)).await.failure();
        assert_eq!(
            refused["details"]["causes"],
            json!([{"reason": "FieldValueInvalid",
            "field": "spec.devices[0].attributes[model]", "message": message}])
        );
    }
    server.stop().await;
}

async fn names_of_events_come_last(setup: Setup) {
    let server = setup.start().await;
    let events = "/api/v1/namespaces/t/events";
    let event = |namespace: &str| json!({"metadata": {}, "involvedObject": {"namespace": namespace}});
    for (namespace, told) in [
        ("other", "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"),
        ("t", "metadata.name: Required value: name or generateName is required"),
    ] {
        let refused = server.post(events, &event(namespace)).await.failure();
        assert_eq!(refused["message"], format!("Event \"\" is invalid: {told}"));
    }
}

/// The name of an APIService is compared with its group and version once it is a name.
async fn a_name_that_no_path_can_have_is_told_alone(setup: Setup) {
    let server = setup.start().await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices?dryRun=All";
    let service = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"group": "ex.io", "version": "v1", "groupPriorityMinimum": 1,
            "versionPriority": 1, "service": {"namespace": "t", "name": "s"}, "insecureSkipTLSVerify": true}})
    };
    let kind = ("apiregistration.k8s.io", "APIService");
    for (name, why) in [
        ("10%", "may not contain '%'"),
        ("v2.ex.io", "must be `spec.version+\".\"+spec.group`: \"v1.ex.io\""),
    ] {
        let message = format!("Invalid value: \"{name}\": {why}");
        let refusal = server.post(services, &service(name)).await;
        refused(&refusal, kind, name, &[("FieldValueInvalid", "metadata.name", &message)]);
    }
    server.post(services, &service("v1.ex.io")).await.expect(201);
}
