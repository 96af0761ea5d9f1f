//! The garbage collector with owners and dependents at an extension server.

use serde_json::{Value, json};

use super::{beside, with_extension};
use crate::support::extension::{API_SERVICES, Behavior, ExtensionServer, NAME, THINGS, available};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};

on_every_store! {
    dependents_at_an_extension_server,
    a_foreground_deletion_waits_for_an_extension_server,
    orphans_at_an_extension_server,
    an_owner_at_an_extension_server_takes_its_dependents_along,
    an_owner_at_an_extension_server_leaves_orphans,
    a_cascade_at_an_extension_server,
    an_extension_server_that_misbehaves_holds_up_nobody,
}

/// A reference to an owner.
fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true})
}

fn of_map(name: &str, uid: &str) -> Value {
    reference("v1", "ConfigMap", name, uid)
}

fn of_thing(name: &str) -> Value {
    reference("ext.example.io/v1", "Thing", name, &format!("uid-{name}"))
}

/// Makes a ConfigMap with these owners. Returns its uid.
async fn map(server: &TestServer, name: &str, owners: Value) -> String {
    let mut map = config_map(name, json!({}));
    map["metadata"]["ownerReferences"] = owners;
    let made = server.post(CONFIGMAPS, &map).await.expect(201);
    made["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

async fn gone(server: &TestServer, name: &str) {
    until(async || server.get(format!("{CONFIGMAPS}/{name}")).await.status == 404).await;
}

async fn delete(server: &TestServer, name: &str, policy: &str) {
    server.delete(format!("{CONFIGMAPS}/{name}?propagationPolicy={policy}")).await.ok();
}

/// Has the extension server looked at again, since its APIService has changed.
async fn look_again(server: &TestServer, priority: u32) {
    let patch = json!({"spec": {"versionPriority": priority}});
    server.patch(format!("{API_SERVICES}/{NAME}"), &patch).await.ok();
}

async fn dependents_at_an_extension_server(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    let kept = of_map("kept", &map(&server, "kept", json!([])).await);
    let (lost, unknown) = (of_map("lost", "uid-lost"), reference("no.example.io/v1", "No", "x", "uid-x"));
    for (name, owners) in [
        ("a-unknown", json!([unknown])),
        ("b-unknown-and-lost", json!([unknown, lost])),
        ("d-kept-and-lost", json!([kept, lost])),
        ("e-of-a-thing", json!([of_thing("owner-kept")])),
        ("owner-kept", json!([kept])),
        ("y-another-uid", json!([of_map("kept", "uid-before")])),
        ("z-lost", json!([lost])),
        ("z-of-no-thing", json!([of_thing("owner-none")])),
    ] {
        extension.put(name, &json!({"ownerReferences": owners}));
    }
    extension.join(&server).await;
    let stay = ["a-unknown", "b-unknown-and-lost", "d-kept-and-lost", "e-of-a-thing", "owner-kept"];
    until(async || extension.things() == stay).await;
    until(async || extension.metadata("d-kept-and-lost")["ownerReferences"] == json!([kept])).await;
    let seen = extension.seen();
    let asked = seen.iter().find(|asked| asked.method == "DELETE" && asked.path.ends_with("/z-lost"));
    let asked = asked.expect("a DELETE");
    let options: Value = serde_json::from_str(&asked.body).expect("JSON");
    assert_eq!(options["preconditions"], json!({"uid": "uid-z-lost", "resourceVersion": "1"}));
    assert_eq!(options["propagationPolicy"], "Background");
    assert_eq!(asked.all("x-remote-user"), ["system:serviceaccount:kube-system:generic-garbage-collector"]);
    // An owner that goes takes them along, one after the other.
    delete(&server, "kept", "Background").await;
    until(async || extension.things() == stay[..2]).await;
    assert_eq!(extension.metadata("b-unknown-and-lost")["resourceVersion"], "1");
}

async fn a_foreground_deletion_waits_for_an_extension_server(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let owner = of_map("owner", &map(&server, "owner", json!([])).await);
    let held = json!({"ownerReferences": [owner], "finalizers": ["example.io/held"]});
    extension.put("held", &held);
    extension.put("free", &json!({"ownerReferences": [owner]}));
    delete(&server, "owner", "Foreground").await;
    until(async || extension.things() == ["held"]).await;
    until(async || extension.metadata("held")["deletionTimestamp"].is_string()).await;
    let waiting = server.get(format!("{CONFIGMAPS}/owner")).await.ok();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    server.patch(format!("{THINGS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&server, "owner").await;
    assert_eq!(extension.things(), [""; 0]);
}

async fn orphans_at_an_extension_server(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let owner = of_map("owner", &map(&server, "owner", json!([])).await);
    let other = of_map("other", &map(&server, "other", json!([])).await);
    extension.put("orphan", &json!({"ownerReferences": [owner]}));
    extension.put("half", &json!({"ownerReferences": [owner, other]}));
    delete(&server, "owner", "Orphan").await;
    gone(&server, "owner").await;
    assert_eq!(extension.things(), ["half", "orphan"]);
    assert_eq!(extension.metadata("orphan")["ownerReferences"], Value::Null);
    assert_eq!(extension.metadata("half")["ownerReferences"], json!([other]));
}

async fn an_owner_at_an_extension_server_takes_its_dependents_along(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let waits = json!({"deletionTimestamp": "2026-11-29T00:00:00Z", "finalizers": ["foregroundDeletion"]});
    extension.put("owner-a", &waits);
    extension.put("also", &json!({"ownerReferences": [of_thing("owner-a")]}));
    let server = beside(&mut setup, &extension).await;
    map(&server, "dependent", json!([of_thing("owner-a")])).await;
    extension.join(&server).await;
    gone(&server, "dependent").await;
    until(async || extension.things().is_empty()).await;
}

async fn an_owner_at_an_extension_server_leaves_orphans(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let waits = json!({"deletionTimestamp": "2026-11-29T00:00:00Z", "finalizers": ["orphan"]});
    extension.put("owner-a", &waits);
    extension.put("also", &json!({"ownerReferences": [of_thing("owner-a")]}));
    let server = beside(&mut setup, &extension).await;
    map(&server, "dependent", json!([of_thing("owner-a")])).await;
    extension.join(&server).await;
    until(async || extension.things() == ["also"]).await;
    assert_eq!(extension.metadata("also")["ownerReferences"], Value::Null);
    let left = server.get(format!("{CONFIGMAPS}/dependent")).await.ok();
    assert_eq!(left["metadata"]["ownerReferences"], Value::Null);
}

async fn a_cascade_at_an_extension_server(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let owner = of_map("owner", &map(&server, "owner", json!([])).await);
    extension.put("middle", &json!({"ownerReferences": [owner]}));
    map(&server, "dependent", json!([of_thing("middle")])).await;
    // The one in the middle waits for its own dependent, which is here again.
    delete(&server, "owner", "Foreground").await;
    gone(&server, "owner").await;
    assert_eq!(server.get(format!("{CONFIGMAPS}/dependent")).await.status, 404);
    let seen = extension.seen();
    let deleted = seen.iter().find(|asked| asked.method == "DELETE").expect("a DELETE");
    assert!(deleted.body.contains("\"Foreground\""), "{deleted:?}");
}

async fn an_extension_server_that_misbehaves_holds_up_nobody(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    extension.put("garbage", &json!({"ownerReferences": [of_map("lost", "uid-lost")]}));
    map(&server, "undecided", json!([of_thing("owner-gone")])).await;
    for behavior in [Behavior::Lies, Behavior::Floods, Behavior::Answers(500, vec![]), Behavior::Hangs] {
        extension.behave(behavior);
        look_again(&server, 11).await;
        for policy in ["Foreground", "Orphan"] {
            let uid = map(&server, "owner", json!([])).await;
            map(&server, "dependent", json!([of_map("owner", &uid)])).await;
            delete(&server, "owner", policy).await;
            gone(&server, "owner").await;
            if policy == "Orphan" {
                delete(&server, "dependent", "Background").await;
            }
            gone(&server, "dependent").await;
        }
    }
    extension.behave(Behavior::Serves);
    look_again(&server, 12).await;
    available(&server, "True").await;
    look_again(&server, 13).await;
    until(async || extension.things().is_empty()).await;
    gone(&server, "undecided").await;
}
