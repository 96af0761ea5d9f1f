//! Stored values that cannot be decoded: named to whoever reads them, never left out, and deletable.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, names, rv};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

on_both_databases! {
    every_read_of_it_fails_and_names_it,
    others_are_not_harmed,
    writes_to_it_fail_and_deletes_work,
    a_collection_that_cannot_be_listed_is_not_deleted,
    a_namespace_is_emptied_of_it,
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
    server.delete(format!("{path}?dryRun=All")).await.ok();
    names_it(&server.get(&path).await);
    assert_eq!(server.delete(&path).await.ok()["status"], "Success");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
    server.post(CONFIGMAPS, &object).await.expect(201);
}

async fn a_collection_that_cannot_be_listed_is_not_deleted(setup: Setup) {
    let server = with_bad_row(&setup).await;
    names_it(&server.delete(CONFIGMAPS).await);
    server.delete(format!("{CONFIGMAPS}/bad")).await.ok();
    assert_eq!(names(&server.delete(CONFIGMAPS).await.ok()), ["a", "c"]);
}

async fn a_namespace_is_emptied_of_it(setup: Setup) {
    let server = with_bad_row(&setup).await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("/api/v1/namespaces?watch=1&resourceVersion={start}")).await;
    server.delete("/api/v1/namespaces/t").await.ok();
    while watch.next().await.expect("the namespace goes")["type"] != "DELETED" {}
    assert_eq!(server.get(ALL_CONFIGMAPS).await.ok()["items"], json!([]));
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
    server.delete(format!("{CONFIGMAPS}/bad")).await.ok();
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
    assert_eq!(server.delete(format!("{CONFIGMAPS}/bad")).await.ok()["status"], "Success");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
}
