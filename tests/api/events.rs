//! Events expire.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, names};

const EVENTS: &str = "/api/v1/namespaces/t/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/t/events";

on_every_store! {
    events_expire_as_deletes,
    an_event_that_is_seen_again_lives_on,
    events_of_before_a_restart_expire,
}

fn event(name: &str, last_seen: &str) -> Value {
    json!({
        "metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": "t", "name": "p"},
        "reason": "Because", "message": "text", "type": "Normal", "lastTimestamp": last_seen
    })
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn events_expire_as_deletes(mut setup: Setup) {
    setup.limits.event_ttl = Duration::from_secs(1);
    let server = setup.start().await;
    server.create("stays", json!({})).await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("{EVENTS}?watch=1&resourceVersion={start}")).await;
    let mut new = server.watch(format!("{NEW_EVENTS}?watch=1&resourceVersion={start}")).await;
    let created = server.post(EVENTS, &event("e", &now())).await.expect(201);
    assert_eq!(watch.expect("ADDED").await, created);
    let mut deleted = watch.expect("DELETED").await;
    assert!(deleted["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]);
    deleted["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted, created);
    for kind in ["ADDED", "DELETED"] {
        new.expect_named(kind, "e").await;
    }
    assert_eq!(server.get(format!("{EVENTS}/e")).await.status, 404);
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["stays"]);
}

async fn an_event_that_is_seen_again_lives_on(mut setup: Setup) {
    setup.limits.event_ttl = Duration::from_secs(3600);
    let server = setup.start().await;
    let start = server.revision().await;
    let mut watch = server.watch(format!("{EVENTS}?watch=1&resourceVersion={start}")).await;
    // Last seen long ago, but made just now.
    server.post(EVENTS, &event("old", "2001-01-01T00:00:00Z")).await.expect(201);
    server.post(EVENTS, &event("seen", &now())).await.expect(201);
    for name in ["old", "seen"] {
        watch.expect_named("ADDED", name).await;
    }
    server.patch(format!("{EVENTS}/seen"), &json!({"count": 2})).await.ok();
    watch.expect_named("MODIFIED", "seen").await;
    assert_eq!(names(&server.get(EVENTS).await.ok()), ["old", "seen"]);
}

async fn events_of_before_a_restart_expire(mut setup: Setup) {
    let server = setup.start().await;
    server.post(EVENTS, &event("e", &now())).await.expect(201);
    assert_eq!(names(&server.get(EVENTS).await.ok()), ["e"], "an hour is a long time");
    server.stop().await;
    setup.limits.event_ttl = Duration::from_secs(1);
    let server = setup.start().await;
    // Watched from its beginning, so that the deletion is told whenever it happens.
    let mut watch = server.watch(format!("{EVENTS}?watch=1&resourceVersion=1")).await;
    watch.expect_named("ADDED", "e").await;
    watch.expect_named("DELETED", "e").await;
    assert_eq!(server.get(EVENTS).await.ok()["items"], json!([]));
}
