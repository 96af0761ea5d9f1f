//! Forms of answers: tables, partial metadata, indentation, negotiation, and the form of errors.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv, token};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

on_every_store! {
    list_watch_41_a_table_in_pages,
    list_watch_41_partial_metadata_in_pages,
    list_watch_94_every_error_is_a_status,
    one_object_in_every_form,
    writes_answer_in_the_form_asked_for,
    forms_that_do_not_fit,
    media_types,
    people_get_indentation,
    the_order_of_fields,
    wire_14_every_answer_has_these_headers,
}

async fn three(server: &TestServer) {
    for name in ["a", "b", "c"] {
        server.create(name, json!({"k": "v", "l": "w"})).await;
    }
}

#[track_caller]
fn is_json(answer: &Answer) {
    assert_eq!(answer.header("content-type"), Some("application/json"), "without parameters");
}

async fn list_watch_41_a_table_in_pages(setup: Setup) {
    let server = setup.start().await;
    three(&server).await;
    let first = server.get(format!("{CONFIGMAPS}?limit=2")).accept(TABLE).await;
    is_json(&first);
    let first = first.ok();
    assert_eq!((&first["kind"], &first["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let columns: Vec<_> = first["columnDefinitions"].as_array().expect("columns").iter().collect();
    let headers: Vec<_> = columns.iter().map(|column| column["name"].as_str().expect("a name")).collect();
    assert_eq!(headers, ["Name", "Data", "Age"]);
    assert_eq!(columns[0]["format"], "name");
    let cells = |table: &Value| -> Vec<Value> {
        table["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| json!([row["cells"][0], row["cells"][1]]))
            .collect()
    };
    assert_eq!(cells(&first), [json!(["a", 2]), json!(["b", 2])]);
    let next = format!("{CONFIGMAPS}?limit=2&continue={}", token(&first));
    let second = server.get(next).accept(TABLE).await.ok();
    assert_eq!(cells(&second), [json!(["c", 2])]);
    assert_eq!(second["metadata"], json!({"resourceVersion": rv(&first).to_string()}));
    let empty = server.get("/api/v1/namespaces/default/configmaps").accept(TABLE).await.ok();
    assert!(rv(&empty) > 0 && empty["columnDefinitions"].is_array(), "{empty}");
    assert_eq!(empty["rows"], json!([]));
}

async fn list_watch_41_partial_metadata_in_pages(setup: Setup) {
    let server = setup.start().await;
    three(&server).await;
    let first = server.get(format!("{CONFIGMAPS}?limit=1")).accept(PARTIAL_LIST).await;
    is_json(&first);
    let first = first.ok();
    assert_eq!(
        (&first["kind"], &first["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let full = server.get(format!("{CONFIGMAPS}/a")).await.ok();
    let want = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": full["metadata"]});
    assert_eq!(first["items"], json!([want]));
    let next = format!("{CONFIGMAPS}?continue={}", token(&first));
    let rest = server.get(next).accept(PARTIAL_LIST).await.ok();
    assert_eq!((names(&rest), rv(&rest)), (vec!["b".into(), "c".into()], rv(&first)));
}

/// One of each class; what holds for all of them is in `Answer::failure`.
async fn list_watch_94_every_error_is_a_status(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("x", json!({})).await);
    let first = server.get(format!("{CONFIGMAPS}?limit=1")).await.ok();
    assert_eq!(first["metadata"].get("continue"), None);
    server.create("y", json!({})).await;
    let page = token(&server.get(format!("{CONFIGMAPS}?limit=1")).await.ok());
    server.set("x", json!({"k": "v"})).await;
    server.compact(server.revision().await).await;
    let x = format!("{CONFIGMAPS}/x");
    let future = server.revision().await + 1000;
    let alice = server.token("alice-token");
    let stale = json!({"metadata": {"name": "x", "resourceVersion": old.to_string()}});
    let generated = json!({"metadata": {"name": "x", "generateName": "x"}});
    let answers = [
        (400, "BadRequest", server.get(format!("{CONFIGMAPS}?limit=x")).await),
        (401, "Unauthorized", server.token("forged").get(&x).await),
        (403, "Forbidden", server.anonymous().get(&x).await),
        (403, "Forbidden", alice.get(&x).await),
        (403, "Forbidden", alice.get("/metrics").await),
        (404, "NotFound", server.get(format!("{CONFIGMAPS}/none")).await),
        (404, "NotFound", server.get("/api/v1/nosuch").await),
        (405, "MethodNotAllowed", server.request(Method::PUT, CONFIGMAPS).await),
        (406, "NotAcceptable", server.get(&x).accept("text/html").await),
        (409, "AlreadyExists", server.post(CONFIGMAPS, &config_map("x", json!({}))).await),
        (409, "AlreadyExists", server.post(CONFIGMAPS, &generated).await),
        (409, "Conflict", server.put(&x, &stale).await),
        (
            410,
            "Expired",
            server.get(format!("{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await,
        ),
        (410, "Expired", server.get(format!("{CONFIGMAPS}?continue={page}")).await),
        (
            413,
            "RequestEntityTooLarge",
            server.post(CONFIGMAPS, &config_map("z", json!({"k": "x".repeat(4 << 20)}))).await,
        ),
        (415, "UnsupportedMediaType", server.request(Method::POST, CONFIGMAPS).body("text/plain", "x").await),
        (422, "Invalid", server.get(format!("{CONFIGMAPS}?sendInitialEvents=1")).await),
        (422, "Invalid", server.post(CONFIGMAPS, &json!({"metadata": {"name": "-"}})).await),
        (500, "", server.post(CONFIGMAPS, &json!({"metadata": {"name": "z", "resourceVersion": "1"}})).await),
        (504, "Timeout", server.get(format!("{x}?resourceVersion={future}")).await),
    ];
    for (code, reason, answer) in answers {
        let failure = answer.failure();
        assert_eq!(answer.status, code, "{answer:?}");
        assert_eq!(failure["reason"].as_str().unwrap_or_default(), reason, "{answer:?}");
        assert!(failure["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer:?}");
        is_json(&answer);
    }
    for accept in [TABLE, PARTIAL] {
        let missing = server.get(format!("{CONFIGMAPS}/none")).accept(accept).await;
        let details = json!({"name": "none", "kind": "configmaps"});
        missing.fails(404, "NotFound", "configmaps \"none\" not found", details);
    }
}

async fn one_object_in_every_form(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({"k": "v"})).await;
    let path = format!("{CONFIGMAPS}/a");
    let table = server.get(&path).accept(TABLE).await.ok();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    assert_eq!(rv(&table), rv(&created));
    let partial = server.get(&path).accept(PARTIAL).await.ok();
    assert_eq!((&partial["metadata"], partial.get("data")), (&created["metadata"], None));
    let old = server
        .get(&path)
        .accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1")
        .await
        .ok();
    assert_eq!(old["apiVersion"], "meta.k8s.io/v1beta1");
    let fallback =
        server.get(&path).accept("application/json;as=Nothing;g=meta.k8s.io;v=v1,application/json").await;
    assert_eq!(fallback.ok(), created);
}

async fn writes_answer_in_the_form_asked_for(setup: Setup) {
    let server = setup.start().await;
    let created = server.post(CONFIGMAPS, &config_map("a", json!({}))).accept(TABLE).await.expect(201);
    assert_eq!((&created["kind"], &created["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    let path = format!("{CONFIGMAPS}/a");
    let patched = server.patch(&path, &json!({"data": {"k": "v"}})).accept(PARTIAL).await.ok();
    assert_eq!((&patched["kind"], patched.get("data")), (&json!("PartialObjectMetadata"), None));
    // The Status of a DELETE has no other form.
    assert_eq!(server.delete(&path).accept(TABLE).await.ok()["kind"], "Status");
}

async fn forms_that_do_not_fit(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let list = server.get(CONFIGMAPS).accept(PARTIAL).await;
    let text =
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)";
    list.fails(406, "NotAcceptable", text, Value::Null);
    let one = server.get(format!("{CONFIGMAPS}/a")).accept(PARTIAL_LIST).await;
    let text =
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)";
    one.fails(406, "NotAcceptable", text, Value::Null);
    for accept in
        ["application/json;as=Nothing;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v2"]
    {
        assert_eq!(server.get(CONFIGMAPS).accept(accept).await.failure()["code"], 406);
    }
}

async fn media_types(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    for accept in
        ["", "*/*", "application/json", "text/html, application/json", "application/json;q=0", "*/*;q=0.1"]
    {
        let answer = server.get(CONFIGMAPS).accept(accept).await;
        assert_eq!(names(&answer.ok()), ["a"], "{accept}");
        is_json(&answer);
    }
    // The router of upstream knows no such range (docs/spec/wire.md, 1.3).
    for accept in ["application/*", "text/html", "nonsense"] {
        let failure = server.get(CONFIGMAPS).accept(accept).await.failure();
        assert_eq!((&failure["code"], &failure["details"]), (&json!(406), &json!({})), "{accept}");
        let message = failure["message"].as_str().expect("a message");
        assert!(
            message.starts_with("406: Not Acceptable\n\nAvailable representations: application/json"),
            "{message}"
        );
    }
}

async fn people_get_indentation(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({})).await;
    let path = format!("{CONFIGMAPS}/a");
    let compact = server.get(&path).await.text();
    assert_eq!(compact, format!("{created}\n"));
    for agent in ["curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11)"] {
        let answer = server.get(&path).header("user-agent", agent).await;
        assert_eq!(answer.text(), format!("{created:#}"), "without a line end");
    }
    assert_eq!(server.get(format!("{path}?pretty=true")).await.text(), format!("{created:#}"));
    let curl = server.get(format!("{path}?pretty=false")).header("user-agent", "curl/8.5.0").await;
    assert_eq!(curl.text(), compact);
    let list = server.get(format!("{CONFIGMAPS}?pretty=1")).await;
    assert_eq!(list.text(), format!("{:#}", list.ok()));
    let failure = server.get(format!("{CONFIGMAPS}/none?pretty=1")).await;
    assert_eq!(failure.text(), format!("{:#}", failure.failure()));
}

async fn the_order_of_fields(setup: Setup) {
    let server = setup.start().await;
    let body = json!({"data": {"b": "1", "a": "<&>\u{2028}"}, "metadata": {
        "finalizers": ["example.com/f"], "annotations": {"n": "1"}, "labels": {"l": "1"}, "name": "a"
    }});
    server.post(CONFIGMAPS, &body).await.expect(201);
    let object = server.get(format!("{CONFIGMAPS}/a")).await.ok();
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().expect("an object").keys().cloned().collect() };
    assert_eq!(keys(&object), ["kind", "apiVersion", "metadata", "data"]);
    let metadata = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "labels",
        "annotations",
        "finalizers",
        "managedFields",
    ];
    assert_eq!(keys(&object["metadata"]), metadata);
    assert_eq!(object["data"], body["data"]);
    let list = server.get(CONFIGMAPS).await.ok();
    assert_eq!(keys(&list), ["kind", "apiVersion", "metadata", "items"]);
}

async fn wire_14_every_answer_has_these_headers(setup: Setup) {
    let server = setup.start().await;
    for path in
        [CONFIGMAPS, "/api/v1/namespaces/t/configmaps/none", "/version", "/nosuch", "/readyz", "/apis"]
    {
        let answer = server.get(path).await;
        let id = answer.header("audit-id").unwrap_or_else(|| panic!("{answer:?}"));
        assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
        assert_eq!(answer.header("cache-control"), Some("no-cache, private"), "{path}");
        assert_eq!(answer.header("vary"), None, "{path}");
        let mine = server.get(path).header("audit-id", "mine").await;
        assert_eq!(mine.header("audit-id"), Some("mine"));
    }
}
