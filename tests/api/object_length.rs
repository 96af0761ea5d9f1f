//! The limit of what is stored (`--max-object-bytes`), whoever writes it and in however many steps.

use http::Method;
use rowplane::cli::status::long_objects;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, rv};

on_every_store! {
    what_is_too_long_is_refused,
    what_was_too_long_before_can_be_read_and_made_smaller_and_deleted,
    managers_give_way_to_content,
}

on_both_databases! {
    status_names_what_is_too_long,
}

const LIMIT: usize = 64 << 10;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[track_caller]
fn too_large(answer: &Answer) {
    answer.fails(413, "RequestEntityTooLarge", "etcdserver: request is too large", json!(null));
}

/// A text that compresses well: what counts is the object, not its row.
fn text(length: usize) -> String {
    "x".repeat(length)
}

async fn what_is_too_long_is_refused(mut setup: Setup) {
    setup.limits.max_object_bytes = LIMIT;
    let server = setup.start().await;
    too_large(&server.post(CONFIGMAPS, &config_map("long", json!({"k": text(LIMIT)}))).await);
    server.post(CONFIGMAPS, &config_map("near", json!({"k": text(LIMIT - 1000)}))).await.expect(201);
    let apply = format!("{CONFIGMAPS}/applied?fieldManager=m");
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": text(LIMIT)}});
    let applied =
        server.request(Method::PATCH, &apply).body("application/apply-patch+yaml", applied.to_string());
    too_large(&applied.await);

    // A series of patches, each of which is short.
    server.create("grown", json!({})).await;
    let path = format!("{CONFIGMAPS}/grown");
    let mut steps = 0;
    let refused = loop {
        let answer = server.patch(&path, &json!({"data": {steps.to_string(): text(LIMIT / 8)}})).await;
        if answer.status != 200 {
            break answer;
        }
        steps += 1;
    };
    too_large(&refused);
    assert_eq!(steps, 7);
    let grown = server.get(&path).await.ok();
    assert_eq!(grown["data"].as_object().map(|data| data.len()), Some(steps));
    // The object is left as it was, and works.
    let labelled = server.patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert!(rv(&labelled) > rv(&grown));

    // Objects of definitions, and parts of objects.
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    server.post(DEFINITIONS, &definition).await.expect(201);
    let widgets = "/apis/ex.io/v1/namespaces/t/widgets";
    let widget = |content: Value| json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": content});
    too_large(&server.post(widgets, &widget(text(LIMIT).into())).await);
    server.post(widgets, &widget(text(LIMIT / 2).into())).await.expect(201);
    let status = json!({"status": {"long": text(LIMIT / 2)}});
    too_large(&server.patch(format!("{widgets}/w/status"), &status).await);
    server.stop().await;
}

/// An object that was written while the limit was higher.
async fn with_long_object(setup: &mut Setup) -> TestServer {
    let server = setup.start().await;
    let mut object = config_map("long", json!({"a": text(LIMIT), "b": text(LIMIT)}));
    object["metadata"]["finalizers"] = json!(["ex.io/f"]);
    server.post(CONFIGMAPS, &object).await.expect(201);
    server.stop().await;
    setup.limits.max_object_bytes = LIMIT;
    setup.start().await
}

async fn what_was_too_long_before_can_be_read_and_made_smaller_and_deleted(mut setup: Setup) {
    let server = with_long_object(&mut setup).await;
    let path = format!("{CONFIGMAPS}/long");
    let found = server.get(&path).await.ok();
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"].as_array().map(Vec::len), Some(1));
    too_large(&server.patch(&path, &json!({"data": {"c": "d"}})).await);
    too_large(&server.patch(&path, &json!({"data": {"a": text(LIMIT).replace('x', "y")}})).await);
    let same = server.put(&path, &found).await.ok();
    assert_eq!(rv(&same), rv(&found), "nothing changes");
    // It is marked, and the mark makes it longer.
    let marked = server.delete(&path).await.ok();
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    // Shorter, though too long all the same.
    let smaller = server.patch(&path, &json!({"data": {"b": null}})).await.ok();
    assert_eq!(smaller["data"].as_object().map(|data| data.len()), Some(1));
    too_large(&server.patch(&path, &json!({"data": {"b": "c"}})).await);
    server.patch(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(server.get(&path).await.status, 404);
    server.stop().await;
}

/// Upstream writes an object that is too long again without its managers, unless it is applied.
async fn managers_give_way_to_content(mut setup: Setup) {
    setup.limits.max_object_bytes = LIMIT;
    let server = setup.start().await;
    // The sets of managers are about as long as the keys.
    let data: serde_json::Map<String, Value> =
        (0..700).map(|n| (format!("{}{n:03}", "k".repeat(60)), "v".into())).collect();
    let made = server.post(CONFIGMAPS, &config_map("keys", Value::Object(data.clone()))).await.expect(201);
    assert_eq!(made["data"].as_object().map(|data| data.len()), Some(700));
    assert!(made["metadata"].get("managedFields").is_none(), "{}", made["metadata"]);
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data})
            .to_string();
    let path = format!("{CONFIGMAPS}/applied?fieldManager=m");
    too_large(&server.request(Method::PATCH, path).body("application/apply-patch+yaml", applied).await);
    server.stop().await;
}

async fn status_names_what_is_too_long(mut setup: Setup) {
    let server = with_long_object(&mut setup).await;
    server.create("short", json!({"k": text(LIMIT / 2)})).await;
    server.stop().await;
    let datastore = setup.database.datastore();
    let long = long_objects(&datastore, LIMIT).await.unwrap_or_else(|error| panic!("{}", error.one_line()));
    let told: Vec<_> = long.iter().map(|one| (one.resource.to_string(), &*one.name)).collect();
    assert_eq!(told, [("configmaps".to_owned(), "t/long")]);
    assert!((2 * LIMIT..2 * LIMIT + 1000).contains(&long[0].bytes), "unpacked: {}", long[0].bytes);
}
