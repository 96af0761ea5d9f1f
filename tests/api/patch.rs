//! PATCH: merge patch and JSON patch.

use std::collections::HashSet;
use std::future::IntoFuture as _;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::update::conflict;
use super::write::at;
use crate::support::server::{Setup, rv};

on_every_store! {
    list_watch_80_parallel_patches,
    list_watch_81_patch_of_what_is_missing,
    json_patches,
    merge_patches,
}

async fn list_watch_80_parallel_patches(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"k": "v"})).await;
    let patch = |n: usize| server.patch(at("x"), &json!({"data": {format!("k{n}"): "v"}})).into_future();
    let answers = join_all((0..50).map(patch)).await;
    let revisions: HashSet<u64> = answers.iter().map(|answer| rv(&answer.ok())).collect();
    assert_eq!(revisions.len(), 50);
    let data = server.get(at("x")).await.ok()["data"].clone();
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(51));
    let stale =
        json!({"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"n": "1"}});
    let (message, details) = conflict("x");
    server.patch(at("x"), &stale).await.fails(409, "Conflict", &message, details);
}

async fn list_watch_81_patch_of_what_is_missing(setup: Setup) {
    let server = setup.start().await;
    let missing = server.patch(at("x"), &json!({"data": {}})).await;
    missing.fails(404, "NotFound", "configmaps \"x\" not found", json!({"name": "x", "kind": "configmaps"}));
}

async fn json_patches(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({"a": "1", "b": "2"})).await;
    let patch = |operations: Value| {
        server
            .request(http::Method::PATCH, at("x"))
            .body("application/json-patch+json", operations.to_string())
    };
    let done = patch(json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "3"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}
    ]));
    let done = done.await.ok();
    assert_eq!((&done["data"], &done["metadata"]["labels"]), (&json!({"a": "3"}), &json!({"l": "1"})));
    let failed = patch(json!([
        {"op": "replace", "path": "/data/a", "value": "4"}, {"op": "test", "path": "/data/a", "value": "1"}
    ]));
    let text = "the server rejected our request due to an error in our request";
    failed.await.fails(422, "Invalid", text, json!({}));
    let missing = patch(json!([{"op": "remove", "path": "/data/nothing"}]));
    missing.await.fails(422, "Invalid", text, json!({}));
    assert_eq!(patch(json!({"op": "remove"})).await.failure()["code"], 400);
    assert_eq!(server.get(at("x")).await.ok(), done);
    let uid = patch(json!([{"op": "replace", "path": "/metadata/uid", "value": "u"}])).await.failure();
    assert_eq!((&uid["code"], &uid["details"]["causes"][0]["field"]), (&json!(422), &json!("metadata.uid")));
}

async fn merge_patches(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({"a": "1", "b": "2"})).await;
    let patch = |body: Value| server.patch(at("x"), &body);
    assert_eq!(patch(json!({})).await.ok(), created, "nothing changes");
    let patched =
        patch(json!({"data": {"a": null, "c": "3"}, "metadata": {"labels": {"l": "1"}}})).await.ok();
    assert_eq!(
        (&patched["data"], &patched["metadata"]["labels"]),
        (&json!({"b": "2", "c": "3"}), &json!({"l": "1"}))
    );
    assert_eq!(patch(json!({"data": null})).await.ok().get("data"), None);
    let finalizers = |names: Value| patch(json!({"metadata": {"finalizers": names}}));
    finalizers(json!(["example.com/a", "example.com/b"])).await.ok();
    let replaced = finalizers(json!(["example.com/c"])).await.ok();
    assert_eq!(replaced["metadata"]["finalizers"], json!(["example.com/c"]), "lists are replaced");
    let renamed = patch(json!({"metadata": {"name": "y"}})).await;
    renamed.bad_request("the name of the object (y) does not match the name on the URL (x)");
    let moved = patch(json!({"metadata": {"namespace": "default"}})).await;
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    moved.bad_request(text);
    let uid = patch(json!({"metadata": {"uid": "other"}})).await.failure();
    assert_eq!((&uid["code"], &uid["details"]["causes"][0]["field"]), (&json!(422), &json!("metadata.uid")));
    let generation = patch(json!({"metadata": {"generation": 9, "creationTimestamp": null}})).await.ok();
    assert_eq!(generation, replaced, "put back");
    // The one finalizer goes with the object.
    server.remove("x").await;
    assert_eq!(finalizers(json!(null)).await.ok()["metadata"].get("finalizers"), None);
    assert_eq!(server.get(at("x")).await.status, 404);
}
