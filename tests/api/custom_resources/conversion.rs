//! Conversion by webhook: section 7 of the specification.

use std::collections::HashSet;

use http::Method;
use serde_json::{Value, json};

use super::{ALL_WIDGETS, WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::conversion_hook::Hook;
use crate::support::server::{Setup, TestServer, names, rv};

on_every_store! {
    custom_resources_88_a_webhook_is_called_once_for_a_change,
    custom_resources_89_a_review_has_whole_objects,
    custom_resources_90_only_labels_and_annotations_are_the_webhooks,
    custom_resources_91_wrong_answers_are_told_in_upstreams_words,
    custom_resources_92_who_does_not_need_the_webhook_does_without,
    custom_resources_93_watches_and_lists_are_in_their_version,
    nothing_waits_for_a_webhook_that_hangs,
    controllers_call_no_webhook,
    selections_are_judged_in_the_requested_version,
    pages_are_converted,
    managers_keep_their_versions,
    parts_are_converted_too,
    dry_runs_are_converted,
    a_changed_storage_version_leaves_rows_as_they_are,
    a_changed_webhook_counts_at_its_answer,
    what_is_committed_is_not_tried_again,
    webhooks_of_services_are_called,
    many_clients_share_what_was_converted,
    conversions_are_counted,
}

pub const V2: &str = "/apis/ex.io/v2/namespaces/d/widgets";
const ALL_V2: &str = "/apis/ex.io/v2/widgets";

/// The definition W with a version v2, in which `color` is called `paint`, and the webhook.
pub fn in_two_versions(client_config: Value) -> Value {
    let mut two = widgets();
    let mut v2 = two["spec"]["versions"][0].clone();
    (v2["name"], v2["storage"]) = ("v2".into(), false.into());
    let properties = &mut v2["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    properties.as_object_mut().expect("properties").remove("color");
    properties["paint"] = json!({"type": "string"});
    v2["selectableFields"] = json!([{"jsonPath": ".spec.paint"}]);
    two["spec"]["versions"].as_array_mut().expect("versions").push(v2);
    two["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v9", "v1", "v1beta1"], "clientConfig": client_config}});
    two
}

async fn start(setup: &Setup) -> (TestServer, Hook) {
    let (server, hook) = (setup.start().await, Hook::start().await);
    with(&server, &in_two_versions(hook.client_config())).await;
    (server, hook)
}

fn in_v2(name: &str, spec: Value) -> Value {
    let mut widget = widget(name, spec);
    widget["apiVersion"] = "ex.io/v2".into();
    widget
}

/// A request that is refused is judged again if its definition has changed meanwhile, but not one that has been carried out:
/// a second create would find the object of the first.
async fn what_is_committed_is_not_tried_again(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let gate = hook.gate();
    hook.lie(move |review, honest| match review["request"]["desiredAPIVersion"] == "ex.io/v1" {
        true => {
            gate.send_replace(true);
            honest
        }
        false => json!({}),
    });
    let client = server.admin.clone();
    let create = tokio::spawn(async move { client.post(V2, &in_v2("a", json!({"paint": "red"}))).await });
    // Its answer is converted; the object is there.
    hook.arrived(2).await;
    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"][0]["deprecated"] = true.into();
    });
    changed.await.ok();
    hook.release();
    assert_eq!(create.await.expect("no panic").status, 500);
    assert_eq!(hook.calls(), 2);
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok()["spec"], json!({"color": "red"}));
}

/// Makes a wrong answer of an honest one.
type Spoil = fn(&mut Value);

/// The status code and the message of a failure.
fn told(answer: &Answer) -> (u64, String) {
    let status = answer.json();
    (status["code"].as_u64().unwrap_or_default(), status["message"].as_str().unwrap_or_default().to_owned())
}

async fn custom_resources_88_a_webhook_is_called_once_for_a_change(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let made = server.post(V2, &in_v2("a", json!({"paint": "red"}))).await.expect(201);
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("ex.io/v2"), &json!({"paint": "red"})));
    let seen = hook.seen();
    let first = &seen[0]["request"];
    assert_eq!(first["desiredAPIVersion"], "ex.io/v1");
    assert_eq!(first["objects"][0]["apiVersion"], "ex.io/v2");
    assert_eq!(first["objects"][0]["spec"], json!({"paint": "red"}));
    // The answer is what was stored, in the requested version.
    assert_eq!((seen.len(), &seen[1]["request"]["desiredAPIVersion"]), (2, &json!("ex.io/v2")));

    let stored = server.get(format!("{WIDGETS}/a")).await.ok();
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&json!("ex.io/v1"), &json!({"color": "red"})));
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(server.get(format!("{V2}/a")).await.ok(), made);
    assert_eq!(hook.calls(), 2);

    let patched = server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"color": "blue"}})).await.ok();
    // What the manager in v2 owns is compared in v2: one call with the object as it was and as it will be.
    let compared = hook.seen().pop().expect("a review");
    assert_eq!(compared["request"]["objects"].as_array().map(Vec::len), Some(2));
    assert_eq!((rv(&patched) > rv(&made), hook.calls()), (true, 3));
    for _ in 0..3 {
        assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({"paint": "blue"}));
        assert_eq!(server.get(ALL_V2).await.ok()["items"][0]["spec"], json!({"paint": "blue"}));
    }
    assert_eq!(hook.calls(), 4);
    let changed = server.patch(format!("{V2}/a"), &json!({"spec": {"replicas": 2}})).await.ok();
    assert_eq!(changed["spec"], json!({"paint": "blue", "replicas": 2}));
    assert_eq!(
        server.get(format!("{WIDGETS}/a")).await.ok()["spec"],
        json!({"color": "blue", "replicas": 2})
    );
    assert_eq!(changed["metadata"]["generation"], 3);
    // An update that changes nothing writes nothing.
    let again = server.put(format!("{V2}/a"), &changed).await.ok();
    assert_eq!(rv(&again), rv(&changed));
}

async fn custom_resources_89_a_review_has_whole_objects(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let mut made = Vec::new();
    for name in ["a", "b"] {
        let spec = json!({"color": "red", "ports": [{"port": 80}]});
        made.push(server.post(WIDGETS, &widget(name, spec)).await.expect(201));
        hook.seen();
        server.get(format!("{V2}/{name}")).await.ok();
        let seen = hook.seen();
        assert_eq!(seen.len(), 1);
        let review = &seen[0];
        assert_eq!(
            (&review["kind"], &review["apiVersion"]),
            (&json!("ConversionReview"), &json!("apiextensions.k8s.io/v1"))
        );
        assert_eq!(
            review["response"],
            json!({"uid": "", "convertedObjects": null, "result": {"metadata": {}}})
        );
        assert_eq!(review["request"]["objects"], json!([made.last()]));
        made.push(review["request"]["uid"].clone());
    }
    assert_ne!(made[1], made[3]);
}

async fn custom_resources_90_only_labels_and_annotations_are_the_webhooks(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let mut object = widget("a", json!({"color": "red"}));
    object["metadata"]["labels"] = json!({"own": "1"});
    object["metadata"]["finalizers"] = json!(["ex.io/f"]);
    server.post(WIDGETS, &object).await.expect(201);
    let lie = |change: fn(&mut Value)| {
        hook.lie(move |_, mut answer| {
            change(&mut answer["response"]["convertedObjects"][0]);
            answer
        });
    };
    let refused = |why: &str| (500, format!("conversion webhook for ex.io/v1, Kind=Widget {why}"));
    let read = || async { told(&server.get(format!("{V2}/a")).await) };
    lie(|object| object["metadata"]["name"] = "b".into());
    assert_eq!(read().await, refused("returned invalid object: must have the same name: a != b"));
    lie(|object| _ = object.as_object_mut().expect("an object").remove("metadata"));
    assert_eq!(read().await, refused("returned invalid object: must have the same name: a != "));
    lie(|object| object["metadata"]["labels"] = json!({"bad label": "1"}));
    assert!(read().await.1.contains("metadata.labels: Invalid value: \"bad label\""), "{:?}", read().await);
    lie(|object| {
        object["metadata"]["finalizers"] = json!([]);
        object["metadata"]["annotations"] = json!({"new": "1"});
        object["metadata"]["labels"] = json!({"other": "2"});
        object["spec"]["unknown"] = 1.into();
    });
    let read = server.get(format!("{V2}/a")).await.ok();
    let metadata = &read["metadata"];
    assert_eq!(metadata["finalizers"], json!(["ex.io/f"]));
    assert_eq!(metadata["annotations"], json!({"new": "1"}));
    assert_eq!(metadata["labels"], json!({"other": "2"}));
    assert_eq!(read["spec"], json!({"paint": "red"}));
}

async fn custom_resources_91_wrong_answers_are_told_in_upstreams_words(setup: Setup) {
    let (server, hook) = start(&setup).await;
    for name in ["a", "b"] {
        server.post(WIDGETS, &widget(name, json!({"color": "red"}))).await.expect(201);
    }
    let of_list = |why: &str| (500, format!("conversion webhook for ex.io/v1, Kind=Widget {why}"));
    let cases: [(Spoil, &str); 6] = [
        (
            |answer| _ = answer["response"]["convertedObjects"].as_array_mut().expect("objects").pop(),
            "returned 1 objects, expected 2",
        ),
        (
            |answer| answer["response"]["convertedObjects"][1]["apiVersion"] = "ex.io/v1".into(),
            "returned invalid converted object at index 1: invalid groupVersion (expected ex.io/v2, received ex.io/v1)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["kind"] = "Gadget".into(),
            "returned invalid converted object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure", "message": "not today"}),
            "failed: not today",
        ),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure"}),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            |answer| _ = answer.as_object_mut().expect("an object").remove("response"),
            "failed: no response provided",
        ),
    ];
    for (lie, why) in cases {
        hook.lie(move |_, mut answer| {
            lie(&mut answer);
            answer
        });
        assert_eq!(told(&server.get(ALL_V2).await), of_list(why));
        assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), ["a", "b"]);
    }
    hook.lie(|_, mut answer| {
        answer["response"]["uid"] = "7".into();
        answer
    });
    let (code, message) = told(&server.get(format!("{V2}/a")).await);
    let start = "conversion webhook for ex.io/v1, Kind=Widget failed: expected response.uid=\"";
    assert!(code == 500 && message.starts_with(start) && message.ends_with("\", got \"7\""), "{message}");
    hook.answer(500, "oops");
    let failed =
        of_list("failed: an error on the server (\"oops\") has prevented the request from succeeding");
    assert_eq!(told(&server.get(format!("{V2}/a")).await), failed);
    hook.answer(200, "{");
    assert_eq!(server.get(format!("{V2}/a")).await.status, 500);
    // Nothing was lost.
    hook.be_honest();
    assert_eq!(names(&server.get(ALL_V2).await.ok()), ["a", "b"]);
}

async fn custom_resources_92_who_does_not_need_the_webhook_does_without(setup: Setup) {
    let (server, mut hook) = start(&setup).await;
    for name in ["a", "b", "c", "d"] {
        let mut object = widget(name, json!({"color": "red"}));
        if name == "c" {
            object["metadata"]["finalizers"] = json!(["ex.io/f"]);
        }
        server.post(WIDGETS, &object).await.expect(201);
    }
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    hook.stop().await;
    let failed = format!(
        "conversion webhook for ex.io/v1, Kind=Widget failed: Post \"https://{0}/convert?timeout=30s\": \
         dial tcp {0}: connect: connection refused",
        hook.address
    );
    let down = (500, failed);
    assert_eq!(told(&server.get(ALL_V2).await), down);
    assert_eq!(told(&server.get(format!("{V2}/a")).await), down);
    assert_eq!(told(&server.get(format!("{V2}/a/scale")).await), down);
    assert_eq!(told(&server.patch(format!("{V2}/a"), &json!({"spec": {}})).await), down);
    let written = in_v2("new", json!({"paint": "red"}));
    let failed = told(&server.post(V2, &written).await);
    assert_eq!(
        (failed.0, failed.1.starts_with("conversion webhook for ex.io/v2, Kind=Widget failed: Post ")),
        (500, true)
    );
    // Whoever needs no conversion notices nothing.
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), ["a", "b", "c", "d"]);
    server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"replicas": 1}})).await.ok();
    events.expect_named("MODIFIED", "a").await;
    server.delete(format!("{WIDGETS}/a")).await.ok();
    events.expect_named("DELETED", "a").await;
    // Neither do deletions, in any version.
    assert_eq!(server.delete(format!("{V2}/b")).await.ok()["status"], "Success");
    events.expect_named("DELETED", "b").await;
    assert_eq!(server.delete(format!("{V2}/c")).await.ok()["status"], "Success");
    let marked = events.expect_named("MODIFIED", "c").await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    server.patch(format!("{WIDGETS}/c"), &json!({"metadata": {"finalizers": null}})).await.ok();
    events.expect_named("DELETED", "c").await;
    assert_eq!(server.delete(V2).await.ok()["status"], "Success");
    events.expect_named("DELETED", "d").await;

    server.post(WIDGETS, &widget("e", json!({"color": "red"}))).await.expect(201);
    hook.listen().await;
    assert_eq!(server.get(ALL_V2).await.ok()["items"][0]["spec"], json!({"paint": "red"}));
    server.post(V2, &written).await.expect(201);
    assert_eq!(server.delete(format!("{V2}/new")).await.ok()["status"], "Success");
}

async fn custom_resources_93_watches_and_lists_are_in_their_version(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_V2}?watch=1&resourceVersion={start}")).await;
    for round in 0..20 {
        let name = format!("w{round}");
        server.post(WIDGETS, &widget(&name, json!({"color": "red"}))).await.expect(201);
        server.patch(format!("{WIDGETS}/{name}"), &json!({"spec": {"color": "blue"}})).await.ok();
        if round % 2 == 0 {
            server.delete(format!("{WIDGETS}/{name}")).await.ok();
        }
    }
    for round in 0..20 {
        let name = format!("w{round}");
        let added = events.expect_named("ADDED", &name).await;
        assert_eq!((&added["apiVersion"], &added["spec"]), (&json!("ex.io/v2"), &json!({"paint": "red"})));
        assert_eq!(events.expect_named("MODIFIED", &name).await["spec"], json!({"paint": "blue"}));
        if round % 2 == 0 {
            assert_eq!(events.expect_named("DELETED", &name).await["spec"], json!({"paint": "blue"}));
        }
    }
    let mut state = server.watch(format!("{ALL_V2}?watch=1")).await;
    assert_eq!(state.expect_named("ADDED", "a").await["spec"], json!({"paint": "red"}));
    // Rows of both versions.
    switch_storage(&server, "v2").await;
    server.post(V2, &in_v2("x", json!({"paint": "green"}))).await.expect(201);
    for (path, member, version) in [(ALL_WIDGETS, "color", "ex.io/v1"), (ALL_V2, "paint", "ex.io/v2")] {
        let list = server.get(path).await.ok();
        let items = list["items"].as_array().expect("items");
        assert_eq!(items.len(), 12);
        assert!(
            items.iter().all(|item| item["apiVersion"] == version && item["spec"][member].is_string()),
            "{list}"
        );
    }
    // A table, and metadata alone.
    let table = server.request(Method::GET, ALL_V2);
    let table = table.accept("application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(12));
    drop(hook);
}

/// Makes a version the one that objects are stored in.
pub async fn switch_storage(server: &TestServer, to: &str) {
    let switch = |definition: &mut Value| {
        for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
            version["storage"] = (version["name"] == to).into();
        }
    };
    change(server, WIDGETS_DEFINITION, switch).await.ok();
}

async fn nothing_waits_for_a_webhook_that_hangs(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    hook.hold();
    let read = async { server.get(format!("{V2}/a")).await.ok() };
    let others = async {
        hook.arrived(1).await;
        server.post(WIDGETS, &widget("b", json!({}))).await.expect(201);
        assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), ["a", "b"]);
        server.delete(format!("{V2}/b")).await.ok();
        hook.release();
    };
    let (read, ()) = tokio::join!(read, others);
    assert_eq!(read["spec"], json!({"paint": "red"}));
}

async fn controllers_call_no_webhook(setup: Setup) {
    let (server, mut hook) = start(&setup).await;
    let owner = server.post(WIDGETS, &widget("owner", json!({}))).await.expect(201);
    let reference = json!([{"apiVersion": "ex.io/v2", "kind": "Widget", "name": "owner",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    for name in ["one", "other"] {
        let mut dependent = widget(name, json!({}));
        dependent["metadata"]["ownerReferences"] = reference.clone();
        server.post(WIDGETS, &dependent).await.expect(201);
    }
    switch_storage(&server, "v2").await;
    let calls = hook.calls();
    hook.stop().await;
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    // The collector takes owners off, and deletes dependents; rows stay in the version that they are stored in.
    server.delete(format!("{V2}/owner?propagationPolicy=Foreground")).await.ok();
    let mut gone = HashSet::new();
    while gone.len() < 3 {
        let event = events.next().await.expect("an event");
        if event["type"] == "DELETED" {
            gone.insert(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned());
        }
        assert_eq!(event["object"]["apiVersion"], "ex.io/v1");
    }
    hook.listen().await;
    switch_storage(&server, "v1").await;
    let owner = server.post(WIDGETS, &widget("owner", json!({}))).await.expect(201);
    let mut dependent = widget("left", json!({}));
    dependent["metadata"]["ownerReferences"] = reference;
    dependent["metadata"]["ownerReferences"][0]["uid"] = owner["metadata"]["uid"].clone();
    server.post(WIDGETS, &dependent).await.expect(201);
    switch_storage(&server, "v2").await;
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    assert_eq!(hook.calls(), calls);
    hook.stop().await;
    server.delete(format!("{V2}/owner?propagationPolicy=Orphan")).await.ok();
    loop {
        let event = events.next().await.expect("an event");
        if event["type"] == "DELETED" {
            break;
        }
    }
    let left = server.get(format!("{WIDGETS}/left")).await.ok();
    assert!(left["metadata"].get("ownerReferences").is_none(), "{left}");
    // The end of a namespace.
    let mut end = server.watch("/api/v1/namespaces?watch=1&fieldSelector=metadata.name=d").await;
    end.expect_named("ADDED", "d").await;
    server.delete("/api/v1/namespaces/d").await.ok();
    while end.next().await.expect("an event")["type"] != "DELETED" {}
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), [""; 0]);
    assert_eq!(hook.calls(), calls);
}

async fn selections_are_judged_in_the_requested_version(setup: Setup) {
    let (server, hook) = start(&setup).await;
    // The webhook labels what it makes of v1.
    hook.lie(|review, mut answer| {
        for object in answer["response"]["convertedObjects"].as_array_mut().expect("objects") {
            if review["request"]["desiredAPIVersion"] == "ex.io/v2" {
                object["metadata"]["labels"] = json!({"paint": object["spec"]["paint"]});
            }
        }
        answer
    });
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        server.post(WIDGETS, &widget(name, json!({"color": color}))).await.expect(201);
    }
    for selector in ["fieldSelector=spec.paint=red", "labelSelector=paint=red"] {
        assert_eq!(names(&server.get(format!("{ALL_V2}?{selector}")).await.ok()), ["a", "c"]);
        let page = server.get(format!("{ALL_V2}?limit=1&{selector}")).await.ok();
        assert_eq!(names(&page), ["a"]);
        let next = page["metadata"]["continue"].as_str().expect("a token");
        let rest = server.get(format!("{ALL_V2}?limit=2&{selector}&continue={next}")).await.ok();
        assert_eq!(names(&rest), ["c"]);
        let mut state = server.watch(format!("{ALL_V2}?watch=1&{selector}")).await;
        for name in ["a", "c"] {
            assert_eq!(state.expect_named("ADDED", name).await["spec"]["paint"], "red");
        }
        server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"color": "blue"}})).await.ok();
        state.expect_named("DELETED", "a").await;
        server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"color": "red"}})).await.ok();
        state.expect_named("ADDED", "a").await;
    }
    assert_eq!(names(&server.get(format!("{ALL_WIDGETS}?labelSelector=paint=red")).await.ok()), [""; 0]);
    server.delete(format!("{V2}?fieldSelector=spec.paint=red")).await.ok();
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), ["b"]);
}

async fn pages_are_converted(setup: Setup) {
    let (server, hook) = start(&setup).await;
    for number in 0..300 {
        server.post(WIDGETS, &widget(&format!("w{number:03}"), json!({"color": "red"}))).await.expect(201);
    }
    let start = server.revision().await;
    let page = server.get(format!("{ALL_V2}?limit=290")).await.ok();
    assert_eq!((names(&page).len(), hook.calls()), (290, 2));
    assert!(
        page["items"].as_array().expect("items").iter().all(|item| item["spec"] == json!({"paint": "red"}))
    );
    let next = page["metadata"]["continue"].as_str().expect("a token");
    assert_eq!(page["metadata"]["remainingItemCount"], 10);
    let rest = server.get(format!("{ALL_V2}?limit=290&continue={next}")).await.ok();
    assert_eq!((names(&rest).len(), hook.calls()), (10, 3));
    // Of an older state, which is not in memory any more: most conversions are known.
    server.patch(format!("{WIDGETS}/w000"), &json!({"spec": {"color": "blue"}})).await.ok();
    let old = format!("{ALL_V2}?resourceVersion={start}&resourceVersionMatch=Exact");
    assert_eq!(server.get(old).await.ok()["items"][0]["spec"], json!({"paint": "red"}));
    assert_eq!(hook.calls(), 3);
    let all = server.get(format!("{V2}?pretty=true")).await.ok();
    assert_eq!((names(&all).len(), hook.calls()), (300, 4));
}

async fn apply(server: &TestServer, path: &str, manager: &str, object: &Value) -> Answer {
    let request = server.request(Method::PATCH, format!("{path}?fieldManager={manager}"));
    request.body("application/apply-patch+yaml", object.to_string()).await
}

async fn managers_keep_their_versions(setup: Setup) {
    let (server, mut hook) = start(&setup).await;
    let path = |version: &str| format!("/apis/ex.io/{version}/namespaces/d/widgets/a");
    apply(&server, &path("v1"), "one", &widget("a", json!({"color": "red"}))).await.expect(201);
    // The same field has another name in the other version.
    let conflict = apply(&server, &path("v2"), "two", &in_v2("a", json!({"paint": "blue"}))).await;
    let (code, message) = told(&conflict);
    assert_eq!((code, &*message), (409, "Apply failed with 1 conflict: conflict with \"one\": .spec.color"));
    let both =
        apply(&server, &path("v2"), "two", &in_v2("a", json!({"paint": "red", "replicas": 1}))).await.ok();
    let managers = both["metadata"]["managedFields"].as_array().expect("managers");
    let told_of: Vec<_> = managers
        .iter()
        .map(|entry| (&entry["manager"], &entry["apiVersion"], &entry["fieldsV1"]["f:spec"]))
        .collect();
    assert_eq!(
        told_of,
        [
            (&json!("one"), &json!("ex.io/v1"), &json!({"f:color": {}})),
            (&json!("two"), &json!("ex.io/v2"), &json!({"f:paint": {}, "f:replicas": {}})),
        ]
    );
    // What one manager gives up stays, since the other one has it in its version.
    let left = apply(&server, &path("v1"), "one", &widget("a", json!({}))).await.ok();
    assert_eq!(left["spec"], json!({"color": "red", "replicas": 1}));
    // An update in one version takes the field from its manager in the other one.
    let changed = server
        .patch(format!("{}?fieldManager=three", path("v1")), &json!({"spec": {"color": "green"}}))
        .await
        .ok();
    let managers = changed["metadata"]["managedFields"].as_array().expect("managers");
    let of = |name: &str| {
        managers.iter().find(|entry| entry["manager"] == name).expect(name)["fieldsV1"]["f:spec"].clone()
    };
    assert_eq!((of("two"), of("three")), (json!({"f:replicas": {}}), json!({"f:color": {}})));
    // Without the webhook, an apply that has to compare across versions fails; an update leaves the others alone.
    hook.stop().await;
    let (code, message) =
        told(&apply(&server, &path("v1"), "four", &widget("a", json!({"replicas": 2}))).await);
    assert_eq!((code, message.contains("failed: Post ")), (500, true), "{message}");
    let changed = server
        .patch(format!("{}?fieldManager=three", path("v1")), &json!({"spec": {"replicas": 7}}))
        .await
        .ok();
    let managers = changed["metadata"]["managedFields"].as_array().expect("managers");
    let two = managers.iter().find(|entry| entry["manager"] == "two").expect("two");
    assert_eq!(two["fieldsV1"]["f:spec"], json!({"f:replicas": {}}));
    hook.listen().await;
    assert_eq!(server.get(path("v2")).await.ok()["spec"], json!({"paint": "green", "replicas": 7}));
}

async fn parts_are_converted_too(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red", "replicas": 1}))).await.expect(201);
    let scale = server.get(format!("{V2}/a/scale")).await.ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    let scaled = server.patch(format!("{V2}/a/scale"), &json!({"spec": {"replicas": 5}})).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let status = server.patch(format!("{V2}/a/status"), &json!({"status": {"ready": true}})).await.ok();
    assert_eq!((&status["apiVersion"], &status["spec"]["paint"]), (&json!("ex.io/v2"), &json!("red")));
    let read = server.get(format!("{WIDGETS}/a")).await.ok();
    assert_eq!(
        (&read["spec"], &read["status"]),
        (&json!({"color": "red", "replicas": 5}), &json!({"ready": true}))
    );
    let reset = server.put(format!("{V2}/a/status"), &status).await.ok();
    assert_eq!(rv(&reset), rv(&status));
    drop(hook);
}

async fn dry_runs_are_converted(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let dry = server.post(format!("{V2}?dryRun=All"), &in_v2("a", json!({"paint": "red"}))).await.expect(201);
    assert_eq!(
        (&dry["apiVersion"], &dry["spec"], hook.calls()),
        (&json!("ex.io/v2"), &json!({"paint": "red"}), 2)
    );
    hook.answer(500, "no");
    assert_eq!(server.post(format!("{V2}?dryRun=All"), &in_v2("a", json!({}))).await.status, 500);
    hook.be_honest();
    let mut object = widget("b", json!({"color": "red"}));
    object["metadata"]["finalizers"] = json!(["ex.io/f"]);
    server.post(WIDGETS, &object).await.expect(201);
    let deleted = server.delete(format!("{V2}/b?dryRun=All")).await.ok();
    assert_eq!((&deleted["apiVersion"], &deleted["spec"]), (&json!("ex.io/v2"), &json!({"paint": "red"})));
    let deleted = server.delete(format!("{V2}/b")).await.ok();
    assert_eq!((&deleted["apiVersion"], &deleted["spec"]), (&json!("ex.io/v2"), &json!({"paint": "red"})));
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
}

async fn a_changed_storage_version_leaves_rows_as_they_are(setup: Setup) {
    let (server, hook) = start(&setup).await;
    let made = server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    switch_storage(&server, "v2").await;
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    // The old row is read in its own version without a call, and in the other one by the webhook.
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok(), made);
    assert_eq!(hook.calls(), 0);
    assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({"paint": "red"}));
    // A write that changes nothing stores it anew.
    let patched = server.patch(format!("{V2}/a"), &json!({})).await.ok();
    assert_eq!((rv(&patched) > rv(&made), &patched["metadata"]["generation"]), (true, &json!(1)));
    let calls = hook.calls();
    assert_eq!(server.get(format!("{V2}/a")).await.ok(), patched);
    assert_eq!(hook.calls(), calls);
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok()["spec"], json!({"color": "red"}));
}

async fn a_changed_webhook_counts_at_its_answer(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({"paint": "red"}));
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_V2}?watch=1&resourceVersion={start}")).await;
    let other = Hook::start().await;
    other.lie(|_, mut answer| {
        answer["response"]["convertedObjects"][0]["spec"]["paint"] = "pink".into();
        answer
    });
    let config = other.client_config();
    let definition = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["conversion"]["webhook"]["clientConfig"] = config.clone();
    });
    definition.await.ok();
    assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({"paint": "pink"}));
    events.expect_end().await;
    // Without a webhook, what the other version does not know is hidden.
    let definition = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    });
    definition.await.ok();
    assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({}));
    assert_eq!((hook.calls(), other.calls()), (1, 1));
}

async fn webhooks_of_services_are_called(setup: Setup) {
    let (server, hook) = (setup.start().await, Hook::start().await);
    let port = hook.address.port();
    let service = json!({"namespace": "d", "name": "hook", "port": port, "path": "/convert"});
    with(&server, &in_two_versions(json!({"service": service, "caBundle": hook.ca_bundle}))).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let read = || async { server.get(format!("{V2}/a")).await };
    let failed = |why: &str| {
        let post = format!("Post \"https://hook.d.svc:{port}/convert?timeout=30s\"");
        (500, format!("conversion webhook for ex.io/v1, Kind=Widget failed: {post}: {why}"))
    };
    assert_eq!(told(&read().await), failed("service \"hook\" not found"));
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 1}]}});
    server.post("/api/v1/namespaces/d/services", &service).await.expect(201);
    assert_eq!(told(&read().await), failed(&format!("no service port {port} found for service \"hook\"")));
    server.delete("/api/v1/namespaces/d/services/hook").await.ok();
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    server.post("/api/v1/namespaces/d/services", &service).await.expect(201);
    assert_eq!(read().await.ok()["spec"], json!({"paint": "red"}));
}

async fn many_clients_share_what_was_converted(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let start = server.revision().await;
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(server.watch(format!("{ALL_V2}?watch=1&resourceVersion={start}")).await);
    }
    hook.hold();
    server.post(WIDGETS, &widget("b", json!({"color": "red"}))).await.expect(201);
    hook.arrived(1).await;
    let reads =
        futures_util::future::join_all((0..10).map(|_| async { server.get(format!("{V2}/b")).await.ok() }));
    let release = async { hook.release() };
    let (read, ()) = tokio::join!(reads, release);
    for watch in &mut watches {
        assert_eq!(&watch.expect_named("ADDED", "b").await, &read[0]);
    }
    assert_eq!(hook.calls(), 1);
}

async fn conversions_are_counted(setup: Setup) {
    let (server, hook) = start(&setup).await;
    server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    hook.answer(500, "no");
    assert_eq!(server.get(format!("{V2}/a")).await.status, 500);
    hook.be_honest();
    server.get(format!("{V2}/a")).await.ok();
    let metrics = server.get("/metrics").await.text();
    for line in [
        "apiserver_conversion_webhook_request_total{result=\"success\",failure_type=\"\"} 1",
        "apiserver_conversion_webhook_request_total{result=\"failure\",failure_type=\"conversion_webhook_call_failure\"} 1",
        "apiserver_conversion_webhook_duration_seconds_count{result=\"success\",failure_type=\"\"} 1",
        "apiserver_crd_conversion_webhook_duration_seconds_count{crd_name=\"widgets.ex.io\",from_version=\"v1\",to_version=\"v2\",succeeded=\"true\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}
