//! Bodies and what becomes of them; assertions of `docs/spec/wire.md` by number. 23 is in
//! `custom_resources/elsewhere.rs`.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Request};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const SECRETS: &str = "/api/v1/namespaces/t/secrets";
const QUOTAS: &str = "/api/v1/namespaces/t/resourcequotas";

on_every_store! {
    wire_24_an_integer_is_one,
    wire_26_fields_that_nobody_knows,
    wire_27_the_last_of_a_name_counts,
    wire_33_the_smallest_quantity,
    wire_35_bytes_are_base64,
    wire_36_json_that_ends_early,
    wire_37_another_kind,
    the_core_version_with_a_slash_is_the_same,
}

fn post(server: &TestServer, path: &str, body: impl Into<String>) -> Request {
    server.request(Method::POST, path).body("application/json", body.into())
}

fn warnings(answer: &Answer) -> Vec<&str> {
    answer.headers.get_all("warning").iter().map(|value| value.to_str().expect("text")).collect()
}

async fn wire_24_an_integer_is_one(setup: Setup) {
    let server = setup.start().await;
    let text = deployment("d", json!({"replicas": 7})).to_string();
    for (sent, found) in
        [("1.0", "number 1.0"), ("2147483648", "number 2147483648"), ("\"1\"", "string"), ("true", "bool")]
    {
        let refused = post(&server, DEPLOYMENTS, text.replace(":7", &format!(":{sent}"))).await;
        refused.bad_request(&format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal {found} into Go \
             struct field DeploymentSpec.spec.replicas of type int32"
        ));
    }
}

async fn wire_26_fields_that_nobody_knows(setup: Setup) {
    let server = setup.start().await;
    let mut object = deployment("d", json!({"x": 1}));
    object["Spec"] = json!({"replicas": 3});
    let strict = server.post(format!("{DEPLOYMENTS}?fieldValidation=Strict"), &object).await;
    strict.bad_request(
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
         unknown field \"spec.x\", unknown field \"Spec\"",
    );
    let warned = server.post(DEPLOYMENTS, &object).await;
    let told = [r#"299 - "unknown field \"spec.x\"""#, r#"299 - "unknown field \"Spec\"""#];
    assert_eq!((warned.status, warnings(&warned)), (201, told.to_vec()));
    let made = warned.json();
    assert_eq!((made.get("Spec"), made["spec"].get("x")), (None, None));
    assert_eq!(made["spec"]["replicas"], 1);
}

async fn wire_27_the_last_of_a_name_counts(setup: Setup) {
    let server = setup.start().await;
    let body = r#"{"metadata":{"name":"a","labels":{"l":"1","l":"2"}},"data":{"k":"v"},"data":{"m":"w"}}"#;
    let created = post(&server, CONFIGMAPS, body).await;
    let told = [r#"299 - "duplicate field \"metadata.labels.l\"""#, r#"299 - "duplicate field \"data\"""#];
    assert_eq!((created.status, warnings(&created)), (201, told.to_vec()));
    let created = created.json();
    assert_eq!(created["metadata"]["labels"], json!({"l": "2"}));
    // Maps are merged, as Go's decoder does.
    assert_eq!(created["data"], json!({"k": "v", "m": "w"}));
}

const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

async fn wire_33_the_smallest_quantity(setup: Setup) {
    let server = setup.start().await;
    let quota = |cpu: &str| json!({"metadata": {"name": "q"}, "spec": {"hard": {"cpu": cpu}}});
    for (cpu, why) in [
        ("1mm", "unable to parse quantity's suffix"),
        ("1Kim", "unable to parse quantity's suffix"),
        ("1x", FORM),
        ("one", FORM),
    ] {
        let refused = server.post(QUOTAS, &quota(cpu)).await;
        refused.bad_request(&format!(
            "ResourceQuota in version \"v1\" cannot be handled as a ResourceQuota: {why}"
        ));
    }
    let volume = json!({"name": "v", "emptyDir": {"sizeLimit": "0.0000000001"}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"volumes": [volume], "containers": [{"name": "c", "image": "i"}]}});
    let created = server.post("/api/v1/namespaces/t/pods", &pod).await.expect(201);
    assert_eq!(created["spec"]["volumes"][0]["emptyDir"]["sizeLimit"], "1n", "rounded up");
    // A default of lists of resources: whole thousandths.
    let created = server.post(QUOTAS, &quota("0.0000000001")).await.expect(201);
    assert_eq!(created["spec"]["hard"]["cpu"], "1m");
}

async fn wire_35_bytes_are_base64(setup: Setup) {
    let server = setup.start().await;
    let secret = |data: &str| json!({"metadata": {"name": "s"}, "data": {"k": data}});
    for (data, at) in [("%", 0), ("YWJj!", 4), ("YQ", 0), ("YWI-", 3)] {
        let refused = server.post(SECRETS, &secret(data)).await;
        refused.bad_request(&format!(
            "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {at}"
        ));
    }
    let created = server.post(SECRETS, &secret("YW\nJj")).await.expect(201);
    assert_eq!(created["data"]["k"], "YWJj");
}

async fn wire_36_json_that_ends_early(setup: Setup) {
    let server = setup.start().await;
    let refused = post(&server, CONFIGMAPS, r#"{"metadata":{"name":"a"},"data":{"k"#).await;
    let start = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json \
                 parse error: ";
    refused.bad_request(&format!(
        r#"{start}unexpected end of JSON input ({{"metadata":{{"name":"a"}},"data ...)"#
    ));
    let empty = post(&server, CONFIGMAPS, "").await;
    empty.bad_request(&format!("{start}unexpected end of JSON input (<empty>)"));
}

async fn wire_37_another_kind(setup: Setup) {
    let server = setup.start().await;
    for (kind, version, why) in [
        ("Pod", "v1", "converting (v1.Pod) to (apps.Deployment): unknown conversion"),
        ("ReplicaSet", "apps/v1", "converting (v1.ReplicaSet) to (apps.Deployment): unknown conversion"),
        (
            "Nothing",
            "apps/v1",
            r#"no kind "Nothing" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            "Deployment",
            "v1",
            r#"no kind "Deployment" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
    ] {
        let body = json!({"kind": kind, "apiVersion": version, "metadata": {"name": "d"}});
        let refused = server.post(DEPLOYMENTS, &body).await;
        refused.bad_request(&format!("{kind} in version \"v1\" cannot be handled as a Deployment: {why}"));
    }
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}});
    server.post(definitions, &pod).await.bad_request(
        "Pod in version \"v1\" cannot be handled as a CustomResourceDefinition: no kind \"Pod\" is registered for \
         version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
    );
    let other = json!({"kind": "Deployment", "apiVersion": "apps/v1beta1", "metadata": {"name": "d"}});
    let refused = server.post(DEPLOYMENTS, &other).await;
    let message =
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)";
    refused.fails(400, "BadRequest", message, Value::Null);
}

/// An empty group before the slash is the core group (`schema.ParseGroupVersion`).
async fn the_core_version_with_a_slash_is_the_same(setup: Setup) {
    let server = setup.start().await;
    let text = r#"{"apiVersion": "/v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
    let made = post(&server, "/api/v1/namespaces/t/configmaps", text).await.expect(201);
    assert_eq!(made["apiVersion"], "v1");
}
