//! Paths and queries that no well-behaved client sends.

use http::Method;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::bad_bodies::{refused, send};
use crate::support::server::{CONFIGMAPS, Setup, names};

on_every_store! {
    absurd_paths,
    absurd_queries,
    no_query_is_an_internal_error,
}

async fn absurd_paths(setup: Setup) {
    let server = setup.start().await;
    let long = format!("{CONFIGMAPS}/{}", "x".repeat(30_000));
    for path in [
        "/api/v1/namespaces/t/configmaps/%2e%2e",
        "/api/v1/namespaces/t/configmaps/a%2Fb",
        "/api/v1/namespaces/t/configmaps/%00",
        "/api/v1/namespaces/t/configmaps/%ff",
        "/api/v1/namespaces/t/configmaps/%zz",
        "/api/v1/namespaces/t/configmaps/a/b/c/d",
        "/api/v1/namespaces/t/nosuch",
        "/api/v1/namespaces/t/configmaps/x/nosuch",
        "/api/v1/namespaces/%F0%9F%92%A9/configmaps/x",
        "/apis/nosuch/v1/things",
        "/apis/apps/v9/deployments",
        "/../etc/passwd",
        "//",
        &long,
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        let body = json!({"metadata": {"name": "x"}});
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            let answer =
                server.request(method, path).body("application/merge-patch+json", body.to_string()).await;
            assert!((400..500).contains(&answer.status), "{answer:?}");
        }
    }
    let object = json!({"metadata": {"name": "x"}});
    let nowhere = server.post("/api/v1/namespaces/nowhere/configmaps", &object).await;
    nowhere.fails(
        404,
        "NotFound",
        "namespaces \"nowhere\" not found",
        json!({"name": "nowhere", "kind": "namespaces"}),
    );
    let unknown = server.get("/api/v1/nosuch").await;
    unknown.fails(404, "NotFound", "the server could not find the requested resource", json!({}));
    let unknown = server.get("/apis/nosuch/v1/things").await;
    assert_eq!((unknown.status, &*unknown.text()), (404, "404 page not found\n"));
    for (method, path) in [
        (Method::POST, "/api/v1/configmaps"),
        (Method::POST, "/api/v1/namespaces/t/configmaps/x"),
        (Method::PUT, CONFIGMAPS),
        (Method::PATCH, CONFIGMAPS),
        (Method::from_bytes(b"BREW").expect("a method"), CONFIGMAPS),
    ] {
        let text = "the server does not allow this method on the requested resource";
        send(&server, method, path, object.to_string()).await.fails(405, "MethodNotAllowed", text, json!({}));
    }
}

async fn absurd_queries(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let list = |query: &str| server.get(format!("{CONFIGMAPS}?{query}"));
    for harmless in ["&&&", "=", "%zz=%zz", "limit=%zz", "%00=%00", ";;;", "limit=1;limit=2", "a=b=c=d", "??"]
    {
        assert_eq!(names(&list(harmless).await.ok()), ["a"], "{harmless}");
    }
    for (query, code) in [
        ("limit=99999999999999999999", 400),
        ("limit=0x10", 400),
        ("limit=+", 400),
        ("resourceVersion=-1", 400),
        ("resourceVersion=1.5", 400),
        ("resourceVersion=%00", 400),
        ("continue=%00", 400),
        ("fieldSelector=%00", 400),
        ("timeout=9999999999999999h", 400),
    ] {
        let answer = list(query).await;
        refused(&answer, code, "BadRequest");
    }
    let terms: Vec<String> = (0..1500).map(|n| format!("k{n}%21%3Dv")).collect();
    assert_eq!(names(&list(&format!("labelSelector={}", terms.join(","))).await.ok()), ["a"]);
    let open = list(&format!("labelSelector=k%20in%20{}", "(".repeat(20_000))).await;
    refused(&open, 400, "BadRequest");
    let values = format!("k in ({})", vec!["v"; 5000].join(",")).replace(' ', "%20");
    assert_eq!(names(&list(&format!("labelSelector={values}")).await.ok()), [""; 0]);
}

/// Random strings of the alphabet of queries, always the same ones.
async fn no_query_is_an_internal_error(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let keys = [
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "timeoutSeconds",
        "pretty",
        "sendInitialEvents",
        "dryRun",
        "propagationPolicy",
        "includeObject",
    ];
    let pieces = [
        "a",
        "1",
        "0",
        "-",
        "%",
        "%25",
        "=",
        "%3D",
        "!",
        "(",
        ")",
        ",",
        "%20in%20",
        "/",
        ".",
        "%00",
        "%ff",
        "Exact",
        "NotOlderThan",
        "metadata.name",
        "9223372036854775807",
        "\\",
        "&",
    ];
    let mut random = rand::rngs::SmallRng::seed_from_u64(20);
    for _ in 0..400 {
        let mut query = String::new();
        for _ in 0..random.random_range(1..4) {
            query.push_str(keys[random.random_range(0..keys.len())]);
            query.push('=');
            for _ in 0..random.random_range(0..5) {
                query.push_str(pieces[random.random_range(0..pieces.len())]);
            }
            query.push('&');
        }
        // A revision of the far future would be waited for.
        if query.contains("resourceVersion=1") || query.contains("resourceVersion=9") {
            continue;
        }
        let answer = server.get(format!("{CONFIGMAPS}?{query}")).await;
        assert!(matches!(answer.status, 200 | 400 | 410 | 422 | 504), "{answer:?}");
        let answer = server.delete(format!("{CONFIGMAPS}/none?{query}")).await;
        assert!(matches!(answer.status, 400 | 404 | 409 | 422), "{answer:?}");
    }
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a"]);
}
