//! What a definition says is served, from the answer to its write on.

use serde_json::{Value, json};

use super::{
    ALL_WIDGETS, DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, change, condition, version, widget, widgets, with,
};
use crate::support::server::{Setup, names, rv};

on_every_store! {
    custom_resources_24_a_definition_is_served_when_its_post_is_answered,
    custom_resources_33_34_what_is_not_there_is_told_as_upstream_tells_it,
    custom_resources_36_37_a_changed_schema_counts_at_its_answer,
    custom_resources_39_a_version_that_is_not_served_is_gone,
    custom_resources_50_51_stored_objects_are_read_by_the_schema_of_now,
    custom_resources_86_87_versions_share_their_objects,
    custom_resources_99_owners_and_dependents_are_collected,
    a_restart_serves_what_is_defined,
    objects_are_printed_as_upstream_prints_maps,
    custom_resources_38_nothing_fails_while_definitions_change,
    nothing_joins_a_version_of_the_servers_own,
    what_is_served_is_what_was_asked_for,
}

// A store in memory has one server.
on_both_databases! { custom_resources_35_other_servers_serve_a_definition_when_its_post_is_answered }

async fn custom_resources_24_a_definition_is_served_when_its_post_is_answered(setup: Setup) {
    let server = setup.start().await;
    let created = with(&server, &widgets()).await;
    assert_eq!(condition(&created, "NamesAccepted"), "True NoConflicts no conflicts found");
    assert_eq!(
        condition(&created, "Established"),
        "True InitialNamesAccepted the initial names have been accepted"
    );
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    let made = server.post(WIDGETS, &widget("a", json!({"replicas": 1}))).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    events.expect_named("ADDED", "a").await;
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok(), made);
    assert_eq!(names(&server.get(WIDGETS).await.ok()), ["a"]);

    let mut changed = made.clone();
    changed["spec"]["replicas"] = 2.into();
    let changed = server.put(format!("{WIDGETS}/a"), &changed).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    events.expect_named("MODIFIED", "a").await;
    let patched = server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"color": "red"}})).await.ok();
    assert_eq!(patched["spec"], json!({"color": "red", "replicas": 2}));
    let json_patch = json!([{"op": "replace", "path": "/spec/color", "value": "blue"}]);
    let request = server.request(http::Method::PATCH, format!("{WIDGETS}/a"));
    let patched = request.body("application/json-patch+json", json_patch.to_string()).await.ok();
    assert_eq!(patched["spec"]["color"], "blue");
    let applied = widget("b", json!({"replicas": 3, "tags": ["x"]}));
    let request = server.request(http::Method::PATCH, format!("{WIDGETS}/b?fieldManager=m"));
    let applied = request.body("application/apply-patch+yaml", applied.to_string()).await.expect(201);
    assert_eq!(applied["metadata"]["managedFields"][0]["operation"], "Apply");

    server.post(WIDGETS, &widget("c", json!({}))).await.expect(201);
    server.delete(format!("{WIDGETS}/c")).await.ok();
    server.delete(WIDGETS).await.ok();
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), [""; 0]);
    let missing = server.put(format!("{WIDGETS}/z"), &widget("z", json!({}))).await;
    assert_eq!(missing.status, 404, "{missing:?}");
}

async fn custom_resources_33_34_what_is_not_there_is_told_as_upstream_tells_it(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("x", json!({}))).await.expect(201);
    for path in ["/apis/ex.io/v1/gadgets", "/apis/ex.io/v2/widgets", "/apis/none.io/v1/widgets"] {
        let missing = server.get(path).await;
        assert_eq!((missing.status, &*missing.text()), (404, "404 page not found\n"), "{path}");
    }
    let missing = server.post(ALL_WIDGETS, &widget("y", json!({}))).await;
    assert_eq!((missing.status, &*missing.text()), (404, "404 page not found\n"));
    let missing = server.get(format!("{WIDGETS}/x/frob")).await;
    missing.fails(
        404,
        "NotFound",
        "widgets.ex.io \"x\" not found",
        json!({"name": "x", "group": "ex.io", "kind": "widgets"}),
    );
    let refused = server.post(format!("{WIDGETS}/x/status"), &widget("x", json!({}))).await;
    refused.fails(
        405,
        "MethodNotAllowed",
        "create is not supported on resources of kind \"widgets.ex.io\"",
        json!({"group": "ex.io", "kind": "widgets"}),
    );
}

async fn custom_resources_36_37_a_changed_schema_counts_at_its_answer(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("a", json!({"size": 1}))).await.expect(201);
    let start = server.revision().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={start}")).await;
    server.post(WIDGETS, &widget("b", json!({}))).await.expect(201);
    let seen = rv(&events.expect_named("ADDED", "b").await);
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    change(&server, WIDGETS_DEFINITION, |definition| {
        let properties = definition.pointer_mut(place).expect("properties");
        properties["size"] = json!({"type": "integer"});
        properties["shape"] = json!({"type": "string", "default": "round"});
    })
    .await
    .ok();
    let made = server.post(WIDGETS, &widget("c", json!({"size": 2}))).await.expect(201);
    assert_eq!(made["spec"], json!({"shape": "round", "size": 2}));
    events.expect_end().await;
    let mut events = server.watch(format!("{ALL_WIDGETS}?watch=1&resourceVersion={seen}")).await;
    assert_eq!(events.expect_named("ADDED", "c").await["spec"]["shape"], "round");
}

async fn custom_resources_39_a_version_that_is_not_served_is_gone(setup: Setup) {
    let server = setup.start().await;
    let mut two = widgets();
    two["spec"]["versions"].as_array_mut().expect("versions").push(version("v2", false));
    with(&server, &two).await;
    server.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    let v2 = "/apis/ex.io/v2/widgets";
    assert_eq!(names(&server.get(v2).await.ok()), ["a"]);
    change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"][1]["served"] = false.into();
    })
    .await
    .ok();
    for path in [v2, "/apis/ex.io/v2"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let group = server.get("/apis/ex.io").await.ok();
    assert_eq!(group["versions"], json!([{"groupVersion": "ex.io/v1", "version": "v1"}]));
    assert_eq!(names(&server.get(ALL_WIDGETS).await.ok()), ["a"]);
}

async fn custom_resources_50_51_stored_objects_are_read_by_the_schema_of_now(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let made = server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let with_properties = async |set: &dyn Fn(&mut Value)| {
        let changed = change(&server, WIDGETS_DEFINITION, |definition| {
            set(definition.pointer_mut(place).expect("properties"));
        });
        changed.await.ok();
    };
    with_properties(&|properties| properties["shape"] = json!({"type": "string", "default": "round"})).await;
    let read = server.get(format!("{WIDGETS}/a")).await.ok();
    assert_eq!(read["spec"], json!({"color": "red", "shape": "round"}));
    assert_eq!(rv(&read), rv(&made));
    assert_eq!(server.get(WIDGETS).await.ok()["items"][0]["spec"], read["spec"]);
    // What is read is not what is stored, so that even an empty patch writes it, once.
    let patched = server.patch(format!("{WIDGETS}/a"), &json!({})).await.ok();
    assert!(rv(&patched) > rv(&made), "{patched}");
    assert_eq!(patched["metadata"]["generation"], made["metadata"]["generation"]);
    let again = server.patch(format!("{WIDGETS}/a"), &json!({})).await.ok();
    assert_eq!(rv(&again), rv(&patched));

    let color = json!({"type": "string"});
    with_properties(&|properties| _ = properties.as_object_mut().expect("properties").remove("color")).await;
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok()["spec"], json!({"shape": "round"}));
    with_properties(&|properties| properties["color"] = color.clone()).await;
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok()["spec"]["color"], "red");
    with_properties(&|properties| _ = properties.as_object_mut().expect("properties").remove("color")).await;
    server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"replicas": 1}})).await.ok();
    with_properties(&|properties| properties["color"] = color.clone()).await;
    let read = server.get(format!("{WIDGETS}/a")).await.ok();
    assert_eq!(read["spec"], json!({"replicas": 1, "shape": "round"}));
}

async fn custom_resources_86_87_versions_share_their_objects(setup: Setup) {
    let server = setup.start().await;
    let mut two = widgets();
    let mut v2 = two["spec"]["versions"][0].clone();
    (v2["name"], v2["storage"]) = ("v2".into(), false.into());
    v2["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["only2"] = json!({"type": "string"});
    two["spec"]["versions"].as_array_mut().expect("versions").push(v2);
    with(&server, &two).await;
    let (one, other) = (format!("{WIDGETS}/a"), "/apis/ex.io/v2/namespaces/d/widgets/a");
    let made = server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    let read = server.get(other).await.ok();
    let mut expected = made.clone();
    expected["apiVersion"] = "ex.io/v2".into();
    assert_eq!(read, expected);
    // What the stored version does not know is lost.
    server.patch(other, &json!({"spec": {"only2": "x", "color": "blue"}})).await.ok();
    assert_eq!(server.get(other).await.ok()["spec"], json!({"color": "blue"}));

    change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"][0]["storage"] = false.into();
        definition["spec"]["versions"][1]["storage"] = true.into();
    })
    .await
    .ok();
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let before = server.get(&one).await.ok();
    assert_eq!(rv(&server.get(other).await.ok()), rv(&before));
    server.post(WIDGETS, &widget("b", json!({}))).await.expect(201);
    for path in [ALL_WIDGETS, "/apis/ex.io/v2/widgets"] {
        assert_eq!(names(&server.get(path).await.ok()), ["a", "b"]);
    }
    let patched = server.patch(&one, &json!({})).await.ok();
    assert!(rv(&patched) > rv(&before), "stored in v2 now");
    server.patch(other, &json!({"spec": {"only2": "x"}})).await.ok();
    assert_eq!(server.get(other).await.ok()["spec"]["only2"], "x");
    assert_eq!(server.get(&one).await.ok()["spec"], json!({"color": "blue"}));
}

async fn custom_resources_99_owners_and_dependents_are_collected(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let owner = server.post(WIDGETS, &widget("owner", json!({}))).await.expect(201);
    let config = json!({"metadata": {"name": "of-widget", "ownerReferences": [{"apiVersion": "ex.io/v1",
        "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"]}]}});
    let start = server.revision().await;
    let path = "/api/v1/namespaces/d/configmaps";
    let mut events = server.watch(format!("{path}?watch=1&resourceVersion={start}")).await;
    server.post(path, &config).await.expect(201);
    events.expect_named("ADDED", "of-widget").await;
    server.delete(format!("{WIDGETS}/owner")).await.ok();
    events.expect_named("DELETED", "of-widget").await;
}

async fn a_restart_serves_what_is_defined(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let made = server.post(WIDGETS, &widget("a", json!({"color": "red"}))).await.expect(201);
    server.stop().await;
    let server = setup.start().await;
    assert_eq!(server.get(format!("{WIDGETS}/a")).await.ok(), made);
}

async fn custom_resources_35_other_servers_serve_a_definition_when_its_post_is_answered(setup: Setup) {
    if setup.is_sqlite() {
        return;
    }
    let (one, other) = (setup.start().await, setup.start().await);
    with(&one, &widgets()).await;
    for round in 0..20 {
        let plural = format!("things{round}");
        let kind = format!("Thing{round}");
        one.post(DEFINITIONS, &super::definition(&plural, &kind)).await.expect(201);
        let thing =
            json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"x": round}});
        other.post(format!("/apis/ex.io/v1/{plural}"), &thing).await.expect(201);
        let listed = other.get("/apis/ex.io/v1").await.ok();
        let resources = listed["resources"].as_array().expect("resources");
        assert!(resources.iter().any(|resource| resource["name"] == plural), "{listed}");
        // A change of the schema counts on the other server, too.
        change(&one, WIDGETS_DEFINITION, |definition| {
            let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            definition.pointer_mut(place).expect("properties")[format!("p{round}")] =
                json!({"type": "string", "default": "new"});
        })
        .await
        .ok();
        let made = other.post(WIDGETS, &widget(&format!("w{round}"), json!({}))).await.expect(201);
        assert_eq!(made["spec"][format!("p{round}")], "new", "{made}");
        assert_eq!(other.get(format!("{WIDGETS}/w0")).await.ok()["spec"][format!("p{round}")], "new");
    }
}

async fn objects_are_printed_as_upstream_prints_maps(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let body = r#"{"kind":"Widget","apiVersion":"ex.io/v1","spec":{"tags":["b"],"free":{"z":1,"a":{"y":2,"x":3}}},
        "metadata":{"uid":"u","name":"a","labels":{"l":"1"}}}"#;
    let made = server.request(http::Method::POST, WIDGETS).body("application/json", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let sorted = |text: &str| {
        let value: Value = serde_json::from_str(text).expect("JSON");
        // Without `preserve_order` maps of serde_json are sorted; with it the check is for the reader.
        let mut keys = Vec::new();
        collect(&value, &mut keys);
        keys.iter().all(|object| object.is_sorted())
    };
    assert!(
        made.text().starts_with(r#"{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"#),
        "{}",
        made.text()
    );
    assert!(sorted(&made.text()), "{}", made.text());
    let read = server.get(format!("{WIDGETS}/a")).await;
    assert_eq!(read.text(), made.text());
    let list = server.get(WIDGETS).await;
    let item = made.text();
    let expected = format!(
        r#"{{"apiVersion":"ex.io/v1","items":[{}],"kind":"WidgetList","metadata":{{"continue":"","resourceVersion":"{}"}}}}"#,
        item.trim_end(),
        list.ok()["metadata"]["resourceVersion"].as_str().expect("a version")
    );
    assert_eq!(list.text(), expected + "\n");
}

fn collect(value: &Value, keys: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) => {
            keys.push(members.keys().cloned().collect());
            members.values().for_each(|value| collect(value, keys));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}

async fn custom_resources_38_nothing_fails_while_definitions_change(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    let client = server.admin.clone();
    let others = tokio::spawn(async move {
        for round in 0.. {
            client.get(format!("{WIDGETS}/a")).await.ok();
            client.post(WIDGETS, &widget(&format!("n{round}"), json!({"color": "red"}))).await.expect(201);
            client.patch(format!("{WIDGETS}/a"), &json!({"spec": {"replicas": round}})).await.ok();
        }
    });
    for round in 0..60 {
        change(&server, WIDGETS_DEFINITION, |definition| {
            let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
            versions.truncate(1);
            if round % 2 == 0 {
                versions.push(version("v2", false));
            }
        })
        .await
        .ok();
    }
    assert!(!others.is_finished(), "{:?}", others.await);
    others.abort();
}

/// A definition in a built-in group is stored; only its versions that are not built in are served (upstream's
/// `TestCRDShadowGroup`).
async fn nothing_joins_a_version_of_the_servers_own(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    definition["metadata"] = json!({"name": "foos.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, test-only"}});
    definition["spec"]["group"] = "networking.k8s.io".into();
    definition["spec"]["names"] = json!({"plural": "foos", "kind": "Foo"});
    definition["spec"]["versions"] = json!([version("v1", true), version("v9", false)]);
    let created = server.post(DEFINITIONS, &definition).await.expect(201);
    assert_eq!(created["status"]["acceptedNames"]["plural"], "foos", "{created}");
    let shown = async |version: &str| {
        let list = server.get(format!("/apis/networking.k8s.io/{version}")).await.ok();
        let resources = list["resources"].as_array().expect("a list").clone();
        resources.iter().any(|resource| resource["name"] == "foos")
    };
    assert!(!shown("v1").await && shown("v9").await);
    assert_eq!(server.get("/apis/networking.k8s.io/v1/namespaces/t/foos").await.status, 404);
    server.get("/apis/networking.k8s.io/v9/namespaces/t/foos").await.ok();
    server.get("/apis/networking.k8s.io/v1/namespaces/t/ingresses").await.ok();
    server.delete(format!("{DEFINITIONS}/foos.networking.k8s.io")).await.ok();
}

/// Definitions may have the plurals `proxy` and `watch`, which are verbs where a path begins with them: as upstream, the server
/// answers for the resource that authorizers are asked about.
async fn what_is_served_is_what_was_asked_for(setup: Setup) {
    let server = setup.start().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for (plural, kind) in [("proxy", "Proxy"), ("watch", "Watch")] {
        let mut definition = widgets();
        definition["metadata"]["name"] = format!("{plural}.ex.io").into();
        definition["spec"]["names"] = json!({"plural": plural, "kind": kind});
        with(&server, &definition).await;
    }
    let mut definition = widgets();
    definition["spec"]["scope"] = "Cluster".into();
    with(&server, &definition).await;
    let proxy = json!({"apiVersion": "ex.io/v1", "kind": "Proxy", "metadata": {"name": "widgets"}});
    let proxies = "/apis/ex.io/v1/namespaces/t/proxy";
    server.post(proxies, &proxy).await.expect(201);
    server.get(format!("{proxies}/widgets")).await.ok();
    assert_eq!(names(&server.get(proxies).await.ok()), ["widgets"]);
    let rules = json!([{"apiGroups": ["ex.io"], "resources": ["widgets"], "verbs": ["*"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"});
    let binding = json!({"metadata": {"name": "r"}, "roleRef": role_ref,
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    let details = json!({"group": "ex.io", "kind": "widgets"});
    for method in [http::Method::GET, http::Method::DELETE] {
        let answer = alice.request(method.clone(), "/apis/ex.io/v1/proxy/widgets").await;
        let text = "proxy is not supported on resources of kind \"widgets.ex.io\"";
        answer.fails(405, "MethodNotAllowed", text, details.clone());
        assert_eq!(alice.request(method, format!("{proxies}/widgets")).await.status, 403);
    }
    server.get(format!("{proxies}/widgets")).await.ok();
    assert_eq!(server.get("/apis/ex.io/v1/proxy/nosuch").await.status, 404);
    assert_eq!(server.get("/api/v1/proxy/nodes/n").await.status, 404);
    let mut watch = alice.watch("/apis/ex.io/v1/watch/widgets").await;
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}});
    server.post("/apis/ex.io/v1/widgets", &widget).await.expect(201);
    watch.expect_named("ADDED", "w").await;
    assert_eq!(alice.get("/apis/ex.io/v1/watch/watch").await.status, 403);
}
