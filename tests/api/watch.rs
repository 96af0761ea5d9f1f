//! WATCH: where it starts, what it tells and how it ends.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol, Watch, failure};
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, config_map, rv};

on_every_store! {
    a_watch_has_begun_when_its_headers_come,
    list_watch_9_10_11_invalid_options,
    list_watch_42_nothing_is_lost_after_a_list,
    list_watch_43_an_immediate_delete,
    list_watch_44_a_label_selector_makes_its_own_events,
    list_watch_45_a_field_selector,
    list_watch_46_namespaces,
    list_watch_47_before_history,
    list_watch_48_at_the_edge_of_history,
    list_watch_49_a_revision_to_come,
    list_watch_55_initial_events_at_a_revision,
    list_watch_56_without_initial_events,
    list_watch_68_who_reads_nothing_loses_nothing,
    list_watch_68_who_reads_nothing_while_history_goes,
    list_watch_60_a_watch_that_is_behind_ends_in_time,
    list_watch_69_a_shutdown_ends_watches,
    selectors_of_both_kinds_narrow_the_state,
}

pub async fn after(server: &Client, path: &str, revision: u64, query: &str) -> Watch {
    server.watch(format!("{path}?watch=1&resourceVersion={revision}{query}")).await
}

async fn list_watch_9_10_11_invalid_options(setup: Setup) {
    let server = setup.start().await;
    let requires = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
    let unsupported = (
        "FieldValueNotSupported",
        "resourceVersionMatch",
        "Unsupported value: \"Exact\": supported values: \"NotOlderThan\"",
    );
    let unless = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    );
    let with_continue = (
        "FieldValueForbidden",
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch is forbidden when continue is provided",
    );
    let cases: [(&str, &[_]); 5] = [
        ("sendInitialEvents=true", &[requires]),
        ("sendInitialEvents=false", &[requires]),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", &[requires, unsupported]),
        ("resourceVersion=5&resourceVersionMatch=NotOlderThan", &[unless]),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", &[with_continue]),
    ];
    for (query, causes) in cases {
        let answer = server.get(format!("{CONFIGMAPS}?watch=1&{query}")).await;
        answer.invalid_options("ListOptions", causes);
        assert_eq!(answer.text().trim_end().lines().count(), 1, "kube-rs reads it as a line");
    }
}

async fn list_watch_42_nothing_is_lost_after_a_list(setup: Setup) {
    let server = setup.start().await;
    let list = server.get(CONFIGMAPS).await.ok();
    let created = server.create("a", json!({"n": "1"})).await;
    let updated = server.set("a", json!({"n": "2"})).await;
    let mut watch = after(&server, CONFIGMAPS, rv(&list), "").await;
    let added = watch.expect("ADDED").await;
    assert_eq!(added, created);
    let modified = watch.expect("MODIFIED").await;
    assert_eq!(modified, updated);
    server.remove("a").await;
    let deleted = watch.expect("DELETED").await;
    assert_eq!(deleted["data"], json!({"n": "2"}));
    let again = server.create("a", json!({})).await;
    let recreated = watch.expect("ADDED").await;
    assert_eq!(recreated, again);
    assert_ne!(recreated["metadata"]["uid"], added["metadata"]["uid"]);
    let revisions = [&added, &modified, &deleted, &recreated].map(rv);
    assert!(rv(&list) < revisions[0] && revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

/// Otherwise some of these objects would be gone before the watch looks for what there is, and nothing would be told of them.
async fn a_watch_has_begun_when_its_headers_come(setup: Setup) {
    let server = setup.start().await;
    for turn in 0..40 {
        let name = format!("m{turn}");
        server.create(&name, json!({})).await;
        let mut watch =
            server.watch(format!("{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3D{name}")).await;
        server.delete(format!("{CONFIGMAPS}/{name}")).await.ok();
        watch.expect_named("ADDED", &name).await;
        watch.expect_named("DELETED", &name).await;
    }
}

async fn list_watch_43_an_immediate_delete(setup: Setup) {
    let server = setup.start().await;
    let mut last = server.create("a", json!({"k": "v"})).await;
    let mut watch = after(&server, CONFIGMAPS, rv(&last), "").await;
    server.remove("a").await;
    let deleted = watch.expect("DELETED").await;
    assert!(rv(&deleted) > rv(&last));
    assert!(rv(&server.get(CONFIGMAPS).await.ok()) >= rv(&deleted));
    last["metadata"]["resourceVersion"] = deleted["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, last, "its last content, and no deletionTimestamp");
}

/// A merge patch of one object's metadata.
async fn relabel(server: &Client, name: &str, labels: Value) -> Value {
    server.patch(format!("{CONFIGMAPS}/{name}"), &json!({"metadata": {"labels": labels}})).await.ok()
}

async fn list_watch_44_a_label_selector_makes_its_own_events(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("x", json!({})).await;
    let mut watch = after(&server, CONFIGMAPS, rv(&created), "&labelSelector=a%3D1").await;
    let labelled = relabel(&server, "x", json!({"a": "1"})).await;
    assert_eq!(watch.expect("ADDED").await, labelled);
    let changed = server.set("x", json!({"k": "v"})).await;
    assert_eq!(watch.expect("MODIFIED").await, changed);
    let relabelled = relabel(&server, "x", json!({"a": "2"})).await;
    let mut gone = watch.expect("DELETED").await;
    assert_eq!(rv(&gone), rv(&relabelled));
    gone["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"].clone();
    assert_eq!(gone, changed, "the old label, the new revision");
    server.remove("x").await;
    // The next event is another object's: the deletion is none of this watch.
    let end = json!({"metadata": {"name": "end", "labels": {"a": "1"}}});
    server.post(CONFIGMAPS, &end).await.expect(201);
    watch.expect_named("ADDED", "end").await;
}

async fn list_watch_45_a_field_selector(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    let mut watch = after(&server, CONFIGMAPS, start, "&fieldSelector=metadata.name%3Db").await;
    server.create("a", json!({})).await;
    server.create("b", json!({})).await;
    server.set("a", json!({"k": "v"})).await;
    server.set("b", json!({"k": "v"})).await;
    server.remove("a").await;
    server.remove("b").await;
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        watch.expect_named(kind, "b").await;
    }
    // A field that changes: pods by phase, through their status.
    let mut watch =
        after(&server, "/api/v1/namespaces/t/pods", start, "&fieldSelector=status.phase%3DRunning").await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post("/api/v1/namespaces/t/pods", &pod).await.expect(201);
    for phase in ["Running", "Succeeded"] {
        server.patch("/api/v1/namespaces/t/pods/p/status", &json!({"status": {"phase": phase}})).await.ok();
    }
    watch.expect_named("ADDED", "p").await;
    assert_eq!(watch.expect_named("DELETED", "p").await["status"]["phase"], "Running");
}

async fn list_watch_46_namespaces(setup: Setup) {
    let server = setup.start().await;
    server.namespace("u").await;
    let start = server.revision().await;
    let mut one = after(&server, CONFIGMAPS, start, "").await;
    let mut all = after(&server, ALL_CONFIGMAPS, start, "").await;
    let mut selected = after(&server, ALL_CONFIGMAPS, start, "&fieldSelector=metadata.namespace%3Dt").await;
    server.post("/api/v1/namespaces/u/configmaps", &config_map("other", json!({}))).await.expect(201);
    server.create("mine", json!({})).await;
    one.expect_named("ADDED", "mine").await;
    selected.expect_named("ADDED", "mine").await;
    all.expect_named("ADDED", "other").await;
    all.expect_named("ADDED", "mine").await;
}

async fn list_watch_47_before_history(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({})).await);
    server.set("a", json!({"n": "1"})).await;
    let compacted = server.revision().await;
    server.compact(compacted).await;
    for at in [1, old] {
        let mut watch = after(&server, CONFIGMAPS, at, "").await;
        let status = watch.expect("ERROR").await;
        let message = status["message"].as_str().expect("a message");
        assert_eq!(status, failure(410, "Expired", message, Value::Null));
        assert_eq!(message, format!("too old resource version: {at} ({compacted})"));
        watch.expect_end().await;
    }
}

async fn list_watch_48_at_the_edge_of_history(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let compacted = rv(&server.set("a", json!({"n": "2"})).await);
    server.set("a", json!({"n": "3"})).await;
    server.remove("a").await;
    server.compact(compacted).await;
    let mut watch = after(&server, CONFIGMAPS, compacted, "").await;
    assert_eq!(watch.expect("MODIFIED").await["data"]["n"], "3");
    let deleted = watch.expect("DELETED").await;
    assert_eq!((&deleted["data"]["n"], rv(&deleted)), (&json!("3"), server.revision().await));
}

async fn list_watch_49_a_revision_to_come(setup: Setup) {
    let server = setup.start().await;
    let now = server.revision().await;
    let mut watch = after(&server, CONFIGMAPS, now + 5, "").await;
    for n in 1..=6 {
        server.create(&format!("n{n}"), json!({})).await;
    }
    let first = watch.expect("ADDED").await;
    assert_eq!((rv(&first), &first["metadata"]["name"]), (now + 6, &json!("n6")));
}

async fn list_watch_55_initial_events_at_a_revision(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.set("a", json!({"n": "2"})).await;
    server.compact(server.revision().await).await;
    let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = after(&server, CONFIGMAPS, old, initial).await;
    assert_eq!(watch.expect("ADDED").await["data"]["n"], "2");
    let requested = server.revision().await + 1000;
    let mut watch = after(&server, CONFIGMAPS, requested, initial).await;
    let status = watch.expect("ERROR").await;
    assert_eq!((&status["code"], &status["reason"]), (&json!(504), &json!("Timeout")));
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    watch.expect_end().await;
}

async fn list_watch_56_without_initial_events(setup: Setup) {
    let server = setup.start().await;
    server.create("old", json!({})).await;
    for revision in ["", "&resourceVersion=0"] {
        let query = format!("?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan{revision}");
        // It starts at about now, and nothing tells when it has: a name per write finds its first event.
        let mut watch = server.watch(format!("{CONFIGMAPS}{query}")).await;
        let name = format!("new{}", revision.len());
        let seen = AtomicBool::new(false);
        let watching = async {
            let first = watch.expect("ADDED").await;
            seen.store(true, Relaxed);
            first
        };
        // Every write is waited for: one that was given up could still happen, and be seen by the next watch.
        let writing = async {
            for n in (0..).take_while(|_| !seen.load(Relaxed)) {
                server.create(&format!("{name}-{n}"), json!({})).await;
            }
        };
        let (first, ()) = tokio::join!(watching, writing);
        let first = first["metadata"]["name"].as_str().expect("a name").to_owned();
        assert!(first.starts_with(&name), "{first} was there before");
    }
}

/// More writes than the buffers of a watch that nobody reads can hold, and a watch that follows them: the one that is
/// behind, and the one that is not.
async fn left_behind(server: &TestServer, after_each: impl AsyncFn()) -> (Watch, Watch) {
    let start = server.revision().await;
    // A connection of its own: its window fills and nobody else's.
    let slow = Client::of_certificate(&server.kubeconfig, Protocol::Http1);
    let slow = after(&slow, CONFIGMAPS, start, "").await;
    let mut fast = after(server, CONFIGMAPS, start, "").await;
    let filler = "x".repeat(500_000);
    for n in 0..40 {
        let name = format!("n{n:02}");
        server.create(&name, json!({"n": filler})).await;
        fast.expect_named("ADDED", &name).await;
        after_each().await;
    }
    (slow, fast)
}

async fn list_watch_68_who_reads_nothing_loses_nothing(setup: Setup) {
    let server = setup.start().await;
    let (mut slow, _) = left_behind(&server, async || {}).await;
    for n in 0..40 {
        slow.expect_named("ADDED", &format!("n{n:02}")).await;
    }
}

/// What a watcher has not been told is compacted away: it is told all of it in order, or from some point on that it is
/// too late.
async fn list_watch_68_who_reads_nothing_while_history_goes(setup: Setup) {
    let server = setup.start().await;
    let compact = async || server.compact(server.revision().await).await;
    let (mut slow, mut fast) = left_behind(&server, compact).await;
    for n in 0..40 {
        let event = slow.next().await.expect("no end without a word");
        if event["type"] == "ERROR" {
            assert_eq!(
                (&event["object"]["code"], &event["object"]["reason"]),
                (&json!(410), &json!("Expired"))
            );
            slow.expect_end().await;
            break;
        }
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(format!("n{n:02}")))
        );
    }
    // The others go on.
    server.create("end", json!({})).await;
    fast.expect_named("ADDED", "end").await;
}

/// As much to tell as no socket holds, and nobody reads until the time is up.
async fn list_watch_60_a_watch_that_is_behind_ends_in_time(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    // More events than are taken at a time, and larger ones than fit into a socket.
    let filler = "x".repeat(100_000);
    let create =
        |n: usize| server.post(CONFIGMAPS, &config_map(&format!("n{n}"), json!({"n": filler}))).into_future();
    // A server takes so many writes at once and no more.
    for round in [0..150, 150..300] {
        for answer in join_all(round.map(create)).await {
            answer.expect(201);
        }
    }
    let slow = Client::of_certificate(&server.kubeconfig, Protocol::Http1);
    let mut slow = after(&slow, CONFIGMAPS, start, "&timeoutSeconds=1").await;
    let mut later = after(&server, CONFIGMAPS, server.revision().await, "&timeoutSeconds=2").await;
    later.expect_end().await;
    let told = slow.rest().await.len();
    assert!(told < 300, "all of it was told after the end");
}

async fn list_watch_69_a_shutdown_ends_watches(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({})).await;
    let http1 = Client::of_certificate(&server.kubeconfig, Protocol::Http1);
    let mut watches = [
        after(&server, CONFIGMAPS, rv(&created), "").await,
        after(&http1, CONFIGMAPS, rv(&created), "").await,
    ];
    let last = rv(&server.set("a", json!({"n": "1"})).await);
    for watch in &mut watches {
        assert_eq!(rv(&watch.expect("MODIFIED").await), last);
    }
    tokio::join!(server.stop(), async {
        for watch in &mut watches {
            watch.expect_end().await;
        }
    });
    let server = setup.start().await;
    let again = server.set("a", json!({"n": "2"})).await;
    let mut watch = after(&server, CONFIGMAPS, last, "").await;
    assert_eq!(watch.expect("MODIFIED").await, again);
}

async fn selectors_of_both_kinds_narrow_the_state(setup: Setup) {
    let server = setup.start().await;
    labelled(&server, "a", "1").await;
    labelled(&server, "b", "1").await;
    labelled(&server, "c", "2").await;
    let query = "watch=1&allowWatchBookmarks=1&labelSelector=l%3D1&fieldSelector=metadata.name!%3Da";
    let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
    watch.expect_named("ADDED", "b").await;
    watch.expect("BOOKMARK").await;
    labelled(&server, "d", "2").await;
    labelled(&server, "e", "1").await;
    watch.expect_named("ADDED", "e").await;
}

async fn labelled(server: &TestServer, name: &str, value: &str) {
    let object = json!({"metadata": {"name": name, "labels": {"l": value}}});
    server.post(CONFIGMAPS, &object).await.expect(201);
}
