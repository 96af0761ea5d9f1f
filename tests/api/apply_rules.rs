//! What becomes of fields that managers share, give up, or lose: `docs/spec/patch-apply.md`, assertions 42 to 65, on whole
//! objects over HTTPS. More of these, and upstream's answers to random ones, are in `testdata/apply`.

use http::Method;
use serde_json::{Value, json};

use super::managers::{entry, put_as};
use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/t/networkpolicies";

on_every_store! {
    patch_apply_42_what_is_given_up,
    patch_apply_43_44_what_an_update_took,
    patch_apply_47_an_element_goes_with_its_defaults,
    patch_apply_48_an_element_that_somebody_else_names,
    patch_apply_48_an_element_that_is_left_without_what_it_needs,
    patch_apply_49_an_element_goes_with_what_others_added,
    patch_apply_55_a_selector_is_one_value,
    patch_apply_56_a_set_in_another_order,
    patch_apply_65_null_is_the_default,
    list_watch_76_81_an_apply_makes_one_and_repeats_nothing,
}

async fn apply(server: &TestServer, path: &str, manager: &str, config: &Value) -> Answer {
    let request = server.request(Method::PATCH, format!("{path}?fieldManager={manager}"));
    request.body("application/apply-patch+yaml", config.to_string()).await
}

async fn apply_data(server: &TestServer, manager: &str, data: Value) -> Answer {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
    apply(server, &format!("{CONFIGMAPS}/c"), manager, &config).await
}

/// Applies a Deployment with these containers.
async fn apply_containers(server: &TestServer, manager: &str, containers: Value) -> Answer {
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}}});
    apply(server, &format!("{DEPLOYMENTS}/web"), manager, &config).await
}

fn containers(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"]
}

fn names(deployment: &Value) -> Vec<&str> {
    let containers = containers(deployment).as_array().expect("containers");
    containers.iter().map(|container| container["name"].as_str().expect("a name")).collect()
}

fn applied<'a>(object: &'a Value, manager: &str) -> &'a Value {
    &entry(object, manager, "Apply", "").unwrap_or_else(|| panic!("no {manager}: {object}"))["fieldsV1"]
}

async fn patch_apply_42_what_is_given_up(setup: Setup) {
    let server = setup.start().await;
    apply_data(&server, "a", json!({"x": "1", "y": "1"})).await.expect(201);
    let less = apply_data(&server, "a", json!({"x": "1"})).await.ok();
    assert_eq!(less["data"], json!({"x": "1"}));
    apply_data(&server, "a", json!({"x": "1", "y": "1"})).await.ok();
    apply_data(&server, "b", json!({"y": "1"})).await.ok();
    let kept = apply_data(&server, "a", json!({"x": "1"})).await.ok();
    assert_eq!(kept["data"], json!({"x": "1", "y": "1"}));
    assert_eq!(applied(&kept, "b"), &json!({"f:data": {"f:y": {}}}));
    assert_eq!(applied(&kept, "a"), &json!({"f:data": {"f:x": {}}}));
}

async fn patch_apply_43_44_what_an_update_took(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    apply_data(&server, "a", json!({"x": "1", "y": "1"})).await.expect(201);
    put_as(&server, &c, "u", json!({"data": {"x": "1", "y": "2"}})).await.ok();
    let conflict = apply_data(&server, "a", json!({"x": "1", "y": "1"})).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"u\" using v1: .data.y";
    assert_eq!((&conflict["code"], &conflict["message"]), (&json!(409), &json!(text)));
    let left = apply_data(&server, "a", json!({"x": "1"})).await.ok();
    assert_eq!(left["data"], json!({"x": "1", "y": "2"}));
}

async fn patch_apply_47_an_element_goes_with_its_defaults(setup: Setup) {
    let server = setup.start().await;
    let (app, side) = (json!({"name": "app", "image": "i"}), json!({"name": "side", "image": "s"}));
    let both = apply_containers(&server, "a", json!([app, side])).await.expect(201);
    assert_eq!(names(&both), ["app", "side"]);
    assert!(containers(&both)[1]["imagePullPolicy"].is_string(), "{both}");
    assert_eq!(names(&apply_containers(&server, "a", json!([app])).await.ok()), ["app"]);
}

async fn patch_apply_48_an_element_that_somebody_else_names(setup: Setup) {
    let server = setup.start().await;
    let (app, env) = (json!({"name": "app", "image": "i"}), json!([{"name": "X", "value": "1"}]));
    let (side, shared) =
        (json!({"name": "side", "image": "s"}), json!({"name": "side", "image": "s", "env": env}));
    apply_containers(&server, "a", json!([app, side])).await.expect(201);
    apply_containers(&server, "b", json!([shared])).await.ok();
    let left = apply_containers(&server, "a", json!([app])).await.ok();
    assert_eq!(names(&left), ["app", "side"]);
    assert_eq!((&containers(&left)[1]["image"], &containers(&left)[1]["env"]), (&json!("s"), &env));
}

async fn patch_apply_48_an_element_that_is_left_without_what_it_needs(setup: Setup) {
    let server = setup.start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let of = |containers: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let app = json!([{"name": "app", "image": "i"}]);
    let made = apply_containers(&server, "a", app).await.expect(201);
    let env = json!([{"name": "app", "env": [{"name": "X", "value": "1"}]}]);
    apply(&server, &path, "b", &of(env)).await.ok();
    let before = server.get(&path).await.ok();
    let bare = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}}}});
    let refused = apply(&server, &path, "a", &bare).await.failure();
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(422), &json!("Invalid")), "{refused}");
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.template.spec.containers[0].image");
    assert_eq!(cause["message"], "Required value");
    let after = server.get(&path).await.ok();
    assert_eq!(after, before);
    assert_eq!(after["metadata"]["uid"], made["metadata"]["uid"]);
}

async fn patch_apply_49_an_element_goes_with_what_others_added(setup: Setup) {
    let server = setup.start().await;
    let (app, side) = (json!({"name": "app", "image": "i"}), json!({"name": "side", "image": "s"}));
    let mut both = apply_containers(&server, "a", json!([app, side])).await.expect(201);
    both["spec"]["template"]["spec"]["containers"][1]["env"] = json!([{"name": "X", "value": "1"}]);
    put_as(&server, &format!("{DEPLOYMENTS}/web"), "u", both).await.ok();
    let left = apply_containers(&server, "a", json!([app])).await.ok();
    assert_eq!(names(&left), ["app"]);
    assert!(entry(&left, "u", "Update", "").is_none(), "{left}");
}

async fn patch_apply_55_a_selector_is_one_value(setup: Setup) {
    let server = setup.start().await;
    let config = |labels: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"},
            "spec": {"podSelector": {"matchLabels": labels}}})
    };
    let path = format!("{POLICIES}/p");
    apply(&server, &path, "a", &config(json!({"x": "1"}))).await.expect(201);
    let conflict = apply(&server, &path, "b", &config(json!({"x": "1", "y": "1"}))).await.failure();
    assert_eq!(conflict["message"], "Apply failed with 1 conflict: conflict with \"a\": .spec.podSelector");
}

async fn patch_apply_56_a_set_in_another_order(setup: Setup) {
    let server = setup.start().await;
    let finalizers =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("ex.io/{name}")).collect() };
    let metadata = json!({"name": "c", "finalizers": finalizers(&["a", "b", "c"])});
    server.post(CONFIGMAPS, &json!({"metadata": metadata})).await.expect(201);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "finalizers": finalizers(&["c", "x", "a"])}});
    let merged = apply(&server, &format!("{CONFIGMAPS}/c"), "m", &config).await.ok();
    assert_eq!(merged["metadata"]["finalizers"], json!(finalizers(&["b", "c", "x", "a"])));
}

async fn patch_apply_65_null_is_the_default(setup: Setup) {
    let server = setup.start().await;
    let config = |replicas: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    };
    let path = format!("{DEPLOYMENTS}/web");
    apply(&server, &path, "a", &config(json!(3))).await.expect(201);
    let reset = apply(&server, &path, "a", &config(Value::Null)).await.ok();
    assert_eq!(reset["spec"]["replicas"], 1);
    assert!(applied(&reset, "a")["f:spec"]["f:replicas"].is_object(), "{reset}");
}

async fn list_watch_76_81_an_apply_makes_one_and_repeats_nothing(setup: Setup) {
    let server = setup.start().await;
    let made = apply_data(&server, "a", json!({"x": "1"})).await.expect(201);
    let before = server.revision().await;
    let again = apply_data(&server, "a", json!({"x": "1"})).await.ok();
    assert_eq!(rv(&again), rv(&made));
    assert_eq!(server.revision().await, before);
}
