//! Parts of pods: binding, ephemeral containers, resizing.

use serde_json::{Value, json};

use crate::evictions::PODS;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    a_pod_is_bound_once,
    bindings_that_make_no_sense,
    ephemeral_containers_are_added,
    ephemeral_containers_stay_as_they_are,
    a_pod_is_resized,
    what_a_resize_may_not_do,
    resources_of_a_whole_pod,
    old_clients_keep_what_became_of_claims,
}

async fn pod(server: &TestServer, name: &str) -> Value {
    let resources =
        json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}});
    let pod = json!({
        "metadata": {"name": name, "annotations": {"a": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    });
    server.post(PODS, &pod).await.expect(201)
}

/// Limits of a whole Pod are those that all its containers have, raised to its requests; empty resources are none.
async fn resources_of_a_whole_pod(setup: Setup) {
    let server = setup.start().await;
    let create = async |name: &str, own: Value, container: Value| {
        let containers = json!([{"name": "c", "image": "i", "resources": container}]);
        let pod = json!({"metadata": {"name": name}, "spec": {"resources": own, "containers": containers}});
        server.post(PODS, &pod).await.expect(201)
    };
    let raised = create("a", json!({"requests": {"cpu": "3"}}), json!({"limits": {"cpu": "2"}})).await;
    assert_eq!(raised["spec"]["resources"], json!({"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}));
    let container = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}});
    let summed = create("b", json!({"requests": {"cpu": "2"}}), container).await;
    assert_eq!(summed["spec"]["resources"], json!({"limits": {"cpu": "3"}, "requests": {"cpu": "2"}}));
    let mut unaware = summed.clone();
    unaware["spec"].as_object_mut().expect("a spec").shift_remove("resources");
    let put = server.put(format!("{PODS}/b"), &unaware).await.ok();
    assert_eq!(put["spec"]["resources"], summed["spec"]["resources"]);
    let amounts = json!({"cpu": "100m", "memory": "50Mi"});
    let container = json!({"requests": amounts, "limits": amounts});
    let empty = create("c", json!({"requests": {}, "limits": {}}), container).await;
    assert_eq!(empty["status"]["qosClass"], "Guaranteed");
}

async fn old_clients_keep_what_became_of_claims(setup: Setup) {
    let server = setup.start().await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]});
    let mut pod = server.post(PODS, &json!({"metadata": {"name": "p"}, "spec": spec})).await.expect(201);
    let path = format!("{PODS}/p/status");
    let claims = json!([{"name": "gpu", "resourceClaimName": "one"}]);
    pod["status"]["resourceClaimStatuses"] = claims.clone();
    let mut pod = server.put(&*path, &pod).await.ok();
    assert_eq!(pod["status"]["resourceClaimStatuses"], claims);
    pod["status"].as_object_mut().expect("a status").shift_remove("resourceClaimStatuses");
    let kept = server.put(&*path, &pod).await.ok();
    assert_eq!(kept["status"]["resourceClaimStatuses"], claims);
    let gone = server.patch(&*path, &json!({"status": {"resourceClaimStatuses": []}})).await.ok();
    assert_eq!(gone["status"].get("resourceClaimStatuses"), None);
}

async fn a_pod_is_bound_once(setup: Setup) {
    let server = setup.start().await;
    let created = pod(&server, "p").await;
    let uid = created["metadata"]["uid"].clone();
    let binding = json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "p", "uid": uid, "annotations": {"b": "2"}, "labels": {"zone": "z"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}});
    let path = format!("{PODS}/p/binding");
    server.post(format!("{path}?dryRun=All"), &binding).await.expect(201);
    assert_eq!(server.get(format!("{PODS}/p")).await.ok(), created);
    let done =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    assert_eq!(server.post(&*path, &binding).await.expect(201), done);
    let bound = server.get(format!("{PODS}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["metadata"]["annotations"], json!({"a": "1", "b": "2"}));
    assert_eq!(bound["metadata"]["labels"], json!({"zone": "z"}));
    let scheduled = &bound["status"]["conditions"][0];
    assert_eq!((&scheduled["type"], &scheduled["status"]), (&json!("PodScheduled"), &json!("True")));
    assert!(scheduled["lastTransitionTime"].is_string(), "{bound}");
    let text =
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"";
    server.post(&*path, &binding).await.fails(
        409,
        "Conflict",
        text,
        json!({"name": "p", "kind": "pods/binding"}),
    );
    // The collection of bindings is the older way.
    pod(&server, "q").await;
    let binding = json!({"metadata": {"name": "q"}, "target": {"name": "n2"}});
    server.post("/api/v1/namespaces/t/bindings", &binding).await.expect(201);
    assert_eq!(server.get(format!("{PODS}/q")).await.ok()["spec"]["nodeName"], "n2");
}

async fn bindings_that_make_no_sense(setup: Setup) {
    let server = setup.start().await;
    pod(&server, "p").await;
    let path = format!("{PODS}/p/binding");
    let bind = async |metadata: Value, target: Value| {
        server.post(&*path, &json!({"metadata": metadata, "target": target})).await
    };
    let me = || json!({"name": "p"});
    bind(json!({"name": "q"}), json!({"name": "n"}))
        .await
        .bad_request("name in URL does not match name in Binding object");
    bind(me(), json!({})).await.fails(500, "", "target.name: Required value", Value::Null);
    let kind = "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"";
    bind(me(), json!({"kind": "Pod", "name": "n"})).await.fails(500, "", kind, Value::Null);
    let stale = bind(json!({"name": "p", "uid": "other"}), json!({"name": "n"})).await.failure();
    assert_eq!(stale["reason"], "Conflict");
    let text = stale["message"].as_str().expect("a message");
    assert!(text.contains("Precondition failed: UID in precondition: other, "), "{text}");
    let missing = json!({"metadata": {"name": "x"}, "target": {"name": "n"}});
    let answer = server.post(format!("{PODS}/x/binding"), &missing).await;
    answer.fails(404, "NotFound", "pods \"x\" not found", json!({"name": "x", "kind": "pods"}));
    let gated = json!({"metadata": {"name": "g"},
        "spec": {"schedulingGates": [{"name": "e.io/g"}], "containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, &gated).await.expect(201);
    let binding = json!({"metadata": {"name": "g"}, "target": {"name": "n"}});
    let gated = server.post(format!("{PODS}/g/binding"), &binding).await.failure();
    assert!(
        gated["message"].as_str().expect("a message").ends_with("pod g has non-empty .spec.schedulingGates")
    );
    assert_eq!(server.get(format!("{PODS}/p")).await.ok()["spec"]["nodeName"], Value::Null);
    assert_eq!(server.get(&*path).await.failure()["code"], 405);
}

fn debugger(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}})
}

async fn ephemeral_containers_are_added(setup: Setup) {
    let server = setup.start().await;
    let created = pod(&server, "p").await;
    let path = format!("{PODS}/p/ephemeralcontainers");
    // Only they change, whatever else is sent.
    let mut sent = created.clone();
    sent["spec"]["ephemeralContainers"] = json!([debugger("d", "busybox")]);
    sent["spec"]["containers"][0]["image"] = "other".into();
    sent["metadata"]["labels"] = json!({"l": "1"});
    sent["status"] = json!({"phase": "Running"});
    let added = server.put(&*path, &sent).await.ok();
    assert_eq!(added["spec"]["ephemeralContainers"][0]["image"], "busybox");
    assert_eq!(added["spec"]["containers"], created["spec"]["containers"]);
    assert_eq!(added["metadata"]["labels"], Value::Null);
    assert_eq!(added["status"], created["status"]);
    assert_eq!(added["metadata"]["generation"], 2);
    let more = json!({"spec": {"ephemeralContainers": [debugger("e", "busybox")]}});
    let request = server.request(http::Method::PATCH, format!("{path}?fieldManager=m"));
    let text = serde_json::to_vec(&more).expect("JSON");
    let both = request.body("application/strategic-merge-patch+json", text).await.ok();
    assert_eq!(both["spec"]["ephemeralContainers"].as_array().map(Vec::len), Some(2), "{both}");
    let entries = both["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|entry| entry["manager"] == "m").expect("m");
    assert_eq!(entry["subresource"], "ephemeralcontainers");
    let paths: Vec<&String> = entry["fieldsV1"]["f:spec"].as_object().expect("a spec").keys().collect();
    assert_eq!(paths, ["f:ephemeralContainers"], "{entry}");
    assert_eq!(server.get(&*path).await.ok(), both);
    // The main resource leaves them alone, or is refused.
    let mut without = both.clone();
    without["spec"].as_object_mut().expect("a spec").remove("ephemeralContainers");
    without["metadata"]["labels"] = json!({"l": "1"});
    server.put(format!("{PODS}/p"), &without).await;
}

async fn ephemeral_containers_stay_as_they_are(setup: Setup) {
    let server = setup.start().await;
    let mut sent = pod(&server, "p").await;
    let path = format!("{PODS}/p/ephemeralcontainers");
    sent["spec"]["ephemeralContainers"] = json!([debugger("d", "busybox")]);
    let stored = server.put(&*path, &sent).await.ok();
    let refused = async |containers: Value| {
        let mut changed = stored.clone();
        changed["spec"]["ephemeralContainers"] = containers;
        let failure = server.put(&*path, &changed).await.failure();
        assert_eq!((&failure["code"], &failure["reason"]), (&json!(422), &json!("Invalid")), "{failure}");
        failure["details"]["causes"][0].clone()
    };
    let gone = refused(json!([])).await;
    assert_eq!(gone["field"], "spec.ephemeralContainers");
    assert_eq!(gone["message"], "Forbidden: existing ephemeral containers \"d\" may not be removed\n");
    let changed = refused(json!([debugger("d", "other")])).await;
    let text = changed["message"].as_str().expect("a message");
    assert!(
        text.starts_with("Forbidden: existing ephemeral containers \"d\" may not be changed\n"),
        "{text}"
    );
    assert_eq!(server.get(format!("{PODS}/p")).await.ok(), stored);
}

async fn a_pod_is_resized(setup: Setup) {
    let server = setup.start().await;
    let created = pod(&server, "p").await;
    let mut sent = created.clone();
    sent["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m".into();
    sent["spec"]["containers"][0]["image"] = "other".into();
    sent["metadata"]["labels"] = json!({"l": "1"});
    let path = format!("{PODS}/p/resize");
    let resized = server.put(format!("{path}?fieldManager=m"), &sent).await.ok();
    let container = &resized["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({"cpu": "1500m", "memory": "1Gi"}));
    assert_eq!(container["image"], "i");
    assert_eq!(resized["metadata"]["labels"], Value::Null);
    assert_eq!(resized["metadata"]["generation"], 2);
    let entries = resized["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|entry| entry["manager"] == "m").expect("m");
    assert_eq!(entry["subresource"], "resize");
    let owned = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:resources": {"f:requests": {"f:cpu": {}}}}}}});
    assert_eq!(entry["fieldsV1"], owned);
}

async fn what_a_resize_may_not_do(setup: Setup) {
    let server = setup.start().await;
    let created = pod(&server, "p").await;
    let path = format!("{PODS}/p/resize");
    let refused = async |change: fn(&mut Value)| {
        let mut changed = created.clone();
        change(&mut changed["spec"]);
        let failure = server.put(&*path, &changed).await.failure();
        assert_eq!((&failure["code"], &failure["reason"]), (&json!(422), &json!("Invalid")), "{failure}");
        let causes = failure["details"]["causes"].as_array().expect("causes").clone();
        causes.into_iter().map(|cause| (cause["field"].clone(), cause["message"].clone())).collect::<Vec<_>>()
    };
    let has = |causes: Vec<(Value, Value)>, field: &str, message: &str| {
        assert!(causes.contains(&(json!(field), json!(message))), "{causes:?}");
    };
    let causes = refused(|spec| {
        let more = spec["containers"][0].clone();
        spec["containers"].as_array_mut().expect("containers").push(more);
    });
    has(causes.await, "spec.containers", "Forbidden: containers may not be added or removed on resize");
    let causes = refused(|spec| spec["containers"][0]["name"] = "d".into());
    has(
        causes.await,
        "spec.containers[0].name",
        "Forbidden: containers may not be renamed or reordered on resize",
    );
    let causes = refused(|spec| spec["containers"][0]["resources"]["limits"] = json!({"memory": "2Gi"}));
    has(causes.await, "spec.containers[0].resources.limits", "Forbidden: resource limits cannot be removed");
    let causes =
        refused(|spec| spec["containers"][0]["resources"]["limits"]["ephemeral-storage"] = "1Gi".into());
    has(causes.await, "spec", "Forbidden: only cpu and memory resources are mutable");
    assert_eq!(server.get(format!("{PODS}/p")).await.ok(), created);
}
