//! Stored objects are rewritten in the version that all servers agree on.

use std::collections::BTreeMap;

use kube::config::Kubeconfig;
use rowplane::cli::keys::KeyArgs;
use rowplane::cli::status::{WaitMigrations, inventory};
use rowplane::schema::names::GroupResource;
use serde_json::{Value, json};

use crate::registration::autoscaler;
use crate::support::client::{Client, Protocol, Watch};
use crate::support::database::Database;
use crate::support::process::Installation;
use crate::support::server::{Setup, TestServer, rv};
use crate::{AUTOSCALERS, autoscalers_in, entries, id, on_host, version_of};

on_both_databases! {
    storage_version_41_43_stale_rows_are_written_again_and_no_others,
    storage_version_46_what_changes_meanwhile_does_not_fail_it,
    storage_version_49_reviews_cannot_be_migrated,
    storage_version_40_a_list_in_an_impossible_namespace,
    somebody_waits_for_migrations,
    an_object_that_cannot_be_read_fails_it,
    a_disagreement_in_the_middle_aborts_it,
    a_kill_in_the_middle_costs_nothing,
}

pub const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
pub const OBJECTS: &str = "/apis/autoscaling/v2/namespaces/t/horizontalpodautoscalers";
pub const STALE: &str = "SELECT COUNT(*) FROM objects o JOIN resources r ON r.id = o.resource \
    WHERE r.plural = 'horizontalpodautoscalers' AND NOT o.deleted AND o.stored_version = 'autoscaling/v2' \
    AND NOT EXISTS (SELECT 1 FROM objects n WHERE n.resource = o.resource AND n.namespace = o.namespace \
      AND n.name = o.name AND n.resource_version > o.resource_version)";

pub fn migration(name: &str, group: &str, resource: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": resource}}})
}

pub async fn migrate(client: &Client, name: &str) -> Watch {
    let made = client.post(MIGRATIONS, &migration(name, "autoscaling", "horizontalpodautoscalers")).await;
    watch(client, name, rv(&made.expect(201))).await
}

pub async fn watch(client: &Client, name: &str, at: u64) -> Watch {
    let path = format!("{MIGRATIONS}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3D{name}");
    client.watch(path).await
}

pub fn condition<'a>(migration: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = migration["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((found["status"].as_str()?, found["message"].as_str()?))
}

/// The object once a condition is true, and its message.
pub async fn until(watch: &mut Watch, kind: &str) -> (Value, String) {
    loop {
        let event = watch.next().await.expect("an event");
        let object = &event["object"];
        if let Some(("True", message)) = condition(object, kind) {
            return (object.clone(), message.to_owned());
        }
        assert_eq!(condition(object, "Failed").filter(|_| kind != "Failed"), None, "{object}");
    }
}

/// Waits until the migration does not claim to run any more.
pub async fn cleaned(watch: &mut Watch) -> Value {
    loop {
        let event = watch.next().await.expect("an event");
        if let Some(("False", message)) = condition(&event["object"], "Running") {
            assert_eq!(message, "Migration completed");
            return event["object"].clone();
        }
    }
}

/// Creates this many autoscalers, stored in v2, in a database without running servers.
pub async fn filled(setup: &mut Setup, count: usize) {
    on_host(setup, "rowplane-0");
    let server = setup.start().await;
    let make = |n: usize| {
        let request = server.post(OBJECTS, &autoscaler(&format!("a{n:04}")));
        async move { request.await.expect(201) }
    };
    for start in (0..count).step_by(50) {
        futures_util::future::join_all((start..count.min(start + 50)).map(make)).await;
    }
    server.stop().await;
    assert_eq!(setup.database.number(STALE).await as usize, count);
}

/// All objects by name, without what a rewrite changes; and their revisions.
pub async fn objects(client: &Client) -> (BTreeMap<String, Value>, BTreeMap<String, u64>) {
    let list = client.get(OBJECTS).await.ok();
    let (mut all, mut revisions) = (BTreeMap::new(), BTreeMap::new());
    for item in list["items"].as_array().expect("items") {
        let name = item["metadata"]["name"].as_str().expect("a name").to_owned();
        revisions.insert(name.clone(), rv(item));
        let mut item = item.clone();
        item["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        all.insert(name, item);
    }
    (all, revisions)
}

async fn storage_version_41_43_stale_rows_are_written_again_and_no_others(mut setup: Setup) {
    filled(&mut setup, 600).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    let server = setup.start().await;
    let fresh = server.post(OBJECTS, &autoscaler("fresh")).await.expect(201);
    let (before, old) = objects(&server).await;
    let (v1, v2) = ("autoscaling/v1", "autoscaling/v2");
    assert_eq!(stored(&setup).await, [(v1.to_owned(), 1), (v2.to_owned(), 600)]);
    let mut events =
        server.watch(format!("{OBJECTS}?watch=1&resourceVersion={}", server.revision().await)).await;
    let mut watch = migrate(&server, "first").await;
    let (done, message) = until(&mut watch, "Succeeded").await;
    assert_eq!(message, "Migration completed");
    let running = "The migration is running, 600 objects verified migrated";
    assert_eq!(condition(&done, "Running"), Some(("True", running)));
    let checkpoint: u64 =
        done["status"]["resourceVersion"].as_str().expect("text").parse().expect("a number");
    assert!(checkpoint >= rv(&fresh));
    cleaned(&mut watch).await;
    assert_eq!(setup.database.number(STALE).await, 0);

    assert_eq!(stored(&setup).await, [(v1.to_owned(), 601)]);
    let (after, new) = objects(&server).await;
    assert_eq!(after, before, "content and generation stay");
    for (name, revision) in &new {
        assert_eq!(*revision == old[name], name == "fresh", "{name}");
    }
    for _ in 0..600 {
        let event = events.expect("MODIFIED").await;
        assert!(rv(&event) > checkpoint);
    }

    let names = ["second", "third"];
    let mut watches = Vec::new();
    for name in names {
        watches.push(migrate(&server, name).await);
    }
    let mut ends = Vec::new();
    for watch in &mut watches {
        let (done, _) = until(watch, "Succeeded").await;
        assert_eq!(condition(&done, "Running"), Some(("True", "The migration is running")));
        ends.push(rv(&done));
    }
    assert!(ends[0] < ends[1], "in the order of their creation");
    assert_eq!(objects(&server).await.1, new);
    let events = server.get("/api/v1/namespaces/default/events").await.ok();
    let reasons: Vec<_> = events["items"].as_array().expect("items").iter().map(|e| &e["reason"]).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "MigrationSucceeded").count(), 3, "{reasons:?}");
    server.stop().await;
}

/// What `rowplane status` would print about autoscalers while the only server runs.
async fn stored(setup: &Setup) -> Vec<(String, u64)> {
    let inventory = inventory(&setup.database.datastore(), WaitMigrations::No, &KeyArgs::default())
        .await
        .expect("an inventory");
    let holdings = &inventory.resources[&GroupResource::new("autoscaling", "horizontalpodautoscalers")];
    assert_eq!(holdings.common_encoding(), Some("autoscaling/v1"));
    assert_eq!(inventory.servers(), [id("rowplane-0")]);
    holdings.stored.iter().map(|stored| (stored.api_version.clone(), stored.objects)).collect()
}

async fn storage_version_46_what_changes_meanwhile_does_not_fail_it(mut setup: Setup) {
    filled(&mut setup, 300).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    setup.limits.migration_rate = 300;
    let server = setup.start().await;
    let mut watch = migrate(&server, "busy").await;
    until(&mut watch, "Running").await;
    for n in 0..100 {
        let path = format!("{OBJECTS}/a{:04}", 299 - n);
        match n % 3 {
            0 => drop(server.patch(&path, &json!({"spec": {"maxReplicas": 9}})).await.ok()),
            1 => drop(server.delete(&path).await.ok()),
            _ => {
                server.delete(&path).await.ok();
                server.post(OBJECTS, &autoscaler(&format!("a{:04}", 299 - n))).await.expect(201);
            }
        }
    }
    until(&mut watch, "Succeeded").await;
    assert_eq!(setup.database.number(STALE).await, 0);
    let (all, _) = objects(&server).await;
    assert_eq!(all.len(), 300 - 33, "what was deleted stays so");
    assert_eq!(all.values().filter(|object| object["spec"]["maxReplicas"] == 9).count(), 34);
    server.stop().await;
}

async fn storage_version_49_reviews_cannot_be_migrated(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start().await;
    let body = migration("reviews", "authentication.k8s.io", "tokenreviews");
    let made = server.post(MIGRATIONS, &body).await.expect(201);
    let mut watch = watch(&server, "reviews", rv(&made)).await;
    let (_, message) = until(&mut watch, "Failed").await;
    assert_eq!(
        message,
        "resource \"authentication.k8s.io/v1, Resource=tokenreviews\" \
         does not support discovery operations: [update patch list]"
    );
    cleaned(&mut watch).await;
    server.stop().await;
}

/// Waits like `rowplane status --wait-migrations`.
async fn somebody_waits_for_migrations(mut setup: Setup) {
    filled(&mut setup, 300).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    setup.limits.migration_rate = 300;
    let server = setup.start().await;
    let datastore = setup.database.datastore();
    let mut watch = migrate(&server, "slow").await;
    inventory(&datastore, WaitMigrations::Yes, &KeyArgs::default()).await.expect("an inventory");
    assert_eq!(setup.database.number(STALE).await, 0);
    until(&mut watch, "Succeeded").await;

    let body = migration("reviews", "authentication.k8s.io", "tokenreviews");
    server.post(MIGRATIONS, &body).await.expect(201);
    let error = inventory(&datastore, WaitMigrations::Yes, &KeyArgs::default())
        .await
        .expect_err("it fails")
        .one_line();
    assert!(error.starts_with("the migration reviews has failed: resource \"authentication"), "{error}");
    server.delete(format!("{MIGRATIONS}/reviews")).await.ok();
    inventory(&datastore, WaitMigrations::Yes, &KeyArgs::default()).await.expect("an inventory");
    server.stop().await;
}

async fn storage_version_40_a_list_in_an_impossible_namespace(setup: Setup) {
    let server = setup.start().await;
    let made = server.create("a", json!({})).await;
    let path = "/api/v1/namespaces/%40fake%3Asvm_ns%21/configmaps?limit=1";
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = server.get(path).accept(accept).await.ok();
    assert_eq!((&list["kind"], &list["items"]), (&json!("PartialObjectMetadataList"), &json!([])));
    assert!(rv(&list) >= rv(&made));
    server.stop().await;
}

async fn an_object_that_cannot_be_read_fails_it(mut setup: Setup) {
    filled(&mut setup, 3).await;
    let garbage = if setup.is_sqlite() { "x'7b'" } else { "'\\x7b'" };
    let sql = format!("UPDATE objects SET value = {garbage} WHERE name = 'a0001'");
    setup.database.execute(&sql).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    let server = setup.start().await;
    let mut watch = migrate(&server, "stuck").await;
    let (_, message) = until(&mut watch, "Failed").await;
    let start = "3/3 not yet migrated. migration encountered unhandled error: ";
    assert!(message.starts_with(start) && message.contains("\"a0001\""), "{message}");
    assert_eq!(setup.database.number(STALE).await, 1, "the others were written");
    server.stop().await;
}

/// SQLite has no second server, so the StorageVersion is edited.
async fn a_disagreement_in_the_middle_aborts_it(mut setup: Setup) {
    filled(&mut setup, 100).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    setup.limits.migration_rate = 20;
    let server = setup.start().await;
    let mut watch = migrate(&server, "slow").await;
    until(&mut watch, "Running").await;
    let second = match setup.is_sqlite() {
        true => {
            disagree(&server).await;
            None
        }
        false => {
            on_host(&mut setup, "rowplane-1");
            autoscalers_in(&mut setup, "autoscaling/v2");
            Some(setup.start().await)
        }
    };
    let (_, message) = until(&mut watch, "Failed").await;
    let end = "not yet migrated. migration encountered unhandled error: aborted, because servers have changed how \
        they encode: the API servers do not agree on an encoding version";
    assert!(message.ends_with(end), "{message}");
    assert!(setup.database.number(STALE).await > 0);
    if let Some(second) = second {
        second.stop().await;
    }
    server.stop().await;
}

async fn disagree(server: &TestServer) {
    let mut version = version_of(server, AUTOSCALERS).await;
    let mut other = version["status"]["storageVersions"][0].clone();
    let lease = json!({"metadata": {"name": "other", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}});
    server.post(crate::LEASES, &lease).await.expect(201);
    other["apiServerID"] = "other".into();
    other["encodingVersion"] = "autoscaling/v2".into();
    let status = version["status"].as_object_mut().expect("a status");
    status.remove("commonEncodingVersion");
    status["storageVersions"].as_array_mut().expect("entries").push(other);
    server.put(format!("{}/{AUTOSCALERS}/status", crate::VERSIONS), &version).await.ok();
}

async fn a_kill_in_the_middle_costs_nothing(mut setup: Setup) {
    filled(&mut setup, 300).await;
    let installation = Installation::sqlite()
        .with(&format!("--datastore={}", setup.database.url()))
        .with("--storage-version=autoscaling/horizontalpodautoscalers=v1")
        .with("--storage-migration-rate=100");
    let server = installation.start().await;
    let client = client_of(&installation);
    let mut watch = migrate(&client, "killed").await;
    loop {
        let object = watch.expect("MODIFIED").await;
        if condition(&object, "Running").is_some_and(|(_, message)| message.contains("not yet migrated")) {
            break;
        }
    }
    server.kill().await;
    let left = setup.database.number(STALE).await;
    assert!(left > 0 && left < 300, "{left}");
    let done = "SELECT MAX(resource_version) FROM objects WHERE stored_version = 'autoscaling/v1'";
    let done = setup.database.number(done).await;

    let server = installation.start().await;
    let client = client_of(&installation);
    let mut watch = self::watch(&client, "killed", 0).await;
    until(&mut watch, "Succeeded").await;
    assert_eq!(setup.database.number(STALE).await, 0);
    let again = format!(
        "SELECT COUNT(*) FROM objects WHERE stored_version = 'autoscaling/v1' AND resource_version > {done}"
    );
    assert_eq!(setup.database.number(&again).await, left, "nothing was written twice");
    drop(server);
}

fn client_of(installation: &Installation) -> Client {
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    Client::of_certificate(&kubeconfig, Protocol::Any)
}

/// Three replicas are replaced one after the other by servers with another encoding; a migration is requested while
/// they disagree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_of_three_replicas() {
    let mut setup = Setup::new(Database::postgres().await);
    filled(&mut setup, 400).await;
    let mut replicas = Vec::new();
    for n in 0..3 {
        on_host(&mut setup, &format!("rowplane-{n}"));
        replicas.push(setup.start().await);
    }
    let at = replicas[0].revision().await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    let mut waiting = None;
    for n in 0..3 {
        let old = replicas.remove(0);
        old.stop().await;
        on_host(&mut setup, &format!("rowplane-{n}"));
        replicas.push(setup.start().await);
        if n == 0 {
            let mut watch = migrate(&replicas[2], "upgrade").await;
            loop {
                let object = watch.expect("MODIFIED").await;
                let hindrance = "The migration is running; transient error: the API servers do not agree on an encoding version";
                if condition(&object, "Running") == Some(("True", hindrance)) {
                    break;
                }
            }
            waiting = Some(rv(&replicas[2].get(format!("{MIGRATIONS}/upgrade")).await.ok()));
        }
        // Old and new replicas write, each in its version.
        for replica in &replicas {
            let name = format!("during-{n}-{}", rv(&replica.get(OBJECTS).await.ok()));
            replica.post(OBJECTS, &autoscaler(&name)).await.expect(201);
        }
    }
    let last = replicas.last().expect("replicas");
    let mut watch = watch(last, "upgrade", waiting.expect("asked for")).await;
    until(&mut watch, "Succeeded").await;
    assert_eq!(setup.database.number(STALE).await, 0, "no row of the old version is left");

    // The common versions that an observer has seen.
    let path = format!(
        "{}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3D{AUTOSCALERS}",
        crate::VERSIONS
    );
    let mut versions = last.watch(path).await;
    let mut seen = Vec::new();
    loop {
        let version = versions.expect("MODIFIED").await;
        let common = version["status"]["commonEncodingVersion"].as_str().unwrap_or("").to_owned();
        if seen.last() != Some(&common) {
            seen.push(common);
        }
        if entries(&version).iter().filter(|entry| entry.ends_with("=autoscaling/v1")).count() == 3 {
            break;
        }
    }
    assert_eq!(seen, ["autoscaling/v2", "", "autoscaling/v1"]);
    for replica in replicas {
        replica.stop().await;
    }
}
