//! Servers that are gone are removed from StorageVersions.

use rowplane::api::storage_version::registration::{Extent, OwnRegistration};
use rowplane::controllers::create_system_namespaces;
use serde_json::{Value, json};

use crate::support::client::{Client, Watch};
use crate::support::server::{Setup, TestServer, names, rv};
use crate::support::verbs::api_on;
use crate::{LEASES, VERSIONS, condition, entries, entry_count, id, on_host, version_of};

on_both_databases! {
    storage_version_28_30_entries_of_unknown_servers_go,
    storage_version_29_what_is_left_decides_and_nothing_is_deleted,
    storage_version_31_a_collection_never_takes_a_registration_away,
    an_empty_object_stays,
    a_lease_that_cannot_be_read_is_a_lease,
    an_object_that_cannot_be_read_names_whom_it_named,
}

/// A StorageVersion with entries of these servers.
async fn create(client: &Client, name: &str, servers: &[(&str, &str)]) -> Value {
    let made = client.post(VERSIONS, &json!({"metadata": {"name": name}})).await.expect(201);
    let entry = |(id, version): &(&str, &str)| json!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]});
    let mut status = json!({"storageVersions": servers.iter().map(entry).collect::<Vec<_>>()});
    if servers.iter().all(|(_, version)| *version == servers[0].1) {
        status["commonEncodingVersion"] = servers[0].1.into();
    }
    let mut object = made;
    object["status"] = status;
    client.put(format!("{VERSIONS}/{name}/status"), &object).await.ok()
}

async fn lease(client: &Client, name: &str, labels: Value) {
    let spec = json!({"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600});
    let body = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    client.post(LEASES, &body).await.expect(201);
}

fn of_server() -> Value {
    json!({"apiserver.kubernetes.io/identity": "kube-apiserver"})
}

async fn watch(server: &TestServer, name: &str) -> Watch {
    let at = server.revision().await;
    server
        .watch(format!("{VERSIONS}?watch=1&resourceVersion={at}&fieldSelector=metadata.name%3D{name}"))
        .await
}

async fn storage_version_28_30_entries_of_unknown_servers_go(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    // An expired lease still counts; one without the label does not.
    lease(&server, "known", of_server()).await;
    lease(&server, "elsewhere", json!({"apiserver.kubernetes.io/identity": "other"})).await;
    create(&server, "example.com.kept", &[("known", "example.com/v1")]).await;
    for unknown in ["nobody", "elsewhere"] {
        let name = "example.com.gone";
        let mut watch = watch(&server, name).await;
        create(&server, name, &[(unknown, "example.com/v1")]).await;
        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            watch.expect_named(kind, name).await;
        }
    }
    // The collector had the chance to change these, and must not have.
    assert_eq!(entries(&version_of(&server, "example.com.kept").await), ["known=example.com/v1"]);
    assert_eq!(entries(&version_of(&server, "core.pods").await), [format!("{}=v1", id("rowplane-0"))]);
    server.stop().await;
}

async fn storage_version_29_what_is_left_decides_and_nothing_is_deleted(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let name = "example.com.things";
    for lease_name in ["a", "b"] {
        lease(&server, lease_name, of_server()).await;
    }
    let mut watch = watch(&server, name).await;
    create(&server, name, &[("a", "example.com/v1"), ("b", "example.com/v2")]).await;
    watch.expect("ADDED").await;
    watch.expect("MODIFIED").await;
    server.delete(format!("{LEASES}/a")).await.ok();
    let left = watch.expect("MODIFIED").await;
    assert_eq!(entries(&left), ["b=example.com/v2"]);
    assert_eq!(left["status"]["commonEncodingVersion"], "example.com/v2");
    assert_eq!(condition(&left).0, "True");
    server.delete(format!("{LEASES}/b")).await.ok();
    let gone = watch.expect("DELETED").await;
    assert!(rv(&gone) > rv(&left));
    server.stop().await;
}

async fn an_empty_object_stays(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    server.post(VERSIONS, &json!({"metadata": {"name": "example.com.empty"}})).await.expect(201);
    let mut watch = watch(&server, "example.com.other").await;
    create(&server, "example.com.other", &[("nobody", "example.com/v1")]).await;
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        watch.expect(kind).await;
    }
    assert!(names(&server.get(VERSIONS).await.ok()).contains(&"example.com.empty".to_owned()));
    server.stop().await;
}

/// Registrations and collections of the same server run concurrently and repeatedly: the server that registered last
/// has all its entries.
async fn storage_version_31_a_collection_never_takes_a_registration_away(setup: Setup) {
    let api = api_on(&setup.database).await;
    create_system_namespaces(&api).await.expect("namespaces");
    let (old, new) = (OwnRegistration::new("old", "1"), OwnRegistration::new("new", "1"));
    for _ in 0..10 {
        api.register(&old, &Extent::Whole).await.expect("register");
        let collect = async || api.withdraw(None, |_, _, server| server == "old").await.expect("collect");
        let register = async || api.register(&new, &Extent::Whole).await.expect("register");
        tokio::join!(collect(), register(), collect());
        assert_eq!(
            entry_count(&api) as i64,
            setup.database.number("SELECT COUNT(*) FROM storage_versions").await
        );
        assert_eq!(setup.database.number("SELECT COUNT(*) FROM servers WHERE id = 'new'").await, 1);
        api.withdraw(None, |_, _, server| server == "new").await.expect("collect");
        assert_eq!(entry_count(&api), 0);
    }
}

/// Makes the stored value of an object unreadable, directly in the database.
async fn damage(setup: &Setup, name: &str) {
    let garbage = if setup.is_sqlite() { "x'7b7b'" } else { "'\\x7b7b'" };
    setup.database.execute(&format!("UPDATE objects SET value = {garbage} WHERE name = '{name}'")).await;
}

/// A server with the StorageVersion `kept`, which has an entry of the server `known`, restarted after the object of
/// this name was damaged. Returns it once its collector has run.
async fn with_damaged(setup: &Setup, name: &str) -> TestServer {
    let server = setup.start_empty().await;
    lease(&server, "known", of_server()).await;
    create(&server, "example.com.kept", &[("known", "example.com/v1")]).await;
    server.stop().await;
    damage(setup, name).await;
    let server = setup.start_empty().await;
    let other = "example.com.other";
    let mut watch = watch(&server, other).await;
    create(&server, other, &[("nobody", "example.com/v1")]).await;
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        watch.expect_named(kind, other).await;
    }
    server
}

async fn a_lease_that_cannot_be_read_is_a_lease(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = with_damaged(&setup, "known").await;
    assert_eq!(entries(&version_of(&server, "example.com.kept").await), ["known=example.com/v1"]);
    let mut watch = watch(&server, "example.com.kept").await;
    server.delete_unread(&format!("{LEASES}/known")).await;
    for kind in ["MODIFIED", "DELETED"] {
        let event = watch.next().await.expect("an event");
        if event["type"] == "DELETED" {
            break;
        }
        assert_eq!(event["type"], kind);
    }
    server.stop().await;
}

async fn an_object_that_cannot_be_read_names_whom_it_named(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = with_damaged(&setup, "example.com.kept").await;
    assert_eq!(server.get(format!("{VERSIONS}/example.com.kept")).await.status, 500, "it is there");
    server.stop().await;
}
