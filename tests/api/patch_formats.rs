//! PATCH in its forms but apply: `docs/spec/patch-apply.md`, assertions 1 to 26. Those about custom resources, decoding into
//! types and limits of size are elsewhere.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

on_every_store! {
    patch_apply_1_formats,
    patch_apply_2_syntax_comes_before_existence,
    patch_apply_3_4_options,
    patch_apply_5_dry_run,
    patch_apply_7_patches_without_a_version_never_conflict,
    patch_apply_8_9_preconditions_in_the_object,
    patch_apply_10_nothing_changes,
    patch_apply_12_15_json_patches,
    patch_apply_13_members_that_are_not_there,
    patch_apply_16_17_merge_patches,
    patch_apply_19_24_lists,
    patch_apply_20_elements_are_deleted_by_key,
    patch_apply_21_a_list_is_replaced_by_a_directive,
    patch_apply_22_objects,
    patch_apply_23_finalizers,
    patch_apply_25_27_retained_keys,
    strategic_merge_of_subresources,
}

async fn patch(server: &TestServer, path: &str, format: &str, body: &Value) -> Answer {
    server.request(Method::PATCH, path).body(format, body.to_string()).await
}

/// A Deployment with these containers, patched with others.
async fn containers(server: &TestServer, name: &str, live: Value, patched: Value) -> Answer {
    let template = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let mut web = deployment(name, json!({}));
    web["spec"]["template"]["spec"]["containers"] = live;
    server.post(DEPLOYMENTS, &web).await.expect(201);
    patch(server, &format!("{DEPLOYMENTS}/{name}"), STRATEGIC, &template(patched)).await
}

fn names(deployment: &Value) -> Vec<&str> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    containers.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}

async fn patch_apply_1_formats(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({})).await;
    let c = format!("{CONFIGMAPS}/c");
    let refused = server.request(Method::PATCH, &c).body("application/json", "{}").await;
    assert_eq!(refused.failure()["reason"], "UnsupportedMediaType");
    patch(&server, &c, "application/merge-patch+json; charset=utf-8", &json!({})).await.ok();
    for format in [STRATEGIC, MERGE] {
        patch(&server, &c, format, &json!({})).await.ok();
    }
}

async fn patch_apply_2_syntax_comes_before_existence(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    for format in [MERGE, STRATEGIC] {
        server.request(Method::PATCH, &c).body(format, "{").await.bad_request("invalid JSON patch");
        assert_eq!(patch(&server, &c, format, &json!({})).await.failure()["code"], 404);
    }
}

async fn patch_apply_3_4_options(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({})).await;
    let c = format!("{CONFIGMAPS}/c");
    let apply = server.request(Method::PATCH, &c).body("application/apply-patch+yaml", "{}").await;
    let required = "Required value: is required for apply patch";
    apply.invalid_options("PatchOptions", &[("FieldValueRequired", "fieldManager", required)]);
    let forced = patch(&server, &format!("{c}?force=false"), STRATEGIC, &json!({})).await;
    let forbidden = "Forbidden: may not be specified for non-apply patch";
    forced.invalid_options("PatchOptions", &[("FieldValueForbidden", "force", forbidden)]);
    let long = server.put(format!("{c}?fieldManager={}", "m".repeat(129)), &json!({})).await;
    let too_long = "Too long: may not be more than 128 bytes";
    long.invalid_options("UpdateOptions", &[("FieldValueTooLong", "fieldManager", too_long)]);
    let cased = server.put(format!("{c}?fieldValidation=strict"), &json!({})).await;
    let unknown = r#"Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn""#;
    cased.invalid_options("UpdateOptions", &[("FieldValueNotSupported", "fieldValidation", unknown)]);
    let empty = patch(&server, &format!("{c}?dryRun="), MERGE, &json!({})).await;
    let unknown = r#"Unsupported value: [""]: supported values: "All""#;
    empty.invalid_options("PatchOptions", &[("FieldValueNotSupported", "dryRun", unknown)]);
}

async fn patch_apply_5_dry_run(setup: Setup) {
    let server = setup.start().await;
    let before = server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&before))).await;
    let tried =
        patch(&server, &format!("{c}?dryRun=All"), STRATEGIC, &json!({"data": {"a": "2"}})).await.ok();
    assert_eq!((&tried["data"]["a"], rv(&tried)), (&json!("2"), rv(&before)));
    assert_eq!(server.get(&c).await.ok(), before);
    let marker = server.create("marker", json!({})).await;
    assert_eq!(watch.expect("ADDED").await, marker, "the first event");
}

async fn patch_apply_7_patches_without_a_version_never_conflict(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({})).await;
    let c = format!("{CONFIGMAPS}/c");
    let labels: Vec<String> = (0..50).map(|n| format!("l{n}")).collect();
    let one = async |label: &String| {
        let body = json!({"metadata": {"labels": {label: "1"}}});
        patch(&server, &c, MERGE, &body).await.ok();
    };
    futures_util::future::join_all(labels.iter().map(one)).await;
    let found = server.get(&c).await.ok();
    let found = found["metadata"]["labels"].as_object().expect("labels");
    assert_eq!(found.len(), 50);
    assert!(labels.iter().all(|label| found.contains_key(label)), "{found:?}");
}

async fn patch_apply_8_9_preconditions_in_the_object(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    for format in [MERGE, STRATEGIC] {
        let with = |field: &str, value: &str| json!({"metadata": {field: value}});
        let stale = patch(&server, &c, format, &with("resourceVersion", "1")).await.failure();
        assert_eq!((&stale["code"], &stale["reason"]), (&json!(409), &json!("Conflict")));
        let lost =
            "the object has been modified; please apply your changes to the latest version and try again";
        assert_eq!(stale["message"], format!("Operation cannot be fulfilled on configmaps \"c\": {lost}"));
        let current = rv(&server.get(&c).await.ok()).to_string();
        patch(&server, &c, format, &with("resourceVersion", &current)).await.ok();
        let renamed = patch(&server, &c, format, &with("name", "d")).await;
        renamed.bad_request("the name of the object (d) does not match the name on the URL (c)");
        let moved = patch(&server, &c, format, &with("namespace", "other")).await;
        moved.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        );
        let other = patch(&server, &c, format, &with("uid", "x")).await.failure();
        assert_eq!(other["code"], 422);
        assert!(other["message"].as_str().expect("text").ends_with("field is immutable"), "{other}");
    }
}

async fn patch_apply_10_nothing_changes(setup: Setup) {
    let server = setup.start().await;
    let before = server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&before))).await;
    for (format, body) in
        [(MERGE, json!({})), (STRATEGIC, json!({"data": {"a": "1", "b": null}})), (JSON, json!([]))]
    {
        assert_eq!(patch(&server, &c, format, &body).await.ok(), before, "{body}");
    }
    let marker = server.create("marker", json!({})).await;
    assert_eq!(watch.expect("ADDED").await, marker, "the first event");
}

async fn patch_apply_12_15_json_patches(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let object = json!({"metadata": {"name": "c", "labels": {"l": "1"}, "annotations": {"n": "1"},
        "finalizers": ["ex.io/a", "ex.io/b"]}});
    server.post(CONFIGMAPS, &object).await.expect(201);
    let step = |op: &str, path: &str, value: &str| json!({"op": op, "path": path, "value": value});
    let generic = "the server rejected our request due to an error in our request";
    for body in [
        json!([step("add", "/metadata/labels/m", "2"), step("test", "/metadata/labels/l", "2")]),
        json!([{"op": "remove", "path": "/metadata/labels/m"}]),
        json!([step("frob", "/metadata/labels/m", "2")]),
    ] {
        patch(&server, &c, JSON, &body).await.fails(422, "Invalid", generic, json!({}));
    }
    let body = json!([
        step("replace", "/metadata/labels/new", "3"),
        step("add", "/metadata/finalizers/-1", "ex.io/z"),
        step("add", "/metadata/annotations/ex.io~1k", "v"),
    ]);
    let patched = patch(&server, &c, JSON, &body).await.ok();
    let metadata = &patched["metadata"];
    assert_eq!(metadata["labels"], json!({"l": "1", "new": "3"}));
    assert_eq!(metadata["finalizers"], json!(["ex.io/a", "ex.io/b", "ex.io/z"]));
    assert_eq!(metadata["annotations"]["ex.io/k"], "v");
    let removed =
        patch(&server, &c, JSON, &json!([{"op": "remove", "path": "/metadata/finalizers/-1"}])).await;
    assert_eq!(removed.ok()["metadata"]["finalizers"], json!(["ex.io/a", "ex.io/b"]));
    assert_eq!(patch(&server, &c, JSON, &json!({})).await.failure()["code"], 400);
}

async fn patch_apply_13_members_that_are_not_there(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let object = json!({"metadata": {"name": "c", "labels": {"l": "1"}}});
    server.post(CONFIGMAPS, &object).await.expect(201);
    let replace = json!([{"op": "replace", "path": "/metadata/labels/new", "value": "2"}]);
    let replaced = patch(&server, &c, JSON, &replace).await.ok();
    assert_eq!(replaced["metadata"]["labels"], json!({"l": "1", "new": "2"}));
    let generic = "the server rejected our request due to an error in our request";
    let remove = json!([{"op": "remove", "path": "/metadata/labels/none"}]);
    patch(&server, &c, JSON, &remove).await.fails(422, "Invalid", generic, json!({}));
}

async fn patch_apply_16_17_merge_patches(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    let text =
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    patch(&server, &c, MERGE, &json!([])).await.bad_request(text);
    patch(&server, &c, MERGE, &Value::Null).await.bad_request("Invalid JSON Patch");
    let patched = patch(&server, &c, MERGE, &json!({"data": {"a": null, "b": "1"}})).await.ok();
    assert_eq!(patched["data"], json!({"b": "1"}));
}

async fn patch_apply_19_24_lists(setup: Setup) {
    let server = setup.start().await;
    let app = json!([{"name": "app", "image": "i"}]);
    let both = json!([{"name": "app", "image": "i"}, {"name": "side", "image": "s"}]);
    let added = containers(&server, "a", app.clone(), json!([{"name": "side", "image": "s"}])).await.ok();
    assert_eq!(names(&added), ["side", "app"]);
    let changed = containers(&server, "b", app.clone(), json!([{"name": "app", "image": "x"}])).await.ok();
    assert_eq!(names(&changed), ["app"]);
    assert_eq!(changed["spec"]["template"]["spec"]["containers"][0]["image"], "x");
    let deleted = json!([{"name": "side", "$patch": "delete"}]);
    assert_eq!(names(&containers(&server, "c", both.clone(), deleted).await.ok()), ["app"]);
    let keyless = containers(&server, "d", app, json!([{"image": "x"}])).await;
    keyless.fails(500, "", "map: map[image:x] does not contain declared merge key: name", Value::Null);
    let replaced = json!([{"$patch": "replace"}, {"name": "only", "image": "i"}]);
    assert_eq!(names(&containers(&server, "e", both, replaced).await.ok()), ["only"]);
    let mut live = deployment("f", json!({}));
    live["spec"]["template"]["spec"]["containers"] =
        ["a", "x", "b"].iter().map(|name| json!({"name": name, "image": "i"})).collect();
    server.post(DEPLOYMENTS, &live).await.expect(201);
    let order = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "d"}, {"name": "x"}, {"name": "b"}],
        "containers": [{"name": "d", "image": "i"}]}}}});
    let ordered = patch(&server, &format!("{DEPLOYMENTS}/f"), STRATEGIC, &order).await.ok();
    assert_eq!(names(&ordered), ["a", "d", "x", "b"]);
}

async fn patch_apply_20_elements_are_deleted_by_key(setup: Setup) {
    let server = setup.start().await;
    let both = json!([{"name": "app", "image": "i"}, {"name": "side", "image": "s"}]);
    let deleted = json!([{"name": "side", "$patch": "delete"}]);
    assert_eq!(names(&containers(&server, "a", both.clone(), deleted).await.ok()), ["app"]);
    let keyless = containers(&server, "b", both, json!([{"image": "x"}])).await;
    keyless.fails(500, "", "map: map[image:x] does not contain declared merge key: name", Value::Null);
    assert_eq!(names(&server.get(format!("{DEPLOYMENTS}/b")).await.ok()), ["app", "side"]);
}

async fn patch_apply_21_a_list_is_replaced_by_a_directive(setup: Setup) {
    let server = setup.start().await;
    let both = json!([{"name": "app", "image": "i"}, {"name": "side", "image": "s"}]);
    let replaced = json!([{"$patch": "replace"}, {"name": "only", "image": "i"}]);
    let replaced = containers(&server, "a", both, replaced).await.ok();
    assert_eq!(names(&replaced), ["only"]);
}

async fn patch_apply_22_objects(setup: Setup) {
    let server = setup.start().await;
    server.create("c", json!({"a": "1"})).await;
    let c = format!("{CONFIGMAPS}/c");
    let replaced =
        patch(&server, &c, STRATEGIC, &json!({"data": {"$patch": "replace", "b": "2"}})).await.ok();
    assert_eq!(replaced["data"], json!({"b": "2"}));
    let merged = patch(&server, &c, STRATEGIC, &json!({"data": {"$patch": "merge"}})).await;
    merged.fails(500, "", "unknown patch type: merge in map: map[$patch:merge]", Value::Null);
}

async fn patch_apply_23_finalizers(setup: Setup) {
    let server = setup.start().await;
    let object = json!({"metadata": {"name": "c", "finalizers": ["ex.io/a", "ex.io/b"]}});
    server.post(CONFIGMAPS, &object).await.expect(201);
    let c = format!("{CONFIGMAPS}/c");
    let added = json!({"metadata": {"finalizers": ["ex.io/c", "ex.io/a"]}});
    let added = patch(&server, &c, STRATEGIC, &added).await.ok();
    assert_eq!(added["metadata"]["finalizers"], json!(["ex.io/c", "ex.io/a", "ex.io/b"]));
    let deleted = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/a", "ex.io/c"]}});
    let deleted = patch(&server, &c, STRATEGIC, &deleted).await.ok();
    assert_eq!(deleted["metadata"]["finalizers"], json!(["ex.io/b"]));
}

async fn patch_apply_25_27_retained_keys(setup: Setup) {
    let server = setup.start().await;
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let mut object = deployment("web", json!({"strategy": strategy}));
    object["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "hostPath": {"path": "/x"}}]);
    server.post(DEPLOYMENTS, &object).await.expect(201);
    let web = format!("{DEPLOYMENTS}/web");
    let bad = json!({"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 1}}}});
    patch(&server, &web, STRATEGIC, &bad).await.bad_request("invalid patch format of retainKeys");
    let good = json!({"spec": {
        "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
        "template": {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}}}});
    let patched = patch(&server, &web, STRATEGIC, &good).await.ok();
    assert_eq!(patched["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(patched["spec"]["template"]["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

async fn strategic_merge_of_subresources(setup: Setup) {
    let server = setup.start().await;
    server.post(DEPLOYMENTS, &deployment("web", json!({"replicas": 1}))).await.expect(201);
    let web = format!("{DEPLOYMENTS}/web");
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    for kind in ["Available", "Progressing"] {
        patch(&server, &format!("{web}/status"), STRATEGIC, &condition(kind)).await.ok();
    }
    let scaled =
        patch(&server, &format!("{web}/scale"), STRATEGIC, &json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(4)));
    let found = server.get(&web).await.ok();
    assert_eq!(found["spec"]["replicas"], 4);
    assert_eq!(found["status"]["conditions"].as_array().map(Vec::len), Some(2));
}
