//! OpenAPI over HTTP; assertions of `docs/spec/wire.md` by number.

use std::io::Read;

use flate2::read::GzDecoder;
use rowplane::protowire::Reader;
use serde_json::{Value, json};

use crate::support::server::Setup;

on_every_store! {
    wire_58_v2_in_its_encodings,
    wire_59_v3_by_hash,
    wire_60_schemas_say_how_to_merge,
    v3_in_protobuf,
    the_form_that_is_liked_best,
    documents_are_fetched_once,
    an_accept_header_that_names_nothing,
    deprecated_watches_are_described,
    operations_and_parameters_are_described,
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
const V3_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
const PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

async fn wire_58_v2_in_its_encodings(setup: Setup) {
    let server = setup.start_empty().await;
    let json = server.get("/openapi/v2").await;
    assert_eq!(json.ok()["swagger"], "2.0");
    assert_eq!(json.header("content-type"), Some("application/json"));
    let etag = json.header("etag").expect("an ETag").to_owned();
    assert!(etag.len() == 130 && etag.bytes().all(|byte| matches!(byte, b'"' | b'0'..=b'9' | b'A'..=b'F')));
    for accept in [PROTOBUF, PROTOBUF_ALIAS] {
        let answer = server.get("/openapi/v2").accept(accept).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(PROTOBUF)));
        assert_eq!(answer.header("etag"), Some(&*etag));
        let mut reader = Reader::new(&answer.body);
        assert_eq!(reader.tag().expect("a tag").expect("a field").number(), 1);
        assert_eq!(reader.bytes().expect("a string"), b"2.0");
    }
    let refused = server.get("/openapi/v2").accept("text/html").await;
    assert_eq!((refused.status, refused.body.len()), (406, 0));
    let known = server.get("/openapi/v2").header("if-none-match", &format!("\"x\", {etag}")).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let packed = server.get("/openapi/v2").header("accept-encoding", "gzip").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut body = Vec::new();
    GzDecoder::new(&packed.body[..]).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, json.body);
}

async fn wire_59_v3_by_hash(setup: Setup) {
    let server = setup.start_empty().await;
    let index = server.get("/openapi/v3").await;
    // As kube-apiserver's, whose aggregator leaves the type to Go.
    assert_eq!(index.header("content-type"), Some("text/plain; charset=utf-8"));
    let index = index.ok();
    let paths = index["paths"].as_object().expect("paths");
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().expect("a URL");
        let named = server.get(url).await;
        assert_eq!(named.ok()["openapi"], "3.0.0", "{path}");
        assert_eq!(named.header("cache-control"), Some("public, immutable"));
        assert!(named.header("expires").is_some_and(|date| date.ends_with(" GMT")));
        let hash = url.rsplit('=').next().expect("a hash");
        assert_eq!(named.header("etag"), Some(&*format!("\"{hash}\"")));
    }
    let url = paths["apis/apps/v1"]["serverRelativeURL"].as_str();
    let stale = server.get("/openapi/v3/apis/apps/v1?hash=0").await;
    assert_eq!((stale.status, stale.header("location")), (301, url));
    let unnamed = server.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!((unnamed.status, unnamed.header("cache-control")), (200, Some("no-cache, private")));
    let missing = server.get("/openapi/v3/apis/none/v1").await;
    assert_eq!((missing.status, missing.body.len()), (404, 0));
}

/// What gnostic makes of the JSON form; a Go program compares all of it (`tests/upstream`).
async fn v3_in_protobuf(setup: Setup) {
    let server = setup.start_empty().await;
    let path = "/openapi/v3/apis/apps/v1";
    let json = server.get(path).await;
    let document = json.ok();
    for accept in [V3_PROTOBUF, V3_PROTOBUF_ALIAS] {
        let answer = server.get(path).accept(accept).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(V3_PROTOBUF)));
        assert_eq!((answer.header("etag"), answer.header("vary")), (json.header("etag"), Some("Accept")));
        let mut reader = Reader::new(&answer.body);
        let mut paths = 0;
        let mut numbers = Vec::new();
        while let Some(tag) = reader.tag().expect("a tag") {
            let field = reader.bytes().expect("bytes");
            numbers.push(tag.number());
            if tag.number() == 4 {
                let mut entries = Reader::new(field);
                while entries.tag().expect("a tag").is_some() {
                    entries.bytes().expect("a path");
                    paths += 1;
                }
            }
        }
        assert_eq!(numbers, [1, 2, 4, 5]);
        assert_eq!(Some(paths), document["paths"].as_object().map(|paths| paths.len()));
    }
    let url = server.get("/openapi/v3").await.ok()["paths"]["apis/apps/v1"]["serverRelativeURL"].clone();
    let hashed = server.get(url.as_str().expect("a URL")).accept(V3_PROTOBUF).await;
    assert_eq!((hashed.status, hashed.header("cache-control")), (200, Some("public, immutable")));
}

async fn the_form_that_is_liked_best(setup: Setup) {
    let server = setup.start_empty().await;
    let json = "application/json";
    for (path, protobuf) in [("/openapi/v2", PROTOBUF), ("/openapi/v3/version", V3_PROTOBUF)] {
        for (accept, content_type) in [
            ("*/*".to_owned(), json),
            ("application/*".to_owned(), json),
            (format!("{protobuf},*/*"), protobuf),
            (format!("{json};q=0.5,{protobuf}"), protobuf),
            (format!("{json},{protobuf};q=0.5"), json),
            (format!("text/html,{protobuf};q=0.1"), protobuf),
            (format!("{protobuf};q=0.1,*/*"), json),
        ] {
            let answer = server.get(path).accept(&accept).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, Some(content_type)),
                "{path} {accept}"
            );
        }
        for accept in ["text/html", "application/yaml", "application/vnd.kubernetes.protobuf"] {
            let refused = server.get(path).accept(accept).await;
            assert_eq!((refused.status, refused.body.len()), (406, 0), "{path} {accept}");
        }
    }
}

/// As Go's `http.ServeContent` has it, but for ranges.
async fn documents_are_fetched_once(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"] {
        let whole = server.get(path).await;
        let (etag, date) =
            (whole.header("etag").expect("an ETag"), whole.header("last-modified").expect("a date"));
        for (name, value) in [("if-none-match", etag), ("if-modified-since", date)] {
            let known = server.get(path).header(name, value).await;
            assert_eq!((known.status, known.body.len()), (304, 0), "{path} {name}");
            assert_eq!((known.header("etag"), known.header("last-modified")), (Some(etag), None));
        }
        let other = server.get(path).header("if-none-match", "\"x\"").header("if-modified-since", date).await;
        assert_eq!(other.status, 200, "a tag counts more than a date");
        let failed = server.get(path).header("if-match", "\"x\"").await;
        assert_eq!((failed.status, failed.body.len()), (412, 0), "{path}");
        let ranged = server.get(path).header("range", "bytes=1-4").await;
        assert_eq!(
            (ranged.status, ranged.header("content-range")),
            (200, None),
            "{path}: ranges are not served"
        );
        assert_eq!(ranged.body, whole.body, "{path}");
    }
}

/// As Go's handlers answer what names no media type at all.
async fn an_accept_header_that_names_nothing(setup: Setup) {
    let server = setup.start_empty().await;
    for accept in ["text", ";", ",", "a/b/c"] {
        for (path, status) in [
            ("/openapi/v2", 406),
            ("/openapi/v3/apis/apps/v1", 200),
            ("/openapi/v3/none", 404),
            ("/openapi/v3", 200),
        ] {
            let answer = server.get(path).accept(accept).await;
            let has_body = path == "/openapi/v3";
            assert_eq!((answer.status, answer.body.is_empty()), (status, !has_body), "{path} {accept}");
            assert_eq!(answer.header("content-type").is_some(), has_body, "{path} {accept}");
        }
    }
}

/// Each has one operation, whose parameters are therefore all the path's.
async fn deprecated_watches_are_described(setup: Setup) {
    let server = setup.start_empty().await;
    let v2 = server.get("/openapi/v2").await.ok();
    let v3 = server.get("/openapi/v3/api/v1").await.ok();
    for document in [&v2, &v3] {
        for (path, id, action) in [
            ("/api/v1/watch/pods", "watchCoreV1PodListForAllNamespaces", "watchlist"),
            ("/api/v1/watch/namespaces/{namespace}/pods", "watchCoreV1NamespacedPodList", "watchlist"),
            ("/api/v1/watch/namespaces/{namespace}/pods/{name}", "watchCoreV1NamespacedPod", "watch"),
            ("/api/v1/watch/nodes/{name}", "watchCoreV1Node", "watch"),
        ] {
            let item = &document["paths"][path];
            let get = &item["get"];
            assert_eq!(
                (&get["operationId"], &get["x-kubernetes-action"]),
                (&json!(id), &json!(action)),
                "{path}"
            );
            assert_eq!(get.get("parameters"), None, "{path}");
            let parameters = item["parameters"].as_array().expect("parameters");
            let name = |each| referred(document, each)["name"].as_str().expect("a name");
            let names: Vec<_> = parameters.iter().map(name).collect();
            assert!(names.is_sorted() && names.contains(&"sendInitialEvents"), "{names:?}");
            assert_eq!(names.contains(&"name"), path.ends_with("{name}"), "{names:?}");
        }
    }
    assert!(v3["paths"]["/api/v1/watch/bindings"].is_null());
}

/// What stands at the end of a reference.
fn referred<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect(reference),
        None => value,
    }
}

/// Upstream's document has these names and texts too.
async fn operations_and_parameters_are_described(setup: Setup) {
    let server = setup.start_empty().await;
    let v2 = server.get("/openapi/v2").await.ok();
    let v3 = server.get("/openapi/v3/apis/apps/v1").await.ok();
    for document in [&v2, &v3] {
        let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"];
        assert_eq!(scale["get"]["description"], "read scale of the specified Deployment");
        let parameters = scale["parameters"].as_array().expect("parameters").iter();
        let mut names = parameters.map(|each| referred(document, each)).filter(|each| each["name"] == "name");
        assert_eq!(names.next().expect("a name")["description"], "name of the Scale");
    }
    let delete = &v2["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["delete"];
    assert_eq!(delete["description"], "delete a Deployment");
    let references: Vec<_> =
        delete["parameters"].as_array().expect("parameters").iter().map(|each| &each["$ref"]).collect();
    let shared = |name: &str| json!(format!("#/parameters/{name}"));
    let want = [
        shared("body-2Y1dVQaQ"),
        Value::Null,
        shared("gracePeriodSeconds--K5HaBOS"),
        shared("ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj"),
        shared("orphanDependents-uRB25kX5"),
        shared("propagationPolicy-6jk3prlO"),
    ];
    assert_eq!(references, want.iter().collect::<Vec<_>>());
    assert_eq!(delete["parameters"][1]["name"], "dryRun", "old clients look for it here");
}

async fn wire_60_schemas_say_how_to_merge(setup: Setup) {
    let server = setup.start_empty().await;
    let document = server.get("/openapi/v3/apis/apps/v1").await.ok();
    let schemas = &document["components"]["schemas"];
    let kind = json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]);
    assert_eq!(schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"], kind);
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert!(containers["description"].as_str().is_some_and(|text| !text.is_empty()));
}
