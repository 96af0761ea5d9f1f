//! Streaming lists and bookmarks.

use serde_json::{Value, json};

use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, names, rv};

/// What client-go's reflector asks for.
const STREAMING_LIST: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

on_every_store! {
    list_watch_50_52_a_streaming_list,
    list_watch_51_a_streaming_list_of_nothing,
    list_watch_53_without_bookmarks_there_is_no_end,
    list_watch_54_a_watch_from_nowhere,
    list_watch_57_what_a_bookmark_holds,
    list_watch_58_other_kinds_move_bookmarks,
    list_watch_58_a_bookmark_every_minute,
    list_watch_59_resuming_from_a_bookmark,
    list_watch_60_a_timeout,
    a_long_state_comes_whole,
}

fn is_end_of_state(bookmark: &Value) -> bool {
    bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

async fn list_watch_50_52_a_streaming_list(setup: Setup) {
    let server = setup.start().await;
    for namespace in ["a", "a-b"] {
        server.namespace(namespace).await;
    }
    for (namespace, name) in [("t", "z"), ("a", "b"), ("a-b", "x"), ("a", "a"), ("t", "y")] {
        let object = json!({"metadata": {"name": name}});
        server.post(format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await.expect(201);
    }
    server.set("z", json!({"n": "1"})).await;
    let arrived = server.revision().await;
    let mut watch = server.watch(format!("{ALL_CONFIGMAPS}?{STREAMING_LIST}")).await;
    let mut streamed = Vec::new();
    for _ in 0..5 {
        let mut object = watch.expect("ADDED").await;
        // Items of a list carry neither.
        let fields = object.as_object_mut().expect("an object");
        assert_eq!(fields.remove("kind"), Some(json!("ConfigMap")));
        assert_eq!(fields.remove("apiVersion"), Some(json!("v1")));
        streamed.push(object);
    }
    let bookmark = watch.expect("BOOKMARK").await;
    assert!(is_end_of_state(&bookmark) && rv(&bookmark) >= arrived, "{bookmark}");
    server.create("live", json!({})).await;
    assert!(rv(&watch.expect_named("ADDED", "live").await) > rv(&bookmark));
    // 52: the list at the bookmark's revision is what was streamed, with the same revisions and in the same order.
    let exact = format!("{ALL_CONFIGMAPS}?resourceVersion={}&resourceVersionMatch=Exact", rv(&bookmark));
    assert_eq!(server.get(exact).await.ok()["items"], Value::Array(streamed));
}

async fn list_watch_51_a_streaming_list_of_nothing(setup: Setup) {
    let server = setup.start().await;
    let secrets = format!("/api/v1/namespaces/t/secrets?{STREAMING_LIST}");
    assert!(is_end_of_state(&server.watch(secrets).await.expect("BOOKMARK").await));
    for (name, label) in [("a", "1"), ("b", "2")] {
        let object = json!({"metadata": {"name": name, "labels": {"l": label}}});
        server.post(CONFIGMAPS, &object).await.expect(201);
    }
    let mut watch = server.watch(format!("{CONFIGMAPS}?{STREAMING_LIST}&labelSelector=l%3D2")).await;
    watch.expect_named("ADDED", "b").await;
    assert!(is_end_of_state(&watch.expect("BOOKMARK").await));
    let mut watch = server.watch(format!("{CONFIGMAPS}?{STREAMING_LIST}&labelSelector=l%3D3")).await;
    assert!(is_end_of_state(&watch.expect("BOOKMARK").await));
}

async fn list_watch_53_without_bookmarks_there_is_no_end(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3";
    let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
    watch.expect_named("ADDED", "a").await;
    server.create("b", json!({})).await;
    watch.expect_named("ADDED", "b").await;
    watch.expect_end().await;
}

async fn list_watch_54_a_watch_from_nowhere(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    for revision in ["", "&resourceVersion=0"] {
        let mut watch =
            server.watch(format!("{CONFIGMAPS}?watch=1&allowWatchBookmarks=true{revision}")).await;
        watch.expect_named("ADDED", "a").await;
        assert!(is_end_of_state(&watch.expect("BOOKMARK").await));
    }
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion=0")).await;
    watch.expect_named("ADDED", "a").await;
    server.create("b", json!({})).await;
    watch.expect_named("ADDED", "b").await;
}

async fn list_watch_57_what_a_bookmark_holds(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/apps/v1/namespaces/t/deployments";
    let mut watch = server.watch(format!("{path}?{STREAMING_LIST}&timeoutSeconds=3")).await;
    let first = watch.expect("BOOKMARK").await;
    let metadata = json!({
        "resourceVersion": rv(&first).to_string(), "annotations": {"k8s.io/initial-events-end": "true"}
    });
    assert_eq!(first, json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata}));
    server.create("other", json!({})).await;
    let last = watch.expect("BOOKMARK").await;
    let metadata = json!({"resourceVersion": rv(&last).to_string()});
    assert_eq!(last, json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata}));
    assert!(rv(&last) > rv(&first));
    watch.expect_end().await;
}

/// The bookmark here is the one before the end of a short watch.
async fn list_watch_58_other_kinds_move_bookmarks(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=4";
    let mut watch = server.watch(format!("{CONFIGMAPS}?{query}&resourceVersion={start}")).await;
    let mut quiet = server.watch(format!("{CONFIGMAPS}?{query}&resourceVersion={}", start + 1)).await;
    let secret = json!({"metadata": {"name": "s"}});
    let written = server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    let bookmark = watch.expect("BOOKMARK").await;
    assert_eq!(rv(&bookmark), rv(&written));
    assert!(!is_end_of_state(&bookmark));
    watch.expect_end().await;
    // A bookmark that equals the start would tell nothing.
    assert_eq!(rv(&written), start + 1);
    quiet.expect_end().await;
}

/// Nothing else can have sent it: the watch ends after half an hour at the earliest.
async fn list_watch_58_a_bookmark_every_minute(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    let query = format!("watch=1&allowWatchBookmarks=true&resourceVersion={start}");
    let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
    let mut silent = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    let secret = json!({"metadata": {"name": "s"}});
    let written = server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    let bookmark = watch.expect("BOOKMARK").await;
    assert!(rv(&bookmark) >= rv(&written) && rv(&written) > start, "{bookmark}");
    assert_eq!(bookmark["metadata"].as_object().map(|metadata| metadata.len()), Some(1), "{bookmark}");
    // Who asked for none was sent none.
    server.create("a", json!({})).await;
    silent.expect_named("ADDED", "a").await;
    watch.expect_named("ADDED", "a").await;
}

async fn list_watch_59_resuming_from_a_bookmark(setup: Setup) {
    let server = setup.start().await;
    let mut at = server.revision().await;
    let (mut seen, mut bookmarks) = (Vec::new(), 0);
    let writing = async {
        for n in 0.. {
            server.create(&format!("n{n:04}"), json!({})).await;
        }
    };
    let watching = async {
        for _ in 0..4 {
            let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={at}");
            let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
            loop {
                let event = watch.next().await.expect("a bookmark before the end");
                let revision = rv(&event["object"]);
                assert!(revision >= at, "{event} after {at}");
                at = revision;
                if event["type"] == "BOOKMARK" {
                    bookmarks += 1;
                    break;
                }
                seen.push(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned());
            }
        }
    };
    tokio::select! {
        () = watching => {}
        () = writing => unreachable!("it writes for ever"),
    }
    let list = format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
    assert_eq!(seen, names(&server.get(list).await.ok()), "each once, none missing");
    assert_eq!(bookmarks, 4);
}

async fn list_watch_60_a_timeout(setup: Setup) {
    let server = setup.start().await;
    let query = format!(
        "watch=1&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={}",
        server.revision().await
    );
    let mut watch = server.watch(format!("{CONFIGMAPS}?{query}")).await;
    let started = std::time::Instant::now();
    let created = server.create("a", json!({})).await;
    watch.expect_named("ADDED", "a").await;
    let bookmark = watch.expect("BOOKMARK").await;
    let bookmarked = started.elapsed();
    assert_eq!(rv(&bookmark), rv(&created));
    watch.expect_end().await;
    // Never early; how late depends on the machine.
    assert!(bookmarked.as_secs_f64() > 2.5 && started.elapsed().as_secs_f64() > 4.5);
}

async fn a_long_state_comes_whole(setup: Setup) {
    let server = setup.start().await;
    let wanted: Vec<String> = (0..200).map(|n| format!("n{n:03}")).collect();
    for name in &wanted {
        server.create(name, json!({})).await;
    }
    let mut watch = server.watch(format!("{CONFIGMAPS}?{STREAMING_LIST}")).await;
    for name in &wanted {
        watch.expect_named("ADDED", name).await;
    }
    assert!(is_end_of_state(&watch.expect("BOOKMARK").await));
}
