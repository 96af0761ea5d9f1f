//! What a definition costs beside others, counted, and what servers of earlier releases leave of definitions.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream;
use rowplane::revision::Revision;
use rowplane::schema::names::Gvr;
use rowplane::storage::{Change, Expect, Key, Mutation};
use serde_json::{Value, json};

use super::{
    ALL_WIDGETS, DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, condition, definition, widget, widgets, with,
};
use crate::support::client::Watch;
use crate::support::server::{Setup, TestServer};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const STORAGE_VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";

on_every_store! {
    custom_resources_102_two_thousand_definitions,
}

on_both_databases! {
    a_definition_is_registered_alone,
    a_start_makes_one_generation_of_all_definitions,
    what_older_servers_leave_of_a_definition_is_removed,
}

/// The StorageVersions by name, with their revisions.
async fn storage_versions(server: &TestServer) -> BTreeMap<String, String> {
    let list = server.get(STORAGE_VERSIONS).await.ok();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["resourceVersion"]))).collect()
}

/// What a definition of the specification's count costs is measured (docs/PERFORMANCE.md); here it has to work.
async fn custom_resources_102_two_thousand_definitions(setup: Setup) {
    const MANY: usize = 2000;
    let server = setup.start().await;
    let post = async |number: usize| {
        let sent = definition(&format!("things{number}"), &format!("Thing{number}"));
        let made = server.post(DEFINITIONS, &sent).await.expect(201);
        assert!(condition(&made, "Established").starts_with("True"), "{made}");
    };
    stream::iter(0..MANY).map(post).buffer_unordered(20).collect::<Vec<_>>().await;
    post(MANY).await;
    let discovered = server.get("/apis").accept(AGGREGATED).await.ok();
    let of_group = discovered["items"].as_array().expect("groups").iter();
    let group = of_group.into_iter().find(|group| group["metadata"]["name"] == "ex.io").expect("the group");
    assert_eq!(group["versions"][0]["resources"].as_array().expect("resources").len(), MANY + 1);
    let thing = json!({"apiVersion": "ex.io/v1", "kind": format!("Thing{MANY}"), "metadata": {"name": "a"}});
    server.post(format!("/apis/ex.io/v1/things{MANY}"), &thing).await.expect(201);
}

async fn until(events: &mut Watch, kind: &str, name: &str) {
    loop {
        let event = events.next().await.expect("it comes to that");
        if event["type"] == kind && event["object"]["metadata"]["name"] == name {
            return;
        }
    }
}

async fn a_definition_is_registered_alone(mut setup: Setup) {
    setup.register("host");
    let server = setup.start().await;
    let start = server.revision().await;
    let mut events = server.watch(format!("{STORAGE_VERSIONS}?watch=1&resourceVersion={start}")).await;
    server.post(DEFINITIONS, &definition("firsts", "First")).await.expect(201);
    until(&mut events, "ADDED", "ex.io.firsts").await;
    let before = storage_versions(&server).await;
    server.post(DEFINITIONS, &definition("seconds", "Second")).await.expect(201);
    until(&mut events, "ADDED", "ex.io.seconds").await;
    let mut after = storage_versions(&server).await;
    assert!(after.remove("ex.io.seconds").is_some());
    assert_eq!(after, before, "nothing else was written");
    let rows = setup.database.number("SELECT COUNT(*) FROM storage_versions").await;
    assert_eq!(rows as usize, before.len() + 1);

    server.delete(format!("{DEFINITIONS}/firsts.ex.io")).await.ok();
    until(&mut events, "DELETED", "ex.io.firsts").await;
    // The collector may be first to delete the StorageVersion, which the definition owns; the registration follows.
    while setup.database.number("SELECT COUNT(*) FROM storage_versions").await as usize != before.len() {
        tokio::task::yield_now().await;
    }
    // The registration holds.
    server.create("still-registered", json!({})).await;
}

async fn a_start_makes_one_generation_of_all_definitions(mut setup: Setup) {
    const MANY: usize = 150;
    setup.register("host");
    let server = setup.start().await;
    let first = server.api.catalog.served().generation;
    let post = async |number: usize| {
        let kind = format!("Thing{number}");
        server.post(DEFINITIONS, &definition(&format!("things{number}"), &kind)).await.expect(201);
        let thing = json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a"}});
        server.post(format!("/apis/ex.io/v1/things{number}"), &thing).await.expect(201);
    };
    stream::iter(0..MANY).map(post).buffer_unordered(20).collect::<Vec<_>>().await;
    let made = server.api.catalog.served().generation - first;
    assert!(made <= MANY as u64, "{made} generations for {MANY} definitions");
    server.stop().await;

    let server = setup.start().await;
    let served = server.api.catalog.served();
    assert_eq!(served.generation, first + 1);
    let resources = server.get("/apis/ex.io/v1").await.ok()["resources"].as_array().expect("resources").len();
    assert_eq!(resources, MANY);
    for number in 0..MANY {
        server.get(format!("/apis/ex.io/v1/things{number}/a")).await.ok();
    }
}

/// Such a server knows definitions as it knows any objects: it deletes the row.
async fn delete_as_older_servers_do(server: &TestServer, path: &str) {
    let name = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let definitions = server.api.resources.get(&name).expect("built in").id;
    let found = server.get(path).await.ok();
    let revision =
        found["metadata"]["resourceVersion"].as_str().expect("a revision").parse().expect("a number");
    let key = Key::new(definitions, "", found["metadata"]["name"].as_str().expect("a name"));
    let deletion = Mutation::new(key, Expect::At(Revision(revision)), Change::Delete);
    server.api.store.write(deletion).await.expect("deleted");
}

async fn what_older_servers_leave_of_a_definition_is_removed(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("a", json!({}))).await.expect(201);
    let rival = definition("gadgets", "Widget");
    let refused = server.post(DEFINITIONS, &rival).await.expect(201);
    assert!(condition(&refused, "NamesAccepted").starts_with("False"), "{refused}");
    let start = server.revision().await;
    let mut events = server.watch(format!("{DEFINITIONS}?watch=1&resourceVersion={start}")).await;
    delete_as_older_servers_do(&server, WIDGETS_DEFINITION).await;
    // Whoever wants the names can have them.
    loop {
        let event = events.next().await.expect("it gets its names");
        if condition(&event["object"], "Established").starts_with("True")
            && event["object"]["metadata"]["name"] == "gadgets.ex.io"
        {
            break;
        }
    }
    server.delete(format!("{DEFINITIONS}/gadgets.ex.io")).await.ok();
    until(&mut events, "DELETED", "gadgets.ex.io").await;
    // Objects do not come back with the next definition of the same name.
    server.post(DEFINITIONS, &widgets()).await.expect(201);
    assert_eq!(server.get(ALL_WIDGETS).await.ok()["items"], json!([]));

    // What was left while no server of this release ran is found at its start.
    server.post(WIDGETS, &widget("b", json!({}))).await.expect(201);
    server.stop().await;
    let rows = "DELETE FROM objects WHERE name = 'widgets.ex.io' AND resource = \
                (SELECT id FROM resources WHERE plural = 'customresourcedefinitions')";
    setup.database.execute(rows).await;
    let server = setup.start().await;
    server.post(DEFINITIONS, &rival).await.expect(201);
    let mut events =
        server.watch(format!("{DEFINITIONS}?watch=1&fieldSelector=metadata.name=gadgets.ex.io")).await;
    loop {
        let event = events.next().await.expect("it gets its names");
        if condition(&event["object"], "Established").starts_with("True") {
            break;
        }
    }
    server.post(DEFINITIONS, &widgets()).await.expect(201);
    assert_eq!(server.get(ALL_WIDGETS).await.status, 404, "another definition has the kind");
    server.delete(format!("{DEFINITIONS}/gadgets.ex.io")).await.ok();
}
