//! DELETE of collections.

use serde_json::json;

use super::delete::{delete_with, held};
use crate::support::server::{CONFIGMAPS, Setup, names, rv, token};

on_every_store! {
    list_watch_12_an_invalid_collection_delete_deletes_nothing,
    list_watch_91_a_collection,
    list_watch_92_all_namespaces,
    a_revision_in_the_query_is_a_precondition_too,
    a_collection_in_pages,
    what_has_finalizers_stays,
    system_priority_classes_go_with_their_collection,
}

async fn list_watch_12_an_invalid_collection_delete_deletes_nothing(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    server.delete(format!("{CONFIGMAPS}?sendInitialEvents=true")).await.invalid_options(
        "ListOptions",
        &[("FieldValueForbidden", "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")],
    );
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a"]);
}

async fn list_watch_91_a_collection(setup: Setup) {
    let server = setup.start().await;
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let object = json!({"metadata": {"name": name, "labels": {"l": label}}});
        server.post(CONFIGMAPS, &object).await.expect(201);
    }
    let start = server.revision().await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    let none = server.delete(format!("{CONFIGMAPS}?labelSelector=l%3D3")).await.ok();
    assert_eq!((&none["kind"], &none["items"]), (&json!("ConfigMapList"), &json!([])));
    let listed = server.get(format!("{CONFIGMAPS}?labelSelector=l%3D1")).await.ok();
    let deleted = server.delete(format!("{CONFIGMAPS}?labelSelector=l%3D1")).await.ok();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(deleted["items"], listed["items"], "as they were listed");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["b"]);
    let mut gone = [watch.expect("DELETED").await, watch.expect("DELETED").await];
    gone.sort_by_key(|object| object["metadata"]["name"].to_string());
    assert_eq!([&gone[0]["metadata"]["name"], &gone[1]["metadata"]["name"]], ["a", "c"]);
    server.create("d", json!({})).await;
    watch.expect_named("ADDED", "d").await;
    let first = server.delete(format!("{CONFIGMAPS}?limit=1")).await.ok();
    assert_eq!(names(&first), ["b"]);
    assert!(first["metadata"]["continue"].is_string());
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["d"]);
}

async fn list_watch_92_all_namespaces(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let text = "the server does not allow this method on the requested resource";
    server.delete("/api/v1/configmaps").await.fails(405, "MethodNotAllowed", text, json!({}));
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a"]);
}

/// Without a body the one parameter is the list's and that of every DELETE (1.4).
async fn a_revision_in_the_query_is_a_precondition_too(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({})).await);
    server.create("b", json!({})).await;
    let path = format!("{CONFIGMAPS}?resourceVersion={old}");
    let refused = server.delete(&path).await.failure();
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(409), &json!("Conflict")));
    assert!(names(&server.get(CONFIGMAPS).await.ok()).contains(&"b".to_owned()));
    delete_with(&server, &path, json!({})).await.ok();
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"], json!([]));
}

async fn a_collection_in_pages(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b", "c"] {
        server.create(name, json!({})).await;
    }
    let first = server.delete(format!("{CONFIGMAPS}?limit=2")).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    server.create("aa", json!({})).await;
    // The next page is one of the same snapshot: what came since is not in it.
    let second = server.delete(format!("{CONFIGMAPS}?limit=2&continue={}", token(&first))).await.ok();
    assert_eq!((names(&second), rv(&second)), (vec!["c".to_owned()], rv(&first)));
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["aa"]);
    let bad = server.delete(format!("{CONFIGMAPS}?continue=garbage")).await.failure();
    assert_eq!(bad["code"], 400);
    let unknown = server.delete(format!("{CONFIGMAPS}?propagationPolicy=x")).await.failure();
    assert_eq!((&unknown["code"], &unknown["details"]["kind"]), (&json!(422), &json!("DeleteOptions")));
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["aa"]);
}

async fn what_has_finalizers_stays(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let before = held(&server, "b").await;
    let deleted = server.delete(CONFIGMAPS).await.ok();
    assert_eq!(names(&deleted), ["a", "b"]);
    assert_eq!(rv(&deleted["items"][1]), rv(&before), "as it was listed");
    let left = server.get(CONFIGMAPS).await.ok();
    assert_eq!(names(&left), ["b"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string(), "{left}");
}

/// Only the deletion by name is refused (`pkg/registry/scheduling/priorityclass/storage`).
async fn system_priority_classes_go_with_their_collection(setup: Setup) {
    let server = setup.start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let refused = server.delete(format!("{classes}/system-node-critical")).await.failure();
    assert_eq!(refused["code"], 403, "{refused}");
    let deleted = server.delete(format!("{classes}?dryRun=All")).await.ok();
    assert_eq!(deleted["kind"], "PriorityClassList");
    assert_eq!(names(&deleted), ["system-cluster-critical", "system-node-critical"]);
}
