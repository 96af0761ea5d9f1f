//! Resources that are served from some moment on and until another, while requests run.

use std::sync::Arc;

use rowplane::kinds::built_in;
use rowplane::schema::kind::Kind;
use rowplane::schema::names::{GroupResource, GroupVersion, Gvk, Gvr};
use rowplane::schema::registry::Registry;
use rowplane::schema::resource::{Origin, ResourceDefinition, Storage};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client::Watch;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/t/widgets";
const ALL_WIDGETS: &str = "/apis/example.com/v1/widgets";

on_every_store! {
    documents_and_verbs_follow_what_is_served,
    the_collector_follows_what_is_served,
    a_namespace_takes_with_it_what_came_to_be_served,
    storage_versions_follow_what_is_served,
    a_resource_that_stays_is_the_same_in_the_next_generation,
}

/// A kind of which nothing is known but its name, in other things like ConfigMaps.
fn opaque(plural: &str, kind: &str) -> Arc<ResourceDefinition> {
    let registry = Registry::new(built_in::definitions());
    let mut definition = (*registry.lookup(&Gvr::fixed("v1", "configmaps")).expect("built in")).clone();
    let version = GroupVersion::fixed("example.com/v1");
    definition.kind = Kind::opaque(Gvk { group_version: version.clone(), kind: kind.into() });
    definition.list_kind = format!("{kind}List").into();
    (definition.plural, definition.singular) = (plural.into(), kind.to_lowercase().into());
    definition.short_names = Vec::new();
    definition.origin = Origin::Custom;
    definition.storage = Storage::Table { resource: GroupResource::new("example.com", plural), version };
    Arc::new(definition)
}

fn widgets() -> Arc<ResourceDefinition> {
    opaque("widgets", "Widget")
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 0}})
}

async fn serve(server: &TestServer, custom: &[Arc<ResourceDefinition>]) {
    server.api.serve(custom.to_vec()).await.expect("the next generation");
}

fn owned_by(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"]
    }]);
    object
}

async fn watch(server: &TestServer, path: &str) -> Watch {
    let start = server.revision().await;
    server.watch(format!("{path}?watch=1&resourceVersion={start}")).await
}

/// Waits for the end of an object, whatever else happens.
async fn gone(watch: &mut Watch, name: &str) {
    loop {
        let event = watch.next().await.expect("it goes");
        if event["type"] == "DELETED" && event["object"]["metadata"]["name"] == name {
            return;
        }
    }
}

/// What goes on meanwhile: reads of documents and of objects, and writes. All of it has to succeed.
fn others(server: &TestServer) -> JoinSet<()> {
    let mut others = JoinSet::new();
    for n in 0..2 {
        let client = server.admin.clone();
        others.spawn(async move {
            for round in 0.. {
                let name = format!("other-{n}-{round}");
                client.post(CONFIGMAPS, &config_map(&name, json!({}))).await.expect(201);
                client.get("/apis").await.ok();
                client.get("/api/v1").await.ok();
                assert!(names(&client.get(CONFIGMAPS).await.ok()).contains(&name));
                client.delete(format!("{CONFIGMAPS}/{name}")).await.ok();
            }
        });
    }
    others
}

/// What documents say of the resource, each.
async fn told(server: &TestServer) -> [bool; 5] {
    let groups = server.get("/apis").await.ok();
    let groups: Vec<&str> =
        groups["groups"].as_array().expect("groups").iter().filter_map(|g| g["name"].as_str()).collect();
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let aggregated = server.get("/apis").header("accept", aggregated).await.ok().to_string();
    let version = server.get("/apis/example.com/v1").await;
    let (v2, v3) = (server.get("/openapi/v2").await.ok(), server.get("/openapi/v3").await.ok());
    [
        groups.contains(&"example.com"),
        aggregated.contains(r#""resource":"widgets""#),
        version.status == 200 && version.ok()["resources"][0]["name"] == "widgets",
        v2["paths"].get("/apis/example.com/v1/namespaces/{namespace}/widgets").is_some(),
        v3["paths"].get("apis/example.com/v1").is_some(),
    ]
}

async fn documents_and_verbs_follow_what_is_served(setup: Setup) {
    let server = setup.start().await;
    let mut others = others(&server);
    assert_eq!(told(&server).await, [false; 5]);
    assert_eq!(server.get(WIDGETS).await.status, 404);
    for _ in 0..3 {
        serve(&server, &[widgets()]).await;
        assert_eq!(told(&server).await, [true; 5]);
        let mut watch = watch(&server, ALL_WIDGETS).await;
        let created = server.post(WIDGETS, &widget("a")).await.expect(201);
        assert_eq!(created["spec"], json!({"size": 0}), "nothing is left out of what nobody knows");
        watch.expect_named("ADDED", "a").await;
        server.post(WIDGETS, &widget("b")).await.expect(201);
        watch.expect_named("ADDED", "b").await;
        assert_eq!(names(&server.get(WIDGETS).await.ok()), ["a", "b"]);
        let patched = server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"size": 7}})).await.ok();
        assert_eq!(patched["spec"], json!({"size": 7}));
        watch.expect_named("MODIFIED", "a").await;
        server.delete(format!("{WIDGETS}?fieldSelector=metadata.name%3Da")).await.ok();
        watch.expect_named("DELETED", "a").await;

        serve(&server, &[]).await;
        assert!(watch.next().await.is_none(), "watches end, without a word");
        assert_eq!(told(&server).await, [false; 5]);
        for path in [WIDGETS.to_owned(), format!("{WIDGETS}/b"), "/apis/example.com/v1".to_owned()] {
            assert_eq!(server.get(&path).await.status, 404, "{path}");
        }
        assert_eq!(server.post(WIDGETS, &widget("c")).await.status, 404);
        // What is stored stays.
        serve(&server, &[widgets()]).await;
        assert_eq!(names(&server.get(WIDGETS).await.ok()), ["b"]);
        server.delete(WIDGETS).await.ok();
        assert_eq!(names(&server.get(WIDGETS).await.ok()), [""; 0]);
        serve(&server, &[]).await;
    }
    assert!(others.try_join_next().is_none(), "all else went on");
}

async fn the_collector_follows_what_is_served(setup: Setup) {
    let server = setup.start().await;
    serve(&server, &[widgets()]).await;
    let mut widget_events = watch(&server, ALL_WIDGETS).await;
    let mut config_events = watch(&server, CONFIGMAPS).await;
    let owner = server.post(WIDGETS, &widget("owner")).await.expect(201);
    server.post(CONFIGMAPS, &owned_by(config_map("of-widget", json!({})), &owner)).await.expect(201);
    let config = server.create("config", json!({})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": config["metadata"]});
    server.post(WIDGETS, &owned_by(widget("of-config"), &config)).await.expect(201);
    server.delete(format!("{WIDGETS}/owner")).await.ok();
    gone(&mut config_events, "of-widget").await;
    server.remove("config").await;
    gone(&mut widget_events, "of-config").await;

    // An owner of a kind that is not served is neither alive nor gone.
    let kept = server.post(WIDGETS, &widget("kept")).await.expect(201);
    let lost = server.post(WIDGETS, &widget("lost")).await.expect(201);
    server.post(CONFIGMAPS, &owned_by(config_map("of-kept", json!({})), &kept)).await.expect(201);
    let mut of_lost = owned_by(config_map("of-lost", json!({})), &lost);
    of_lost["metadata"]["ownerReferences"][0]["uid"] = "another".into();
    serve(&server, &[]).await;
    server.post(CONFIGMAPS, &of_lost).await.expect(201);
    let passing = server.create("passing-owner", json!({})).await;
    let passing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": passing["metadata"]});
    server.post(CONFIGMAPS, &owned_by(config_map("passing", json!({})), &passing)).await.expect(201);
    server.remove("passing-owner").await;
    gone(&mut config_events, "passing").await;
    let left = names(&server.get(CONFIGMAPS).await.ok());
    assert!(["of-kept", "of-lost"].iter().all(|name| left.iter().any(|left| left == name)), "{left:?}");

    // Once its kind is served again, it is known which.
    serve(&server, &[widgets()]).await;
    gone(&mut config_events, "of-lost").await;
    let left = names(&server.get(CONFIGMAPS).await.ok());
    assert!(left.contains(&"of-kept".to_owned()), "{left:?}");
    server.delete(format!("{WIDGETS}/kept")).await.ok();
    gone(&mut config_events, "of-kept").await;
}

async fn a_namespace_takes_with_it_what_came_to_be_served(setup: Setup) {
    let server = setup.start().await;
    serve(&server, &[widgets(), opaque("gadgets", "Gadget")]).await;
    let mut events = watch(&server, ALL_WIDGETS).await;
    let mut namespaces = watch(&server, "/api/v1/namespaces").await;
    server.post(WIDGETS, &widget("a")).await.expect(201);
    server.delete("/api/v1/namespaces/t").await.ok();
    gone(&mut events, "a").await;
    gone(&mut namespaces, "t").await;
    let refused = server.post(WIDGETS, &widget("late")).await;
    assert_eq!(refused.status, 404, "{refused:?}");
}

async fn storage_versions_follow_what_is_served(mut setup: Setup) {
    const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    setup.register("host");
    let server = setup.start().await;
    let mut events = watch(&server, VERSIONS).await;
    serve(&server, &[widgets()]).await;
    loop {
        let event = events.next().await.expect("it registers");
        let object = &event["object"];
        if object["metadata"]["name"] == "example.com.widgets" {
            let entry = &object["status"]["storageVersions"][0];
            assert_eq!(entry["encodingVersion"], "example.com/v1", "{object}");
            break;
        }
    }
    serve(&server, &[]).await;
    gone(&mut events, "example.com.widgets").await;
    server.create("still-registered", json!({})).await;
}

async fn a_resource_that_stays_is_the_same_in_the_next_generation(setup: Setup) {
    let server = setup.start().await;
    let (widgets, gadgets) = (widgets(), opaque("gadgets", "Gadget"));
    let first = server.api.catalog.served();
    let second = server.api.serve(vec![widgets.clone()]).await.expect("the next generation");
    let third = server.api.serve(vec![widgets.clone(), gadgets]).await.expect("the next generation");
    assert_eq!([second.generation, third.generation], [first.generation + 1, first.generation + 2]);
    assert_eq!(server.api.catalog.served().generation, third.generation);
    let same = |name: &Gvr| Arc::ptr_eq(second.get(name).expect("served"), third.get(name).expect("served"));
    assert!(same(&widgets.gvr()) && same(&Gvr::fixed("apps/v1", "deployments")));
    assert!(first.get(&widgets.gvr()).is_none(), "a generation never changes");
    let mut events = watch(&server, ALL_WIDGETS).await;
    serve(&server, std::slice::from_ref(&widgets)).await;
    server.post(WIDGETS, &widget("a")).await.expect(201);
    events.expect_named("ADDED", "a").await;
}
