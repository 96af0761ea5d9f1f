//! OpenAPI over HTTP; assertions of `spec/wire.md` by number.

use std::io::Read;

use flate2::read::GzDecoder;
use rowplane::protowire::Reader;
use serde_json::json;

use crate::support::server::Setup;

on_both_databases! {
    w58_v2_in_its_encodings,
    w59_v3_by_hash,
    w60_schemas_say_how_to_merge,
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

async fn w58_v2_in_its_encodings(setup: Setup) {
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

async fn w59_v3_by_hash(setup: Setup) {
    let server = setup.start_empty().await;
    let index = server.get("/openapi/v3").await.ok();
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

async fn w60_schemas_say_how_to_merge(setup: Setup) {
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
