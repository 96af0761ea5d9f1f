//! The end of a definition and of its objects.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    ALL_WIDGETS, DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, condition, definition, widget, widgets, with,
};
use crate::support::client::Watch;
use crate::support::server::{Setup, TestServer, names};

on_every_store! {
    custom_resources_28_a_delete_marks_a_definition,
    custom_resources_29_objects_go_with_their_definition,
    custom_resources_30_31_an_object_with_a_finalizer_keeps_its_definition,
    custom_resources_32_a_definition_that_was_never_established_goes_at_once,
    custom_resources_98_a_namespace_takes_its_custom_objects_with_it,
    custom_resources_100_a_quota_counts_custom_objects,
    what_is_not_served_goes_with_its_definition,
}

async fn watch_definition(server: &TestServer) -> Watch {
    let start = server.revision().await;
    server.watch(format!("{DEFINITIONS}?watch=1&resourceVersion={start}")).await
}

async fn gone(events: &mut Watch) {
    while events.next().await.expect("it goes")["type"] != "DELETED" {}
}

fn holding(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    object
}

async fn custom_resources_28_a_delete_marks_a_definition(setup: Setup) {
    let server = setup.start().await;
    let created = with(&server, &widgets()).await;
    server.post(WIDGETS, &holding(widget("a", json!({})))).await.expect(201);
    let options = json!({"preconditions": {"uid": "another"}});
    let refused = server.delete(WIDGETS_DEFINITION).json(&options).await;
    assert_eq!(refused.status, 409);
    let message = refused.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        message.contains("precondition failed: UID in precondition: another, UID in object meta: "),
        "{message}"
    );
    server.delete(format!("{WIDGETS_DEFINITION}?dryRun=All")).await.ok();
    assert!(server.get(WIDGETS_DEFINITION).await.ok()["metadata"]["deletionTimestamp"].is_null());
    let marked = server.delete(WIDGETS_DEFINITION).await.ok();
    assert_eq!(marked["kind"], "CustomResourceDefinition");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(marked["metadata"]["generation"], created["metadata"]["generation"]);
    assert!(marked["metadata"]["deletionGracePeriodSeconds"].is_null());
    assert_eq!(
        condition(&marked, "Terminating"),
        "True InstanceDeletionPending CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    );
}

async fn custom_resources_29_objects_go_with_their_definition(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.namespace("e").await;
    let other = WIDGETS.replace("/d/", "/e/");
    for path in [WIDGETS, &other] {
        let made = (0..50).map(|n| server.post(path, &widget(&format!("w{n}"), json!({}))).send());
        assert!(join_all(made).await.iter().all(|answer| answer.status() == 201));
    }
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    let mut definitions = watch_definition(&server).await;
    server.delete(WIDGETS_DEFINITION).await.ok();
    let told = events.rest().await;
    assert_eq!(told.iter().filter(|event| event["type"] == "DELETED").count(), 100, "{}", told.len());
    gone(&mut definitions).await;
    assert_eq!(server.get(ALL_WIDGETS).await.status, 404);
    assert_eq!(server.get("/apis/ex.io").await.status, 404);
    assert_eq!(server.get(WIDGETS_DEFINITION).await.status, 404);
    server.post(DEFINITIONS, &widgets()).await.expect(201);
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), [""; 0]);
}

async fn custom_resources_30_31_an_object_with_a_finalizer_keeps_its_definition(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &holding(widget("a", json!({})))).await.expect(201);
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    let mut definitions = watch_definition(&server).await;
    server.delete(WIDGETS_DEFINITION).await.ok();
    let marked = events.expect_named("MODIFIED", "a").await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    loop {
        let event = definitions.next().await.expect("it begins");
        if condition(&event["object"], "Terminating").starts_with("True InstanceDeletionInProgress") {
            break;
        }
    }
    let refusal = "widgets.ex.io \"b\" is forbidden: create not allowed while custom resource definition is terminating";
    for query in ["", "?dryRun=All"] {
        let refused = server.post(format!("{WIDGETS}{query}"), &widget("b", json!({}))).await;
        refused.fails(403, "Forbidden", refusal, json!({"name": "b", "group": "ex.io", "kind": "widgets"}));
    }
    let request = server.request(http::Method::PATCH, format!("{WIDGETS}/b?fieldManager=m"));
    let body = widget("b", json!({})).to_string();
    let refused = request.body("application/apply-patch+yaml", body).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let listed = server.get("/apis/ex.io/v1").await.ok();
    assert_eq!(
        listed["resources"][0]["verbs"],
        json!(["delete", "deletecollection", "get", "list", "watch"])
    );
    let path = format!("{WIDGETS}/a");
    server.patch(&path, &json!({"spec": {"color": "red"}})).await.ok();
    events.expect_named("MODIFIED", "a").await;
    assert!(condition(&server.get(WIDGETS_DEFINITION).await.ok(), "Terminating").starts_with("True"));
    server.patch(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    events.expect_named("DELETED", "a").await;
    events.expect_end().await;
    gone(&mut definitions).await;
    assert_eq!(server.get(&path).await.status, 404);
}

async fn custom_resources_32_a_definition_that_was_never_established_goes_at_once(setup: Setup) {
    let server = setup.start().await;
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    server.post(DEFINITIONS, &definition("gadgets", "Widget")).await.expect(201);
    let mut definitions = watch_definition(&server).await;
    server.delete(format!("{DEFINITIONS}/gadgets.ex.io")).await.ok();
    let mut last = Value::Null;
    loop {
        let event = definitions.next().await.expect("it goes");
        if event["type"] == "DELETED" {
            break;
        }
        last = event["object"].clone();
    }
    assert!(condition(&last, "Terminating").starts_with("True InstanceDeletionPending"), "{last}");
}

async fn custom_resources_98_a_namespace_takes_its_custom_objects_with_it(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let missing = server.post(WIDGETS.replace("/d/", "/none/"), &widget("a", json!({}))).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    server.post(WIDGETS, &holding(widget("a", json!({})))).await.expect(201);
    let start = server.revision().await;
    let mut namespaces = server.watch(format!("/api/v1/namespaces?watch=1&resourceVersion={start}")).await;
    server.delete("/api/v1/namespaces/d").await.ok();
    let refused = server.post(WIDGETS, &widget("b", json!({}))).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    server.patch(format!("{WIDGETS}/a"), &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&mut namespaces).await;
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), [""; 0]);
}

async fn custom_resources_100_a_quota_counts_custom_objects(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    const QUOTAS: &str = "/api/v1/namespaces/d/resourcequotas";
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.ex.io": "1"}}});
    server.post(QUOTAS, &quota).await.expect(201);
    let used = async || {
        let quota = server.get(format!("{QUOTAS}/q")).await.ok();
        quota["status"]["used"]["count/widgets.ex.io"].clone()
    };
    server.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    let failure = server.post(WIDGETS, &widget("b", json!({}))).await.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(403), &json!("Forbidden")));
    let message = "widgets.ex.io \"b\" is forbidden: exceeded quota: q, requested: count/widgets.ex.io=1, used: \
                   count/widgets.ex.io=1, limited: count/widgets.ex.io=1";
    assert_eq!(failure["message"], message);
    server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"replicas": 2}})).await.ok();
    assert_eq!(used().await, "1");
    server.delete(format!("{WIDGETS}/a")).await.ok();
    assert_eq!(used().await, "0");
    server.post(WIDGETS, &widget("b", json!({}))).await.expect(201);
    // Objects that go with their definition, or are unknown when the quota is made, are counted, too.
    let mut definitions = watch_definition(&server).await;
    server.delete(WIDGETS_DEFINITION).await.ok();
    gone(&mut definitions).await;
    assert_eq!(used().await, "0");
    server.post(DEFINITIONS, &widgets()).await.expect(201);
    server.post(WIDGETS, &widget("c", json!({}))).await.expect(201);
    assert_eq!(server.post(WIDGETS, &widget("d", json!({}))).await.failure()["code"], 403);
}

async fn what_is_not_served_goes_with_its_definition(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    super::change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"][0]["served"] = false.into();
    })
    .await
    .ok();
    let mut definitions = watch_definition(&server).await;
    server.delete(WIDGETS_DEFINITION).await.ok();
    gone(&mut definitions).await;
    server.post(DEFINITIONS, &widgets()).await.expect(201);
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), [""; 0]);
}
