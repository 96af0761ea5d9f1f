//! Which versions rows are stored in, and how they come into another one.

use rowplane::cli::keys::KeyArgs;
use rowplane::cli::status::{WaitMigrations, inventory};
use rowplane::schema::names::GroupResource;
use rowplane::storage::inventory::Holdings;
use serde_json::{Value, json};

use super::conversion::{V2, in_two_versions, switch_storage};
use super::{WIDGETS, WIDGETS_DEFINITION, change, condition, widget, with};
use crate::support::client::Watch;
use crate::support::conversion_hook::Hook;
use crate::support::server::{Setup, TestServer, names, rv};

on_every_store! {
    custom_resources_7_stored_versions_are_what_rows_are_stored_in,
    a_migration_without_its_webhook_fails_and_prunes_nothing,
    a_definition_that_changes_meanwhile_keeps_its_stored_versions,
    rows_of_strategy_none_are_migrated,
}

on_both_databases! {
    the_status_of_a_store_has_custom_resources,
}

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const STORAGE_MIGRATING: &str = "StorageMigrating";

async fn migrate(server: &TestServer, name: &str) -> Watch {
    let resource = json!({"group": "ex.io", "resource": "widgets"});
    let migration = json!({"metadata": {"name": name}, "spec": {"resource": resource}});
    let made = server.post(MIGRATIONS, &migration).await.expect(201);
    let at = rv(&made);
    server
        .watch(format!("{MIGRATIONS}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3D{name}"))
        .await
}

/// Waits until a migration does not claim to run any more.
async fn ended(watch: &mut Watch) -> Value {
    loop {
        let object = watch.next().await.expect("an event")["object"].clone();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ended = conditions.iter().any(|found| found["type"] == "Running" && found["status"] == "False");
        if ended {
            return object;
        }
    }
}

async fn start(setup: &Setup, rows: usize) -> (TestServer, Hook) {
    let (server, hook) = (setup.start().await, Hook::start().await);
    with(&server, &in_two_versions(hook.client_config())).await;
    for number in 0..rows {
        let spec = json!({"color": "red", "replicas": number});
        server.post(WIDGETS, &widget(&format!("w{number:03}"), spec)).await.expect(201);
    }
    switch_storage(&server, "v2").await;
    (server, hook)
}

async fn custom_resources_7_stored_versions_are_what_rows_are_stored_in(setup: Setup) {
    let (server, mut hook) = start(&setup, 300).await;
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let removed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"].as_array_mut().expect("versions").remove(0);
    });
    assert_eq!(removed.await.status, 422);
    ended(&mut migrate(&server, "m").await).await;
    // Two pages, each with one call.
    assert_eq!(hook.calls(), 2);
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
    let message = "The migration has succeeded and the stored versions have been updated";
    assert_eq!(condition(&definition, STORAGE_MIGRATING), format!("False MigrationSucceeded {message}"));
    let managers = definition["metadata"]["managedFields"].as_array().expect("managers");
    assert!(managers.iter().any(|entry| entry["manager"] == "migration-runner-controller"));
    hook.stop().await;
    let list = server.get(V2).await.ok();
    assert_eq!(
        (names(&list).len(), &list["items"][7]["spec"]),
        (300, &json!({"paint": "red", "replicas": 7}))
    );
    assert_eq!(list["items"][7]["metadata"]["generation"], 1);
    let removed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"].as_array_mut().expect("versions").remove(0);
    });
    removed.await.ok();
    assert_eq!(names(&server.get(V2).await.ok()).len(), 300);
}

async fn a_migration_without_its_webhook_fails_and_prunes_nothing(setup: Setup) {
    let (server, mut hook) = start(&setup, 3).await;
    hook.stop().await;
    let ended = ended(&mut migrate(&server, "m").await).await;
    let conditions = ended["status"]["conditions"].as_array().expect("conditions");
    let failed = conditions.iter().find(|found| found["type"] == "Failed").expect("it fails");
    let message = failed["message"].as_str().expect("a message");
    assert!(message.contains("conversion webhook for ex.io/v1, Kind=Widget failed: Post "), "{message}");
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(condition(&definition, STORAGE_MIGRATING), "False MigrationFailed The migration has failed");
    // Nothing was lost.
    assert_eq!(names(&server.get(WIDGETS).await.ok()).len(), 3);
}

async fn a_definition_that_changes_meanwhile_keeps_its_stored_versions(setup: Setup) {
    let (server, hook) = start(&setup, 3).await;
    hook.hold();
    let mut migration = migrate(&server, "m").await;
    hook.arrived(1).await;
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(condition(&definition, STORAGE_MIGRATING), "True MigrationRunning Migration m is running");
    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"][0]["deprecated"] = true.into();
    });
    changed.await.ok();
    hook.release();
    ended(&mut migration).await;
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    let message = "The migration has succeeded but the stored versions have not been updated due to a generation mismatch";
    assert_eq!(condition(&definition, STORAGE_MIGRATING), format!("False MigrationSucceeded {message}"));
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    // All rows were written, by the definition of now.
    let calls = hook.calls();
    assert_eq!(names(&server.get(V2).await.ok()).len(), 3);
    assert_eq!(hook.calls(), calls);
    ended_with_pruning(&server).await;
}

async fn ended_with_pruning(server: &TestServer) {
    ended(&mut migrate(server, "again").await).await;
    let definition = server.get(WIDGETS_DEFINITION).await.ok();
    assert_eq!(definition["status"]["storedVersions"], json!(["v2"]));
}

async fn rows_of_strategy_none_are_migrated(setup: Setup) {
    let server = setup.start().await;
    let mut two = in_two_versions(json!({}));
    two["spec"]["conversion"] = json!({"strategy": "None"});
    with(&server, &two).await;
    server.post(WIDGETS, &widget("a", json!({"replicas": 1}))).await.expect(201);
    switch_storage(&server, "v2").await;
    ended_with_pruning(&server).await;
    assert_eq!(server.get(format!("{V2}/a")).await.ok()["spec"], json!({"replicas": 1}));
}

/// What `rowplane status` says of the widgets: the encodings of the rows, and of the server's next ones.
async fn holdings(setup: &Setup) -> Option<Holdings> {
    let inventory = inventory(&setup.database.datastore(), WaitMigrations::No, &KeyArgs::default())
        .await
        .expect("an inventory");
    inventory.resources.get(&GroupResource::new("ex.io", "widgets")).cloned()
}

fn stored(holdings: &Holdings) -> Vec<(&str, u64)> {
    holdings.stored.iter().map(|stored| (&*stored.api_version, stored.objects)).collect()
}

async fn encoded_in(setup: &Setup, version: Option<&str>) -> Option<Holdings> {
    loop {
        let holdings = holdings(setup).await;
        if holdings.as_ref().and_then(Holdings::common_encoding) == version {
            return holdings;
        }
    }
}

async fn the_status_of_a_store_has_custom_resources(mut setup: Setup) {
    setup.register("host");
    let server = setup.start().await;
    let mut two = in_two_versions(json!({}));
    two["spec"]["conversion"] = json!({"strategy": "None"});
    with(&server, &two).await;
    for name in ["a", "b"] {
        server.post(WIDGETS, &widget(name, json!({}))).await.expect(201);
    }
    let before = encoded_in(&setup, Some("ex.io/v1")).await.expect("widgets");
    assert_eq!((stored(&before), before.encodings.len()), (vec![("ex.io/v1", 2)], 1));
    switch_storage(&server, "v2").await;
    server.post(WIDGETS, &widget("c", json!({}))).await.expect(201);
    let between = encoded_in(&setup, Some("ex.io/v2")).await.expect("widgets");
    assert_eq!(stored(&between), [("ex.io/v1", 2), ("ex.io/v2", 1)]);
    ended_with_pruning(&server).await;
    assert_eq!(stored(&holdings(&setup).await.expect("widgets")), [("ex.io/v2", 3)]);
    server.delete(WIDGETS_DEFINITION).await.ok();
    while server.get(WIDGETS_DEFINITION).await.status != 404 {}
    // Objects go before their definition does, and what servers say of them soon after it.
    let has_objects = |holdings: Holdings| !holdings.stored.is_empty() || !holdings.encodings.is_empty();
    while holdings(&setup).await.is_some_and(has_objects) {}
}
