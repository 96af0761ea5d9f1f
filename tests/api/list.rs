//! LIST: which state is read, and what is in it.

use std::future::IntoFuture as _;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, names, rv};

on_every_store! {
    list_watch_1_an_empty_list_has_a_revision,
    list_watch_2_list_and_object_revisions,
    list_watch_3_every_write_has_its_own_revision,
    list_watch_18_future_revision,
    list_watch_19_future_revision_exactly,
    list_watch_20_not_older_than,
    list_watch_21_exact_by_limit,
    list_watch_22_exact,
    list_watch_23_exact_at_the_edge_of_history,
    list_watch_24_not_older_than_in_pages,
    list_watch_25_any_revision,
    list_watch_38_a_name_that_is_not_there,
    selectors_select,
    list_items_are_bare,
}

async fn list_watch_1_an_empty_list_has_a_revision(setup: Setup) {
    let server = setup.start_empty().await;
    let list = server.get(CONFIGMAPS).await.ok();
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    assert!(revision.parse::<u64>().is_ok_and(|n| n > 0) && !revision.starts_with(['0', '+']), "{revision}");
    let want = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": revision}, "items": []
    });
    assert_eq!(list, want);
}

async fn list_watch_2_list_and_object_revisions(setup: Setup) {
    let server = setup.start().await;
    let a = server.create("a", json!({})).await;
    server.create("b", json!({})).await;
    let list = server.get(CONFIGMAPS).await.ok();
    assert!(rv(&list) > rv(&a));
    assert_eq!(rv(&list["items"][0]), rv(&a), "not changed by the write of another");
}

async fn list_watch_3_every_write_has_its_own_revision(setup: Setup) {
    let server = setup.start().await;
    let mut revisions = Vec::new();
    for name in ["c", "a", "b"] {
        revisions.push(rv(&server.create(name, json!({})).await));
    }
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

async fn list_watch_18_future_revision(setup: Setup) {
    let server = setup.start().await;
    let requested = [server.revision().await + 1000, i64::MAX as u64, u64::MAX];
    let ask = |at: &u64| server.get(format!("{CONFIGMAPS}?resourceVersion={at}")).into_future();
    for (answer, requested) in join_all(requested.iter().map(ask)).await.iter().zip(requested) {
        future(answer, requested);
    }
}

async fn list_watch_19_future_revision_exactly(setup: Setup) {
    let server = setup.start().await;
    let requested = server.revision().await + 1000;
    let how = ["limit=1", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan"];
    let ask = |how| server.get(format!("{CONFIGMAPS}?resourceVersion={requested}&{how}")).into_future();
    for answer in join_all(how.map(ask)).await {
        future(&answer, requested);
    }
}

/// The answer to a revision that has not been reached.
#[track_caller]
fn future(answer: &crate::support::client::Answer, requested: u64) {
    let failure = answer.failure();
    let message = failure["message"].as_str().expect("a message").to_owned();
    let start = format!("Timeout: Too large resource version: {requested}, current: ");
    let current: u64 = message.strip_prefix(&start).expect("the text").parse().expect("the current revision");
    assert!(current < requested);
    let details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    answer.fails(504, "Timeout", &message, details);
}

async fn list_watch_20_not_older_than(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    let new = rv(&server.set("a", json!({"n": "2"})).await);
    server.create("b", json!({})).await;
    for compacted in [false, true] {
        if compacted {
            server.compact(new).await;
        }
        for query in ["", "&resourceVersionMatch=NotOlderThan"] {
            let list = server.get(format!("{CONFIGMAPS}?resourceVersion={old}{query}")).await.ok();
            assert_eq!(names(&list), ["a", "b"]);
            assert_eq!(list["items"][0]["data"]["n"], "2");
            assert!(rv(&list) > new);
        }
    }
}

async fn list_watch_21_exact_by_limit(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.set("a", json!({"n": "2"})).await;
    server.create("b", json!({})).await;
    let list = server.get(format!("{CONFIGMAPS}?resourceVersion={old}&limit=1000")).await.ok();
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["items"][0]["data"]["n"], "1");
    assert_eq!(rv(&list), old);
    // One name in one namespace is not a page: it stays "not older than".
    let one = format!("{CONFIGMAPS}?resourceVersion={old}&limit=1000&fieldSelector=metadata.name%3Da");
    let list = server.get(one).await.ok();
    assert_eq!(list["items"][0]["data"]["n"], "2");
}

async fn list_watch_22_exact(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let then = server.create("b", json!({})).await;
    server.remove("a").await;
    server.create("c", json!({})).await;
    for at in [rv(&then), rv(&then) + 1] {
        let list =
            server.get(format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact")).await.ok();
        assert_eq!(rv(&list), at);
        let want: &[&str] = if at == rv(&then) { &["a", "b"] } else { &["b"] };
        assert_eq!(names(&list), want);
    }
}

async fn list_watch_23_exact_at_the_edge_of_history(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let compacted = rv(&server.set("a", json!({"n": "2"})).await);
    server.set("a", json!({"n": "3"})).await;
    server.compact(compacted).await;
    let exact = |at: u64, how: &str| server.get(format!("{CONFIGMAPS}?resourceVersion={at}&{how}"));
    for how in ["resourceVersionMatch=Exact", "limit=500"] {
        let list = exact(compacted, how).await.ok();
        assert_eq!(list["items"][0]["data"]["n"], "2");
        let gone = exact(compacted - 1, how).await;
        gone.fails(410, "Expired", "The resourceVersion for the provided list is too old.", Value::Null);
    }
}

async fn list_watch_24_not_older_than_in_pages(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.set("a", json!({"n": "2"})).await;
    server.create("b", json!({})).await;
    let query = format!("{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=NotOlderThan&limit=1");
    let first = server.get(query).await.ok();
    assert_eq!(first["items"][0]["data"]["n"], "2");
    assert!(rv(&first) > old);
    server.create("c", json!({})).await;
    let continued = first["metadata"]["continue"].as_str().expect("a token");
    let second = server.get(format!("{CONFIGMAPS}?continue={continued}")).await.ok();
    assert_eq!((names(&second), rv(&second)), (vec!["b".to_owned()], rv(&first)));
}

async fn list_watch_25_any_revision(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.create(name, json!({})).await;
    }
    for query in ["resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"] {
        assert_eq!(names(&server.get(format!("{CONFIGMAPS}?{query}")).await.ok()), ["a", "b"]);
    }
    // Upstream's cache ignores the limit here, and so does this server.
    let list = server.get(format!("{CONFIGMAPS}?resourceVersion=0&limit=1")).await.ok();
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["metadata"].get("continue"), None);
}

async fn list_watch_38_a_name_that_is_not_there(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let list = server.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Dnone")).await.ok();
    assert_eq!(list["items"], json!([]));
    let list = server.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Da")).await.ok();
    assert_eq!(names(&list), ["a"]);
}

async fn selectors_select(setup: Setup) {
    let server = setup.start().await;
    server.namespace("u").await;
    for (namespace, name, labels) in [
        ("t", "a", json!({"k": "v", "n": "5"})),
        ("t", "b", json!({"k": "w"})),
        ("t", "c", json!({"k": ""})),
        ("u", "d", json!({"n": "7"})),
    ] {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        server.post(format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await.expect(201);
    }
    let cases = [
        ("labelSelector=k", "a b c"),
        ("labelSelector=!k", "d"),
        ("labelSelector=k%3Dv", "a"),
        ("labelSelector=k%3D%3Dv", "a"),
        ("labelSelector=k!%3Dv", "b c d"),
        ("labelSelector=k%20in%20(v,%20w)", "a b"),
        ("labelSelector=k%20in%20()", "c"),
        ("labelSelector=k%20notin%20(v,w)", "c d"),
        ("labelSelector=n%3E5", "d"),
        ("labelSelector=n%3C7,k", "a"),
        ("fieldSelector=metadata.name!%3Da", "b c d"),
        ("fieldSelector=metadata.namespace%3Du", "d"),
        ("fieldSelector=metadata.namespace%3Dt,metadata.name%3Db", "b"),
        ("fieldSelector=metadata.name%3Db&labelSelector=k%3Dv", ""),
    ];
    for (query, want) in cases {
        let list = server.get(format!("/api/v1/configmaps?{query}")).await.ok();
        assert_eq!(names(&list).join(" "), want, "{query}");
    }
}

async fn list_items_are_bare(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"k": "v"})).await;
    let list = server.get(CONFIGMAPS).await;
    assert_eq!(list.header("content-type"), Some("application/json"));
    let item = &list.ok()["items"][0];
    assert_eq!((item.get("kind"), item.get("apiVersion")), (None, None));
    assert_eq!(item["data"], json!({"k": "v"}));
    assert_eq!(names(&server.get("/api/v1/namespaces/nowhere/configmaps").await.ok()), [""; 0]);
}
