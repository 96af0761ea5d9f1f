//! Who gets which form, and who is refused; assertions of `docs/spec/wire.md` by number. Those about custom resources
//! (5 to 7, the second halves of 4 and 12) are in `custom_resources/elsewhere.rs`.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, config_map};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PODS: &str = "/api/v1/namespaces/t/pods";

on_every_store! {
    wire_2_3_the_better_range_wins,
    wire_4_there_is_one_wildcard,
    wire_8_a_table_is_no_protobuf,
    what_has_no_rows_makes_no_table,
    wire_9_no_transform_goes_with_an_error,
    wire_11_types_of_bodies,
    wire_12_types_of_patches,
    wire_16_the_largest_body,
    wire_65_a_status_has_no_other_form,
}

#[track_caller]
fn is(answer: &Answer, content_type: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)), "{answer:?}");
}

async fn wire_2_3_the_better_range_wins(setup: Setup) {
    let server = setup.start().await;
    for (accept, content_type) in [
        ("application/json;q=0.1, application/yaml", YAML),
        (
            "application/yaml;q=0.2, application/json;q=0.9, application/vnd.kubernetes.protobuf;q=0.95",
            PROTOBUF,
        ),
        ("application/yaml, application/json", YAML),
        ("*/*, application/yaml;q=0.1", YAML),
        ("application/yaml;q=0.1, */*", JSON),
        ("application/json;q=0", JSON),
        ("application/json;q=bad, application/yaml;q=0.001", YAML),
        ("application/json;q=0, application/yaml;q=0", JSON),
        ("", JSON),
    ] {
        is(&server.get(CONFIGMAPS).accept(accept).await, content_type);
    }
    // Only the first line counts.
    let twice = server.get(CONFIGMAPS).accept(YAML).header("accept", PROTOBUF).await;
    is(&twice, YAML);
    is(&server.get(CONFIGMAPS).await, JSON);
}

async fn wire_4_there_is_one_wildcard(setup: Setup) {
    let server = setup.start().await;
    let refused = server.get("/api/v1/pods").accept("application/*").await;
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    refused.fails(406, "NotAcceptable", message, json!({}));
    let refused = server.get("/api/v1/namespaces/t").accept("application/*").await;
    let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    refused.fails(406, "NotAcceptable", message, json!({}));
    is(&server.get("/api/v1/pods").accept("*/*").await, JSON);
}

async fn wire_8_a_table_is_no_protobuf(setup: Setup) {
    let server = setup.start().await;
    let table = TABLE.replace(JSON, PROTOBUF);
    let refused = server.get(CONFIGMAPS).accept(&table).await;
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    refused.fails(406, "NotAcceptable", message, Value::Null);
    let found = server.get(CONFIGMAPS).accept(&format!("{table},{TABLE}")).await;
    is(&found, JSON);
    assert_eq!(found.json()["kind"], "Table");
}

async fn what_has_no_rows_makes_no_table(setup: Setup) {
    let server = setup.start().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let refused = server.request(Method::POST, reviews).json(&review).accept(TABLE).await;
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    refused.fails(406, "NotAcceptable", message, Value::Null);
    let refused =
        server.request(Method::PUT, "/api/v1/namespaces/t/finalize").json(&json!({})).accept(TABLE).await;
    refused.fails(406, "NotAcceptable", message, Value::Null);
    is(&server.get("/api/v1/namespaces/t/status").accept(TABLE).await, JSON);
}

async fn wire_9_no_transform_goes_with_an_error(setup: Setup) {
    let server = setup.start().await;
    for accept in [TABLE, PARTIAL] {
        let missing = server.get(format!("{CONFIGMAPS}/none")).accept(accept).await;
        let details = json!({"name": "none", "kind": "configmaps"});
        missing.fails(404, "NotFound", "configmaps \"none\" not found", details);
        assert_eq!(missing.header("content-type"), Some(JSON));
        assert_eq!(missing.text(), format!("{:#}", missing.json()), "indented, without a line end");
    }
}

async fn wire_11_types_of_bodies(setup: Setup) {
    let server = setup.start().await;
    let body = config_map("a", json!({})).to_string();
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for (method, path) in [(Method::POST, CONFIGMAPS), (Method::PUT, "/api/v1/namespaces/t/configmaps/a")] {
        let refused = server.request(method, path).body("text/plain", body.clone()).await;
        refused.fails(415, "UnsupportedMediaType", message, Value::Null);
    }
    server.request(Method::POST, CONFIGMAPS).body("", body).await.expect(201);
    let refused = server.delete(format!("{CONFIGMAPS}/a")).body("text/plain", "{}").await;
    refused.fails(415, "UnsupportedMediaType", message, Value::Null);
    server.get(format!("{CONFIGMAPS}/a")).await.ok();
}

async fn wire_12_types_of_patches(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let a = format!("{CONFIGMAPS}/a");
    for content_type in [JSON, "", "text/plain", "Application/merge-patch+json"] {
        let refused = server.request(Method::PATCH, &a).body(content_type, "{}").await;
        refused.fails(415, "UnsupportedMediaType", "415: Unsupported Media Type", json!({}));
    }
    let merge = "application/merge-patch+json; charset=utf-8";
    server.request(Method::PATCH, &a).body(merge, "{}").await.ok();
}

async fn wire_16_the_largest_body(setup: Setup) {
    const LIMIT: usize = 3_145_728;
    let server = setup.start().await;
    let padded = |size: usize| {
        let mut body = config_map("a", json!({})).to_string().into_bytes();
        body.resize(size, b' ');
        server.request(Method::POST, CONFIGMAPS).body(JSON, body)
    };
    let text = "Request entity too large: limit is 3145728";
    padded(LIMIT + 1).await.fails(413, "RequestEntityTooLarge", text, Value::Null);
    padded(LIMIT).await.expect(201);
}

async fn wire_65_a_status_has_no_other_form(setup: Setup) {
    let server = setup.start().await;
    for (name, accept) in [("a", TABLE), ("b", PARTIAL)] {
        let created = server.create(name, json!({})).await;
        let gone = server.delete(format!("{CONFIGMAPS}/{name}")).accept(accept).await;
        is(&gone, JSON);
        let details = json!({"name": name, "kind": "configmaps", "uid": created["metadata"]["uid"]});
        let want = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        assert_eq!(gone.json(), want);
    }
    // An object that is answered has these forms.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &pod).await.expect(201);
    let deleting = server.delete(format!("{PODS}/p?gracePeriodSeconds=0")).accept(TABLE).await.ok();
    assert_eq!((&deleting["kind"], &deleting["rows"][0]["cells"][0]), (&json!("Table"), &json!("p")));
}
