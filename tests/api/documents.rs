//! Discovery of what is served, health, metrics and OpenAPI.

use serde_json::json;

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup};

on_every_store! {
    groups_and_their_resources,
    what_is_served_is_discovered,
    health_checks,
    metrics_count_requests,
    openapi_is_served_by_hash,
}

async fn groups_and_their_resources(setup: Setup) {
    let server = setup.start_empty().await;
    let core = server.get("/api").await.ok();
    assert_eq!(
        (&core["kind"], &core["versions"], core.get("apiVersion")),
        (&json!("APIVersions"), &json!(["v1"]), None)
    );
    let groups = server.get("/apis").await.ok();
    assert_eq!((&groups["kind"], &groups["apiVersion"]), (&json!("APIGroupList"), &json!("v1")));
    let apps = json!({"groupVersion": "apps/v1", "version": "v1"});
    let group = groups["groups"].as_array().expect("groups").iter().find(|group| group["name"] == "apps");
    let group = group.expect("apps");
    assert_eq!((&group["versions"], &group["preferredVersion"]), (&json!([apps]), &apps));
    assert_eq!(server.get("/apis/apps").await.ok()["name"], "apps");
    let resources = server.get("/api/v1").await.ok();
    assert_eq!((&resources["kind"], &resources["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let find = |name: &str| {
        let found = resources["resources"].as_array().expect("resources").iter().find(|r| r["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let configmaps = find("configmaps");
    assert_eq!((&configmaps["kind"], &configmaps["namespaced"]), (&json!("ConfigMap"), &json!(true)));
    assert_eq!(configmaps["shortNames"], json!(["cm"]));
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    assert_eq!(configmaps["verbs"], json!(verbs));
    assert_eq!(find("namespaces")["namespaced"], false);
    assert_eq!(find("pods/status")["verbs"], json!(["get", "patch", "update"]));
}

/// Every resource that discovery offers for listing lists, as the kind it says.
async fn what_is_served_is_discovered(setup: Setup) {
    let server = setup.start_empty().await;
    let mut versions = vec!["/api/v1".to_owned()];
    for group in server.get("/apis").await.ok()["groups"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            versions.push(format!("/apis/{}", version["groupVersion"].as_str().expect("a version")));
        }
    }
    let mut listed = 0;
    for path in versions {
        let document = server.get(&path).await.ok();
        for resource in document["resources"].as_array().expect("resources") {
            if resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list"))) {
                let list =
                    server.get(format!("{path}/{}", resource["name"].as_str().expect("a name"))).await.ok();
                assert_eq!(list["kind"], format!("{}List", resource["kind"].as_str().expect("a kind")));
                assert_eq!(list["apiVersion"], document["groupVersion"]);
                listed += 1;
            }
        }
    }
    assert!(listed > 50, "{listed}");
}

#[track_caller]
fn text_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")), "{answer:?}");
    answer.text()
}

async fn health_checks(setup: Setup) {
    let server = setup.start_empty().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(text_of(&server.anonymous().get(path).await), "ok");
        let verbose = text_of(&server.get(format!("{path}?verbose")).await);
        assert!(verbose.starts_with("[+]ping ok\n"), "{verbose}");
        assert!(verbose.ends_with(&format!("{} check passed\n", &path[1..])), "{verbose}");
        assert_eq!(text_of(&server.get(format!("{path}/ping")).await), "ok");
        assert_eq!(verbose.contains("[+]loopback-serving-certificate ok\n"), path != "/readyz", "{verbose}");
    }
    let verbose = text_of(&server.get("/readyz?verbose").await);
    assert_eq!(verbose.contains("warn: the state is in memory"), setup.is_in_memory(), "{verbose}");
    let other = text_of(&server.get("/readyz?verbose&exclude=etcd").await);
    assert!(
        !other.contains("cannot be excluded") && other.contains("[+]datastore excluded: ok\n"),
        "{other}"
    );
    let excluded = text_of(&server.get("/readyz?verbose&exclude=ping&exclude=none").await);
    assert!(excluded.contains("[+]ping excluded: ok\n"), "{excluded}");
    assert!(excluded.contains("cannot be excluded: no matches for \"none\""), "{excluded}");
}

/// The value of a metric whose line has all of these parts.
fn metric(text: &str, parts: &[&str]) -> Option<f64> {
    let line = text.lines().find(|line| parts.iter().all(|part| line.contains(part)))?;
    line.rsplit(' ').next()?.parse().ok()
}

async fn metrics_count_requests(setup: Setup) {
    let server = setup.start().await;
    for _ in 0..3 {
        server.get(format!("{CONFIGMAPS}/none")).await.failure();
    }
    server.create("a", json!({})).await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1")).await;
    watch.expect_named("ADDED", "a").await;
    let text = text_of(&server.get("/metrics").await);
    let got = ["apiserver_request_total{", "verb=\"GET\"", "resource=\"configmaps\"", "code=\"404\""];
    assert_eq!(metric(&text, &got), Some(3.0), "{text}");
    let posted = ["apiserver_request_total{", "verb=\"POST\"", "resource=\"configmaps\"", "code=\"201\""];
    assert_eq!(metric(&text, &posted), Some(1.0), "{text}");
    let watching = ["apiserver_longrunning_requests{", "verb=\"WATCH\"", "resource=\"configmaps\""];
    assert_eq!(metric(&text, &watching), Some(1.0), "{text}");
    let took = ["apiserver_request_duration_seconds_count{", "verb=\"POST\"", "resource=\"configmaps\""];
    assert_eq!(metric(&text, &took), Some(1.0), "{text}");
    assert!(!text.contains("none"), "what clients write is no label");
}

async fn openapi_is_served_by_hash(setup: Setup) {
    let server = setup.start_empty().await;
    let index = server.get("/openapi/v3").await.ok();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().expect("a URL").to_owned();
    let answer = server.get(&url).await;
    assert_eq!(answer.header("cache-control"), Some("public, immutable"));
    assert!(answer.ok()["paths"]["/api/v1/namespaces/{namespace}/configmaps"].is_object());
    let etag = answer.header("etag").expect("an ETag");
    assert_eq!(server.get(&url).header("if-none-match", etag).await.status, 304);
    let stale = server.get("/openapi/v3/api/v1?hash=old").await;
    assert_eq!((stale.status, stale.header("location")), (301, Some(&*url)));
    for path in ["/openapi/v3/nosuch", "/openapi/v3/"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let whole = server.get("/openapi/v2").await;
    assert_eq!(whole.ok()["swagger"], "2.0");
    assert_eq!(server.get("/openapi/v2").accept("text/html").await.status, 406);
}
