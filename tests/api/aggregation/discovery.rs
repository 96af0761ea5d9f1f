//! Discovery and OpenAPI with an extension server, and what else knows its resources: 1.6 and 1.7.

use serde_json::{Value, json};

use super::{beside, with_extension};
use crate::support::extension::{API_SERVICES, Behavior, ExtensionServer, GROUP, NAME, available};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    cluster_15_a_group_that_is_not_available,
    cluster_16_a_server_without_aggregated_discovery,
    cluster_17_a_namespace_waits_for_a_group,
    cluster_18_documents_of_openapi,
    cluster_18_a_server_that_has_openapi_v2_alone,
    lies_are_left_out,
    owners_of_an_extension_server,
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The entry of the extension server's version in aggregated discovery; null if there is none.
async fn entry(server: &TestServer) -> Value {
    let list = server.get("/apis").accept(AGGREGATED).await.ok();
    let groups = list["items"].as_array().expect("groups");
    assert!(groups.iter().any(|group| group["metadata"]["name"] == "apps"), "others are unaffected");
    let found = groups.iter().find(|group| group["metadata"]["name"] == GROUP);
    found.map_or(Value::Null, |group| group["versions"][0].clone())
}

async fn fresh(server: &TestServer, freshness: &str) -> Value {
    loop {
        let found = entry(server).await;
        if found["freshness"] == freshness {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

async fn cluster_15_a_group_that_is_not_available(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    extension.behave(Behavior::Answers(503, vec![]));
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    let listed = server.get("/apis").await.ok();
    let own = listed["groups"].as_array().expect("groups").iter().find(|group| group["name"] == GROUP);
    assert_eq!(own.expect("listed")["preferredVersion"]["groupVersion"], "ext.example.io/v1");
    let group = server.get("/apis/ext.example.io").await.ok();
    assert_eq!(group["versions"], json!([{"groupVersion": "ext.example.io/v1", "version": "v1"}]));
    let stale = fresh(&server, "Stale").await;
    assert_eq!(stale, json!({"version": "v1", "freshness": "Stale"}));
    extension.behave(Behavior::Serves);
    available(&server, "True").await;
    let current = fresh(&server, "Current").await;
    assert_eq!(current["resources"][0]["resource"], "things");
    assert_eq!(current["resources"][0]["shortNames"], json!(["th"]));
    // In every encoding.
    server.get("/apis").accept("application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").await;
    let packed = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert_eq!(server.get("/apis").accept(packed).await.status, 200);
    // What was known stays.
    extension.behave(Behavior::Answers(503, vec![]));
    let patch = json!({"spec": {"versionPriority": 11}});
    server.patch(format!("{API_SERVICES}/{NAME}"), &patch).await.ok();
    let stale = fresh(&server, "Stale").await;
    assert_eq!(stale["resources"], current["resources"]);
    server.delete(format!("{API_SERVICES}/{NAME}")).await.ok();
    assert_eq!(entry(&server).await, Value::Null);
    assert_eq!(server.get("/apis/ext.example.io").await.status, 404);
}

async fn cluster_16_a_server_without_aggregated_discovery(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    extension.behave(Behavior::IsOld);
    let server = with_extension(&mut setup, &extension).await;
    let current = fresh(&server, "Current").await;
    let want = json!([{"resource": "things", "responseKind": {"group": "", "version": "", "kind": "Thing"},
        "scope": "Namespaced", "singularResource": "thing",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"], "shortNames": ["th"]}]);
    assert_eq!(current["resources"], want);
}

async fn lies_are_left_out(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    fresh(&server, "Current").await;
    for behavior in [Behavior::Lies, Behavior::Floods, Behavior::Hangs] {
        extension.behave(behavior);
        let patch = json!({"spec": {"versionPriority": 11}});
        server.patch(format!("{API_SERVICES}/{NAME}"), &patch).await.ok();
        entry(&server).await;
        server.get("/openapi/v2").await.ok();
        server.get("/openapi/v3").await.ok();
    }
}

async fn owners_of_an_extension_server(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    fresh(&server, "Current").await;
    extension.keep(&["owner-a", "owner-other"]);
    let owned = |name: &str, owner: &str, uid: &str| {
        let owner = json!({"apiVersion": "ext.example.io/v1", "kind": "Thing", "name": owner, "uid": uid});
        json!({"metadata": {"name": name, "ownerReferences": [owner]}})
    };
    let maps = "/api/v1/namespaces/t/configmaps";
    server.post(maps, &owned("kept", "owner-a", "uid-owner-a")).await.expect(201);
    server.post(maps, &owned("lost", "owner-b", "uid-owner-b")).await.expect(201);
    server.post(maps, &owned("another", "owner-other", "uid-before")).await.expect(201);
    for name in ["lost", "another"] {
        while server.get(format!("{maps}/{name}")).await.status != 404 {
            tokio::task::yield_now().await;
        }
    }
    server.get(format!("{maps}/kept")).await.ok();
    extension.asked("/apis/ext.example.io/v1/namespaces/t/things/owner-b");
}

async fn cluster_18_documents_of_openapi(mut setup: Setup) {
    let mut extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let path = "/apis/ext.example.io/v1/things";
    let document = loop {
        let document = server.get("/openapi/v2").await.ok();
        if document["paths"].get(path).is_some() {
            break document;
        }
        tokio::task::yield_now().await;
    };
    assert!(document["paths"].get("/apis/apps/v1/stolen").is_none());
    assert!(
        document["paths"].get("/apis/apps/v1/deployments").is_none()
            || document["paths"].get("/version/").is_some()
    );
    let definitions = &document["definitions"];
    assert!(definitions.get("example.Unused").is_none());
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_ne!(definitions[meta]["description"], "of another release");
    assert_eq!(definitions[format!("{meta}_v2")]["description"], "of another release");
    let reference = &definitions["example.Thing"]["properties"]["metadata"]["$ref"];
    assert_eq!(*reference, format!("#/definitions/{meta}_v2"));
    let index = server.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/ext.example.io/v1"]["serverRelativeURL"].as_str().expect("a URL");
    assert_eq!(url, "/openapi/v3/apis/ext.example.io/v1?hash=E");
    assert_ne!(index["paths"]["apis/apps/v1"]["serverRelativeURL"], "/x");
    assert_eq!(server.get(url).await.ok()["info"]["title"], "ext");
    let asked = extension.asked("/openapi/v3/apis/ext.example.io/v1");
    assert_eq!(asked.all("x-remote-user"), ["system:aggregator"]);
    extension.stop().await;
    assert!(server.get("/openapi/v2").await.ok()["paths"].get(path).is_some());
    server.get("/openapi/v3/apis/apps/v1").await.ok();
}

async fn cluster_18_a_server_that_has_openapi_v2_alone(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    extension.behave(Behavior::IsOld);
    let server = with_extension(&mut setup, &extension).await;
    let url = loop {
        let index = server.get("/openapi/v3").await.ok();
        match index["paths"]["apis/ext.example.io/v1"]["serverRelativeURL"].as_str() {
            Some(url) => break url.to_owned(),
            None => tokio::task::yield_now().await,
        }
    };
    assert!(url.starts_with("/openapi/v3/apis/ext.example.io/v1?hash="), "{url}");
    let document = server.get(&url).await.ok();
    assert_eq!((&document["openapi"], &document["info"]["title"]), (&json!("3.0.0"), &json!("ext")));
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/apis/ext.example.io/v1/things"]);
    let thing = &document["components"]["schemas"]["example.Thing"];
    let meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(thing["properties"]["metadata"], json!({"$ref": meta}));
    let packed = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    assert_eq!(server.get(&url).accept(packed).await.header("content-type"), Some(packed));
    // Its own document is asked for again once it has one.
    extension.behave(Behavior::Serves);
    let patch = json!({"spec": {"versionPriority": 11}});
    server.patch(format!("{API_SERVICES}/{NAME}"), &patch).await.ok();
    while server.get("/openapi/v3/apis/ext.example.io/v1").await.text() == document {
        tokio::task::yield_now().await;
    }
}

async fn cluster_17_a_namespace_waits_for_a_group(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    fresh(&server, "Current").await;
    extension.keep(&["one", "two"]);
    extension.behave(Behavior::Answers(503, vec![]));
    let patch = json!({"spec": {"versionPriority": 11}});
    server.patch(format!("{API_SERVICES}/{NAME}"), &patch).await.ok();
    fresh(&server, "Stale").await;
    server.delete("/api/v1/namespaces/t").await.ok();
    let condition = loop {
        let namespace = server.get("/api/v1/namespaces/t").await.ok();
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|one| one["type"] == "NamespaceDeletionDiscoveryFailure");
        match found {
            Some(found) if found["status"] == "True" => break found,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(condition["reason"], "DiscoveryFailed");
    assert!(condition["message"].as_str().expect("a message").contains("ext.example.io/v1"), "{condition}");
    extension.behave(Behavior::Serves);
    while server.get("/api/v1/namespaces/t").await.status != 404 {
        tokio::task::yield_now().await;
    }
    assert_eq!(extension.things(), [""; 0]);
}
