//! Namespaces: what exists from the start, how they end, and what ends with them.

use serde_json::{Value, json};

use crate::support::client::Watch;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, names, rv};

const NAMESPACES: &str = "/api/v1/namespaces";
const T: &str = "/api/v1/namespaces/t";

on_every_store! {
    system_namespaces_are_there_and_stay,
    a_new_namespace_is_active,
    deleting_an_empty_namespace,
    deleting_a_namespace_deletes_what_is_in_it,
    namespaces_that_end_one_after_the_other,
    a_namespace_waits_for_finalizers,
    pods_go_first,
    nothing_new_in_a_terminating_namespace,
    nothing_is_bound_or_evicted_in_a_terminating_namespace,
    finalize_takes_finalizers_off,
    a_namespace_that_was_terminating_at_the_end_goes_after_a_restart,
}

/// From the newest revision on.
async fn watch_namespaces(server: &TestServer) -> Watch {
    let start = server.revision().await;
    server.watch(format!("{NAMESPACES}?watch=1&resourceVersion={start}")).await
}

/// Follows a namespace to its end.
async fn gone(watch: &mut Watch, name: &str) {
    loop {
        let event = watch.next().await.expect("the namespace goes");
        if event["type"] == "DELETED" && event["object"]["metadata"]["name"] == name {
            return;
        }
    }
}

fn held(name: &str) -> Value {
    json!({"metadata": {"name": name, "finalizers": ["example.com/f"]}})
}

async fn system_namespaces_are_there_and_stay(setup: Setup) {
    let server = setup.start_empty().await;
    let list = server.get(NAMESPACES).await.ok();
    assert_eq!(names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    for name in ["default", "kube-public", "kube-system"] {
        let text = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        let answer = server.delete(format!("{NAMESPACES}/{name}")).await;
        answer.fails(403, "Forbidden", &text, json!({"name": name, "kind": "namespaces"}));
    }
    server.stop().await;
    let server = setup.start_empty().await;
    assert_eq!(server.get(NAMESPACES).await.ok()["items"], list["items"], "not made again");
}

async fn a_new_namespace_is_active(setup: Setup) {
    let server = setup.start_empty().await;
    let created = server.namespace("n").await;
    assert_eq!(created["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(created["status"], json!({"phase": "Active"}));
    assert_eq!(created["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    // A write does not take off what only the end of the namespace may.
    let path = format!("{NAMESPACES}/n");
    let patched = server.patch(&path, &json!({"spec": null, "metadata": {"labels": null}})).await.ok();
    assert_eq!(
        (&patched["spec"], &patched["metadata"]["labels"]),
        (&created["spec"], &created["metadata"]["labels"])
    );
}

async fn deleting_an_empty_namespace(setup: Setup) {
    let server = setup.start().await;
    let mut watch = watch_namespaces(&server).await;
    let terminating = server.delete(T).await.ok();
    assert_eq!(terminating["status"]["phase"], "Terminating");
    assert!(terminating["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(watch.expect("MODIFIED").await, terminating);
    gone(&mut watch, "t").await;
    let details = json!({"name": "t", "kind": "namespaces"});
    server.get(T).await.fails(404, "NotFound", "namespaces \"t\" not found", details);
    let again = server.namespace("t").await;
    assert_ne!(again["metadata"]["uid"], terminating["metadata"]["uid"]);
}

async fn deleting_a_namespace_deletes_what_is_in_it(setup: Setup) {
    let server = setup.start().await;
    server.namespace("t-2").await;
    server
        .post(format!("{NAMESPACES}/t-2/configmaps"), &json!({"metadata": {"name": "other"}}))
        .await
        .expect(201);
    for n in 0..70 {
        server.create(&format!("n{n}"), json!({})).await;
    }
    let secret = json!({"metadata": {"name": "s"}});
    server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    server.post("/apis/rbac.authorization.k8s.io/v1/namespaces/t/roles", &role).await.expect(201);
    // Nobody but this controller ends a pod that has no node.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post("/api/v1/namespaces/t/pods", &pod).await.expect(201);
    let mut watch = watch_namespaces(&server).await;
    server.delete(T).await.ok();
    gone(&mut watch, "t").await;
    assert_eq!(names(&server.get(ALL_CONFIGMAPS).await.ok()), ["other"]);
    for path in ["/api/v1/secrets", "/apis/rbac.authorization.k8s.io/v1/roles", "/api/v1/pods"] {
        let list = server.get(path).await.ok();
        let items = list["items"].as_array().expect("items").iter();
        // Those of the system stay.
        let left: Vec<_> = items.filter(|item| item["metadata"]["namespace"] == "t").collect();
        assert!(left.is_empty(), "{path}: {left:?}");
    }
}

/// Each is marked while those before it are looked through.
async fn namespaces_that_end_one_after_the_other(setup: Setup) {
    const COUNT: usize = 20;
    let server = setup.start().await;
    let paths: Vec<String> = (0..COUNT).map(|n| format!("{NAMESPACES}/n{n}")).collect();
    for n in 0..COUNT {
        server.namespace(&format!("n{n}")).await;
    }
    let mut watch = watch_namespaces(&server).await;
    for path in paths {
        server.delete(path).await.ok();
    }
    let mut left = COUNT;
    while left > 0 {
        let event = watch.next().await.expect("all namespaces go");
        left -= usize::from(event["type"] == "DELETED");
    }
}

async fn a_namespace_waits_for_finalizers(setup: Setup) {
    let server = setup.start().await;
    server.create("plain", json!({})).await;
    let created = server.post(CONFIGMAPS, &held("held")).await.expect(201);
    let mut contents = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&created))).await;
    let mut watch = watch_namespaces(&server).await;
    server.delete(T).await.ok();
    let mut seen = [contents.next().await.expect("a change"), contents.next().await.expect("a change")];
    seen.sort_by_key(|event| event["type"].to_string());
    let told = seen.each_ref().map(|event| (&event["type"], &event["object"]["metadata"]["name"]));
    assert_eq!(told, [(&json!("DELETED"), &json!("plain")), (&json!("MODIFIED"), &json!("held"))]);
    assert_eq!(server.get(T).await.ok()["status"]["phase"], "Terminating");
    server.patch(format!("{CONFIGMAPS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&mut watch, "t").await;
}

/// Follows a namespace until its conditions say this of what remains; returns them by type, each with its reason.
async fn remaining(watch: &mut Watch, message: &str) -> Vec<(String, String)> {
    loop {
        let namespace = watch.expect_named("MODIFIED", "t").await;
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let text = |condition: &Value, of: &str| condition[of].as_str().expect("a text").to_owned();
        if conditions.iter().any(|condition| condition["message"] == message) {
            let told = conditions.iter().filter(|condition| condition["status"] == "True");
            return told.map(|condition| (text(condition, "type"), text(condition, "reason"))).collect();
        }
    }
}

/// As KEP-5080 has it; and a namespace that does not go says why.
async fn pods_go_first(setup: Setup) {
    let server = setup.start().await;
    server.post(CONFIGMAPS, &held("used")).await.expect(201);
    let mut pod = held("p");
    pod["spec"] = json!({"containers": [{"name": "c", "image": "i"}]});
    let pods = "/api/v1/namespaces/t/pods";
    server.post(pods, &pod).await.expect(201);
    let mut watch = watch_namespaces(&server).await;
    server.delete(T).await.ok();
    let both = [
        ("NamespaceContentRemaining".to_owned(), "SomeResourcesRemain".to_owned()),
        ("NamespaceFinalizersRemaining".to_owned(), "SomeFinalizersRemain".to_owned()),
    ];
    let told = remaining(&mut watch, "Some resources are remaining: pods. has 1 resource instances").await;
    assert_eq!(told, both);
    let used = server.get(format!("{CONFIGMAPS}/used")).await.ok();
    assert_eq!(used["metadata"].get("deletionTimestamp"), None, "a Pod may need it to end");
    server.patch(format!("{pods}/p"), &json!({"metadata": {"finalizers": null}})).await.ok();
    let message = "Some resources are remaining: configmaps. has 1 resource instances";
    assert_eq!(remaining(&mut watch, message).await, both);
    let used = server.get(format!("{CONFIGMAPS}/used")).await.ok();
    assert!(used["metadata"]["deletionTimestamp"].is_string());
    let conditions = server.get(T).await.ok()["status"]["conditions"].clone();
    let content =
        conditions.as_array().unwrap().iter().find(|c| c["type"] == "NamespaceDeletionContentFailure");
    assert_eq!(
        content.map(|condition| (&condition["status"], &condition["reason"])),
        Some((&json!("False"), &json!("ContentDeleted")))
    );
    server.patch(format!("{CONFIGMAPS}/used"), &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&mut watch, "t").await;
}

async fn nothing_new_in_a_terminating_namespace(setup: Setup) {
    let server = setup.start().await;
    server.post(CONFIGMAPS, &held("held")).await.expect(201);
    server.delete(T).await.ok();
    for query in ["", "?dryRun=All"] {
        let answer = server.post(format!("{CONFIGMAPS}{query}"), &json!({"metadata": {"name": "new"}})).await;
        let text = "configmaps \"new\" is forbidden: unable to create new content in namespace t because it is being \
                    terminated";
        let cause = json!({
            "reason": "NamespaceTerminating", "message": "namespace t is being terminated", "field": "metadata.namespace"
        });
        answer.fails(403, "Forbidden", text, json!({"name": "new", "kind": "configmaps", "causes": [cause]}));
    }
    let namespace = json!({"metadata": {"name": "t"}});
    let text = "object is being deleted: namespaces \"t\" already exists";
    let answer = server.post(NAMESPACES, &namespace).await;
    answer.fails(409, "AlreadyExists", text, json!({"name": "t", "kind": "namespaces"}));
    // What is there can be changed, and that is how it ends.
    server.patch(format!("{CONFIGMAPS}/held"), &json!({"data": {"k": "v"}})).await.ok();
}

async fn nothing_is_bound_or_evicted_in_a_terminating_namespace(setup: Setup) {
    let server = setup.start().await;
    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "p", "finalizers": ["example.com/f"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    server.delete(T).await.ok();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    for (part, body) in [("binding", binding), ("eviction", eviction)] {
        let refused = server.post(format!("{pods}/p/{part}"), &body).await.failure();
        let text = "pods \"p\" is forbidden: unable to create new content in namespace t because it is being terminated";
        assert_eq!((&refused["code"], &refused["message"]), (&json!(403), &json!(text)), "{part}");
    }
}

async fn finalize_takes_finalizers_off(setup: Setup) {
    let server = setup.start().await;
    let mut own = json!({"metadata": {"name": "own"}, "spec": {"finalizers": ["example.com/f"]}});
    let created = server.post(NAMESPACES, &own).await.expect(201);
    assert_eq!(created["spec"]["finalizers"], json!(["example.com/f", "kubernetes"]));
    let mut watch = watch_namespaces(&server).await;
    let path = format!("{NAMESPACES}/own");
    server.delete(&path).await.ok();
    // The controller takes off its own and leaves the other to its owner.
    loop {
        let object = watch.expect_named("MODIFIED", "own").await;
        if object["spec"]["finalizers"] == json!(["example.com/f"]) {
            break;
        }
    }
    own["spec"]["finalizers"] = json!([]);
    server.put(format!("{path}/finalize"), &own).await.ok();
    gone(&mut watch, "own").await;
    assert_eq!(server.get(&path).await.status, 404);
}

async fn a_namespace_that_was_terminating_at_the_end_goes_after_a_restart(setup: Setup) {
    let server = setup.start().await;
    server.post(CONFIGMAPS, &held("held")).await.expect(201);
    server.delete(T).await.ok();
    server.stop().await;
    let server = setup.start_empty().await;
    let mut watch = watch_namespaces(&server).await;
    server.patch(format!("{CONFIGMAPS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    gone(&mut watch, "t").await;
}
