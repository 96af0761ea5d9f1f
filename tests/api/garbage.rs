//! Garbage collection by ownerReferences: background, foreground, orphan.

use serde_json::{Value, json};

use crate::support::client::Watch;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, names};

on_every_store! {
    dependents_go_after_their_owner,
    whole_trees_go,
    an_owner_that_lives_keeps_its_dependent,
    an_owner_of_another_uid_is_none,
    foreground_waits_for_dependents,
    foreground_does_not_wait_for_who_does_not_block,
    foreground_ends_in_a_circle,
    orphans_stay_and_forget_their_owner,
    owners_across_kinds_and_scopes,
    unknown_owners_are_left_alone,
    owners_of_another_namespace_are_told,
    what_was_left_at_the_end_goes_after_a_restart,
}

fn at(name: &str) -> String {
    format!("{CONFIGMAPS}/{name}")
}

fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks
    })
}

async fn owned(server: &TestServer, name: &str, owners: &[Value]) -> Value {
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    server.post(CONFIGMAPS, &object).await.expect(201)
}

/// From the newest revision on.
async fn watch(server: &TestServer) -> Watch {
    let start = server.revision().await;
    server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await
}

/// Reads events until all of these are deleted; returns the names in the order in which they went.
async fn gone(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut gone = Vec::new();
    while gone.len() < count {
        let event = watch.next().await.expect("they go");
        if event["type"] == "DELETED" {
            gone.push(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned());
        }
    }
    gone
}

/// Deletes something that the collector has to collect after whatever it had to do before, and waits for that: what it
/// has left alone until then, it leaves alone.
async fn collector_has_passed(server: &TestServer, watch: &mut Watch) {
    let owner = server.create("passing-owner", json!({})).await;
    owned(server, "passing", &[reference(&owner, false)]).await;
    server.remove("passing-owner").await;
    while !gone(watch, 1).await.contains(&"passing".to_owned()) {}
}

async fn delete(server: &TestServer, name: &str, policy: &str) -> Value {
    server.delete(at(name)).json(&json!({"propagationPolicy": policy})).await.ok()
}

async fn dependents_go_after_their_owner(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    for n in 0..5 {
        owned(&server, &format!("d{n}"), &[reference(&owner, true)]).await;
    }
    server.create("bystander", json!({})).await;
    let mut watch = watch(&server).await;
    assert_eq!(delete(&server, "owner", "Background").await["status"], "Success");
    assert_eq!(gone(&mut watch, 6).await[0], "owner");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["bystander"]);
}

async fn whole_trees_go(setup: Setup) {
    let server = setup.start().await;
    let mut parent = server.create("n0", json!({})).await;
    for n in 1..8 {
        parent = owned(&server, &format!("n{n}"), &[reference(&parent, false)]).await;
    }
    let mut watch = watch(&server).await;
    server.remove("n0").await;
    let order: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    assert_eq!(gone(&mut watch, 8).await, order);
}

async fn an_owner_that_lives_keeps_its_dependent(setup: Setup) {
    let server = setup.start().await;
    let first = server.create("first", json!({})).await;
    let second = server.create("second", json!({})).await;
    let both = [reference(&first, false), reference(&second, false)];
    owned(&server, "d", &both).await;
    let mut watch = watch(&server).await;
    server.remove("first").await;
    watch.expect_named("DELETED", "first").await;
    let kept = watch.expect_named("MODIFIED", "d").await;
    assert_eq!(kept["metadata"]["ownerReferences"], json!([both[1]]));
    server.remove("second").await;
    assert_eq!(gone(&mut watch, 2).await, ["second", "d"]);
}

async fn an_owner_of_another_uid_is_none(setup: Setup) {
    let server = setup.start().await;
    let old = server.create("owner", json!({})).await;
    server.remove("owner").await;
    server.create("owner", json!({})).await;
    let mut watch = watch(&server).await;
    owned(&server, "d", &[reference(&old, false)]).await;
    assert_eq!(gone(&mut watch, 1).await, ["d"]);
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["owner"]);
}

async fn foreground_waits_for_dependents(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let held = json!({"metadata": {
        "name": "held", "finalizers": ["example.com/f"], "ownerReferences": [reference(&owner, true)]
    }});
    server.post(CONFIGMAPS, &held).await.expect(201);
    owned(&server, "plain", &[reference(&owner, true)]).await;
    let mut watch = watch(&server).await;
    let waiting = delete(&server, "owner", "Foreground").await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(gone(&mut watch, 1).await, ["plain"]);
    collector_has_passed(&server, &mut watch).await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["held", "owner"], "both wait");
    server.patch(at("held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(gone(&mut watch, 2).await, ["held", "owner"]);
}

async fn foreground_does_not_wait_for_who_does_not_block(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let held = json!({"metadata": {
        "name": "held", "finalizers": ["example.com/f"], "ownerReferences": [reference(&owner, false)]
    }});
    server.post(CONFIGMAPS, &held).await.expect(201);
    let mut watch = watch(&server).await;
    delete(&server, "owner", "Foreground").await;
    assert_eq!(gone(&mut watch, 1).await, ["owner"]);
    let left = watch.expect_named("MODIFIED", "held").await;
    assert!(left["metadata"]["deletionTimestamp"].is_string(), "it is collected in its turn");
}

async fn foreground_ends_in_a_circle(setup: Setup) {
    let server = setup.start().await;
    for size in [2, 3, 5] {
        let mut owner = server.create("n0", json!({})).await;
        let first = owner.clone();
        for n in 1..size {
            owner = owned(&server, &format!("n{n}"), &[reference(&owner, true)]).await;
        }
        let closing = json!({"metadata": {"ownerReferences": [reference(&owner, true)]}});
        server.patch(at("n0"), &closing).await.ok();
        let mut watch = watch(&server).await;
        let waiting = delete(&server, "n0", "Foreground").await;
        assert_eq!(waiting["metadata"]["uid"], first["metadata"]["uid"]);
        gone(&mut watch, size).await;
    }
    // One that owns itself waits for ever, as upstream; nothing else does.
    let own = server.create("own", json!({})).await;
    let closing = json!({"metadata": {"ownerReferences": [reference(&own, true)]}});
    server.patch(at("own"), &closing).await.ok();
    let mut watch = watch(&server).await;
    delete(&server, "own", "Foreground").await;
    collector_has_passed(&server, &mut watch).await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["own"]);
}

async fn orphans_stay_and_forget_their_owner(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let other = server.create("other", json!({})).await;
    owned(&server, "one", &[reference(&owner, true)]).await;
    owned(&server, "two", &[reference(&owner, true), reference(&other, false)]).await;
    let mut watch = watch(&server).await;
    let waiting = delete(&server, "owner", "Orphan").await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
    assert_eq!(gone(&mut watch, 1).await, ["owner"]);
    let one = server.get(at("one")).await.ok();
    assert_eq!(one["metadata"].get("ownerReferences"), None);
    let two = server.get(at("two")).await.ok();
    assert_eq!(two["metadata"]["ownerReferences"], json!([reference(&other, false)]));
    collector_has_passed(&server, &mut watch).await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["one", "other", "two"]);
}

async fn owners_across_kinds_and_scopes(setup: Setup) {
    let server = setup.start().await;
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let cluster_owner = server.post(roles, &role).await.expect(201);
    let secret = json!({"metadata": {"name": "s"}});
    let owner = server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    owned(&server, "of-role", &[reference(&cluster_owner, false)]).await;
    owned(&server, "of-secret", &[reference(&owner, false)]).await;
    let mut watch = watch(&server).await;
    server.delete(format!("{roles}/r")).await.ok();
    assert_eq!(gone(&mut watch, 1).await, ["of-role"]);
    server.delete("/api/v1/namespaces/t/secrets/s").await.ok();
    assert_eq!(gone(&mut watch, 1).await, ["of-secret"]);
}

async fn owners_of_another_namespace_are_told(setup: Setup) {
    let server = setup.start().await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await.expect(201);
    let owner = server.create("owner", json!({})).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let lost = json!({"metadata": {"name": "lost", "ownerReferences": [reference(&owner, false)]}});
    let role =
        json!({"metadata": {"name": "role", "ownerReferences": [reference(&owner, false)]}, "rules": []});
    let start = server.revision().await;
    let events = format!(
        "/api/v1/events?watch=1&resourceVersion={start}&fieldSelector=reason%3DOwnerRefInvalidNamespace"
    );
    let mut watch = server.watch(events).await;
    server.post("/api/v1/namespaces/other/configmaps", &lost).await.expect(201);
    let uid = &owner["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let told = watch.expect("ADDED").await;
    assert_eq!((&told["type"], &told["metadata"]["namespace"]), (&json!("Warning"), &json!("other")));
    assert_eq!(told["involvedObject"]["name"], "lost");
    assert_eq!(told["source"]["component"], "garbage-collector-controller");
    let why = format!(
        "ownerRef [v1/ConfigMap, namespace: other, name: owner, uid: {uid}] does not exist in namespace \"other\""
    );
    assert_eq!(told["message"], why);
    server.post(roles, &role).await.expect(201);
    let told = watch.expect("ADDED").await;
    assert_eq!(
        (&told["involvedObject"]["kind"], &told["metadata"]["namespace"]),
        (&json!("ClusterRole"), &json!("default"))
    );
    let why = format!(
        "ownerRef [v1/ConfigMap, namespace: , name: owner, uid: {uid}] does not exist in namespace \"\""
    );
    assert_eq!(told["message"], why);
    assert_eq!(server.get(format!("{roles}/role")).await.status, 200, "it stays");
    let mut others = server.watch("/api/v1/namespaces/other/configmaps?watch=1").await;
    while server.get("/api/v1/namespaces/other/configmaps/lost").await.status != 404 {
        others.next().await;
    }
}

async fn unknown_owners_are_left_alone(setup: Setup) {
    let server = setup.start().await;
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u"});
    owned(&server, "d", &[unknown]).await;
    let mut watch = watch(&server).await;
    collector_has_passed(&server, &mut watch).await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["d"]);
}

/// The owner goes behind the server's back while it is down: nobody tells its dependent.
async fn what_was_left_at_the_end_goes_after_a_restart(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let held = json!({"metadata": {
        "name": "owner-2", "finalizers": ["example.com/f"], "ownerReferences": [reference(&owner, true)]
    }});
    server.post(CONFIGMAPS, &held).await.expect(201);
    delete(&server, "owner", "Foreground").await;
    server.stop().await;
    let server = setup.start().await;
    let mut watch = watch(&server).await;
    server.patch(at("owner-2"), &json!({"metadata": {"finalizers": null}})).await.ok();
    let mut went = gone(&mut watch, 2).await;
    went.sort();
    assert_eq!(went, ["owner", "owner-2"]);
}
