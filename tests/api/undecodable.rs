//! Stored values that cannot be decoded: named to whoever reads them, never left out, and deletable.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, UNREAD, names, rv};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

on_both_databases! {
    every_read_of_it_fails_and_names_it,
    others_are_not_harmed,
    writes_to_it_fail_and_deletes_work,
    deleting_it_takes_an_option_and_a_right,
    a_collection_that_cannot_be_listed_is_not_deleted,
    a_namespace_waits_for_it,
    a_namespace_that_is_one_gets_no_objects,
    a_dependent_of_it_lives,
    owners_that_are_deleted_wait_for_it,
    a_limit_range_goes_on_limiting,
    a_watch_that_meets_it_ends_with_an_error,
    messages_that_are_none,
}

/// A server with the ConfigMaps `a`, `bad` and `c` in `t`, all labelled, whose `bad` is not JSON in the database.
async fn with_bad_row(setup: &Setup) -> TestServer {
    let server = setup.start().await;
    for name in ["a", "bad", "c"] {
        let object = json!({"metadata": {"name": name, "labels": {"l": "1"}}, "data": {"k": "v"}});
        server.post(CONFIGMAPS, &object).await.expect(201);
    }
    server.stop().await;
    let garbage = if setup.is_sqlite() { "x'7b7b'" } else { "'\\x7b7b'" };
    setup.database.execute(&format!("UPDATE objects SET value = {garbage} WHERE name = 'bad'")).await;
    setup.start().await
}

#[track_caller]
fn names_it(answer: &Answer) {
    let failure = answer.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(500), &json!("InternalError")), "{answer:?}");
    assert!(failure["message"].as_str().is_some_and(|text| text.contains("\"bad\"")), "{answer:?}");
}

async fn every_read_of_it_fails_and_names_it(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let now = server.revision().await;
    for query in [
        "".to_owned(),
        "?resourceVersion=0".to_owned(),
        "?limit=2".to_owned(),
        "?pretty=true".to_owned(),
        "?labelSelector=l%3D1".to_owned(),
        "?labelSelector=!nothing".to_owned(),
        "?fieldSelector=metadata.name%3Dbad".to_owned(),
        format!("?resourceVersion={now}&resourceVersionMatch=Exact"),
    ] {
        names_it(&server.get(format!("{CONFIGMAPS}{query}")).await);
        names_it(&server.get(format!("{ALL_CONFIGMAPS}{query}")).await);
    }
    for accept in [TABLE, PARTIAL_LIST] {
        names_it(&server.get(CONFIGMAPS).accept(accept).await);
    }
    names_it(&server.get(format!("{CONFIGMAPS}/bad")).await);
}

async fn others_are_not_harmed(setup: Setup) {
    let server = with_bad_row(&setup).await;
    assert_eq!(server.get(format!("{CONFIGMAPS}/a")).await.ok()["data"], json!({"k": "v"}));
    assert_eq!(names(&server.get(format!("{CONFIGMAPS}?limit=1")).await.ok()), ["a"]);
    let one = format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Dc&labelSelector=l%3D1");
    assert_eq!(names(&server.get(one).await.ok()), ["c"]);
    server.get("/api/v1/namespaces/default/configmaps").await.ok();
    server.set("c", json!({"k": "w"})).await;
    server.create("d", json!({})).await;
}

async fn writes_to_it_fail_and_deletes_work(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let path = format!("{CONFIGMAPS}/bad");
    let object = json!({"metadata": {"name": "bad"}});
    names_it(&server.put(&path, &object).await);
    names_it(&server.patch(&path, &json!({"data": {}})).await);
    assert_eq!(server.post(CONFIGMAPS, &object).await.failure()["reason"], "AlreadyExists");
    // Its finalizers are not known, nor whether it may be readable again.
    names_it(&server.delete(&path).await);
    names_it(&server.delete(&path).json(&json!({"preconditions": {"uid": "other"}})).await);
    server.delete(format!("{path}?dryRun=All&{UNREAD}")).await.ok();
    names_it(&server.get(&path).await);
    let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "bad", "kind": "ConfigMap"}, "code": 200});
    assert_eq!(server.delete_unread(&path).await, gone);
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
    server.post(CONFIGMAPS, &object).await.expect(201);
}

/// The answers of upstream's corrupt object deleter (1.37, `AllowUnsafeMalformedObjectDeletion`).
async fn deleting_it_takes_an_option_and_a_right(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let (path, option) = (format!("{CONFIGMAPS}/bad"), "ignoreStoreReadErrorWithClusterBreakingPotential");
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/t";
    let rule = |verbs: Value| json!([{"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rule(json!(["delete", "deletecollection"]))});
    server.post(format!("{rbac}/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/rolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    let wants = |more: Value| {
        let mut options = json!({option: true});
        options.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        options
    };

    // The right to delete is not enough, also for what is not there.
    for name in ["bad", "a", "nothing"] {
        let refused = alice.delete(format!("{CONFIGMAPS}/{name}")).json(&wants(json!({}))).await;
        let why = format!(
            "configmaps \"{name}\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: "
        );
        refused.fails(403, "Forbidden", &why, json!({"name": name, "kind": "configmaps"}));
    }
    let verbs = json!(["delete", "deletecollection", "unsafe-delete-ignore-read-errors"]);
    server.patch(format!("{rbac}/roles/r"), &json!({"rules": rule(verbs)})).await.ok();

    // Together with nothing else, of one object, and not of what can be read.
    for (field, value) in [
        ("preconditions", json!({"uid": "u"})),
        ("preconditions", json!({"resourceVersion": "1"})),
        ("gracePeriodSeconds", json!(0)),
        ("propagationPolicy", json!("Orphan")),
        ("orphanDependents", json!(true)),
    ] {
        let refused = alice.delete(&path).json(&wants(json!({field: value}))).await;
        let why = format!("Invalid value: true: cannot be set together with .{field}");
        refused.invalid_options("DeleteOptions", &[("FieldValueInvalid", option, &why)]);
    }
    let why =
        "Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option";
    let refused = alice.delete(format!("{CONFIGMAPS}?{UNREAD}")).await;
    refused.invalid_options("DeleteOptions", &[("FieldValueInvalid", option, why)]);
    let why = "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/t/a, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage";
    let refused = alice.delete(format!("{CONFIGMAPS}/a?{UNREAD}")).await;
    refused.fails(409, "Conflict", why, json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(alice.delete(format!("{CONFIGMAPS}/nothing?{UNREAD}")).await.status, 404);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": {option: true}});
    let refused = server.post("/api/v1/namespaces/t/pods/p/eviction", &eviction).await.failure();
    let why = format!(
        "Eviction.policy \"p\" is invalid: deleteOptions.{option}: Invalid value: true: can not be set for pod eviction, try after removing the option"
    );
    assert_eq!((&refused["code"], &refused["message"]), (&json!(422), &json!(why)));

    names_it(&server.get(&path).await);
    alice.delete(&path).json(&wants(json!({}))).await.ok();
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
    server.stop().await;
}

async fn a_collection_that_cannot_be_listed_is_not_deleted(setup: Setup) {
    let server = with_bad_row(&setup).await;
    names_it(&server.delete(CONFIGMAPS).await);
    server.delete_unread(&format!("{CONFIGMAPS}/bad")).await;
    assert_eq!(names(&server.delete(CONFIGMAPS).await.ok()), ["a", "c"]);
}

/// Which finalizers it has is not known; whoever deletes it by its name decides that.
async fn a_namespace_waits_for_it(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("/api/v1/namespaces?watch=1&resourceVersion={start}")).await;
    server.delete("/api/v1/namespaces/t").await.ok();
    let told = loop {
        let event = watch.next().await.expect("an event");
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failure = |condition: &Value| {
            condition["type"] == "NamespaceDeletionContentFailure" && condition["status"] == "True"
        };
        if let Some(condition) = conditions.into_iter().find(failure) {
            break condition["message"].to_string();
        }
    };
    assert!(told.contains("\\\"bad\\\""), "{told}");
    names_it(&server.get(format!("{CONFIGMAPS}/bad")).await);
    server.delete_unread(&format!("{CONFIGMAPS}/bad")).await;
    while watch.next().await.expect("the namespace goes")["type"] != "DELETED" {}
    assert_eq!(server.get(ALL_CONFIGMAPS).await.ok()["items"], json!([]));
}

/// Makes what is stored under a name unreadable.
async fn damage(setup: &Setup, name: &str) {
    let garbage = if setup.is_sqlite() { "x'7b7b'" } else { "'\\x7b7b'" };
    setup.database.execute(&format!("UPDATE objects SET value = {garbage} WHERE name = '{name}'")).await;
}

/// It may be going away.
async fn a_namespace_that_is_one_gets_no_objects(setup: Setup) {
    let server = setup.start().await;
    server.namespace("bad").await;
    server.stop().await;
    damage(&setup, "bad").await;
    let server = setup.start().await;
    let path = "/api/v1/namespaces/bad/configmaps";
    names_it(&server.post(path, &json!({"metadata": {"name": "a"}})).await);
    assert_eq!(server.get(path).await.ok()["items"], json!([]));
    server.create("elsewhere", json!({})).await;
}

fn owned(name: &str, owner: (&str, &str), blocks: bool) -> Value {
    let (owner, uid) = owner;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": blocks
    });
    json!({"metadata": {"name": name, "ownerReferences": [reference]}})
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a uid")
}

/// Returns once the collector has dealt with all that was reported before: it takes what is named first last.
async fn collector_has_passed(server: &TestServer, name: &str) {
    let at = server.revision().await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={at}")).await;
    server.post(CONFIGMAPS, &owned(name, ("nobody", "none"), false)).await.expect(201);
    loop {
        let event = watch.next().await.expect("an event");
        if event["type"] == "DELETED" && event["object"]["metadata"]["name"] == name {
            return;
        }
    }
}

/// An owner that cannot be read is not gone. Its dependents go when it does.
async fn a_dependent_of_it_lives(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("bad", json!({})).await;
    server.post(CONFIGMAPS, &owned("z", ("bad", uid(&owner)), true)).await.expect(201);
    server.stop().await;
    damage(&setup, "bad").await;
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.patch(format!("{CONFIGMAPS}/z"), &json!({"data": {"seen-before": name}})).await.ok();
        collector_has_passed(&server, name).await;
    }
    server.get(format!("{CONFIGMAPS}/z")).await.ok();
    let at = server.revision().await;
    let mut watch = server
        .watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3Dz"))
        .await;
    server.delete_unread(&format!("{CONFIGMAPS}/bad")).await;
    watch.expect_named("DELETED", "z").await;
    server.stop().await;
}

/// It may be a dependent: an owner whose dependents are to be orphaned stays while that is not known.
async fn owners_that_are_deleted_wait_for_it(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    for name in ["bad", "good"] {
        server.post(CONFIGMAPS, &owned(name, ("owner", uid(&owner)), true)).await.expect(201);
    }
    server.stop().await;
    damage(&setup, "bad").await;
    let server = setup.start().await;
    let at = server.revision().await;
    let mut watch = server
        .watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3Downer"))
        .await;
    server.delete(format!("{CONFIGMAPS}/owner")).json(&json!({"propagationPolicy": "Orphan"})).await.ok();
    watch.expect("MODIFIED").await;
    collector_has_passed(&server, "a").await;
    let waiting = server.get(format!("{CONFIGMAPS}/owner")).await.ok();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
    server.delete_unread(&format!("{CONFIGMAPS}/bad")).await;
    watch.expect("DELETED").await;
    let good = server.get(format!("{CONFIGMAPS}/good")).await.ok();
    assert_eq!(good["metadata"].get("ownerReferences"), None, "{good}");
    server.stop().await;
}

async fn a_limit_range_goes_on_limiting(setup: Setup) {
    let server = setup.start().await;
    let ranges = "/api/v1/namespaces/t/limitranges";
    let limits = json!([{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]);
    server.post(ranges, &json!({"metadata": {"name": "bad"}, "spec": {"limits": limits}})).await.expect(201);
    server.stop().await;
    damage(&setup, "bad").await;
    let server = setup.start().await;
    let pods = "/api/v1/namespaces/t/pods";
    let limits = json!({"limits": {"cpu": "64"}});
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": limits}]}});
    names_it(&server.post(pods, &pod).await);
    names_it(&server.post(format!("{pods}?dryRun=All"), &pod).await);
    assert_eq!(server.get(pods).await.ok()["items"], json!([]));
    server.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    server.delete_unread(&format!("{ranges}/bad")).await;
    server.post(pods, &pod).await.expect(201);
    server.stop().await;
}

/// 500 in the stream, after which a client lists again. One that is not concerned goes on.
async fn a_watch_that_meets_it_ends_with_an_error(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let start = server.revision().await;
    let mut elsewhere = server
        .watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Dc"))
        .await;
    for query in ["watch=1", "watch=1&labelSelector=l%3D1"] {
        let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
        let events = watch.rest().await;
        let last = events.last().expect("an error");
        assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(500)), "{events:?}");
        assert!(events.len() <= 2, "{events:?}");
    }
    server.delete_unread(&format!("{CONFIGMAPS}/bad")).await;
    let mut deleted = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    assert_eq!(deleted.expect("ERROR").await["code"], 500);
    deleted.expect_end().await;
    let after = rv(&server.get(CONFIGMAPS).await.ok());
    let mut again = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={after}")).await;
    let written: Value = server.set("c", json!({"k": "w"})).await;
    for watch in [&mut elsewhere, &mut again] {
        assert_eq!(watch.expect_named("MODIFIED", "c").await, written);
    }
}

/// Values that begin as protobuf does: cut, of a kind that nobody knows, or with content that is not its kind's.
async fn messages_that_are_none(setup: Setup) {
    let server = with_bad_row(&setup).await;
    server.stop().await;
    for garbage in [
        "6b387300",
        "6b38730012ff",
        "6b3873000a090a02763112034e6f6e1200",
        "6b3873000a0f0a0276311209436f6e6669674d6170120208051a002200",
    ] {
        let value = if setup.is_sqlite() { format!("x'{garbage}'") } else { format!("'\\x{garbage}'") };
        setup.database.execute(&format!("UPDATE objects SET value = {value} WHERE name = 'bad'")).await;
        let server = setup.start().await;
        names_it(&server.get(format!("{CONFIGMAPS}/bad")).await);
        names_it(&server.get(CONFIGMAPS).await);
        let refused = server.get(CONFIGMAPS).accept("application/vnd.kubernetes.protobuf").await;
        assert_eq!(refused.status, 500, "{refused:?}");
        assert!(refused.body.windows(5).any(|window| window == b"\"bad\""), "{refused:?}");
        assert_eq!(server.get(format!("{CONFIGMAPS}/a")).await.ok()["data"], json!({"k": "v"}));
        server.stop().await;
    }
    let server = setup.start().await;
    assert_eq!(server.delete_unread(&format!("{CONFIGMAPS}/bad")).await["status"], "Success");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
}
