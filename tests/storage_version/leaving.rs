//! A server that is stopped removes all traces of itself; one that is killed is detected by its lease.

use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::rest::Client;
use crate::support::server::{Setup, names, rv};
use crate::{LEASES, OF_SERVERS, VERSIONS, entries, id, on_host};

on_both_databases! {
    a_server_that_stops_withdraws_everything,
}

async fn a_server_that_stops_withdraws_everything(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let at = server.revision().await;
    let mut leases = server.watch(format!("{LEASES}?watch=1&resourceVersion={at}&{OF_SERVERS}")).await;
    assert_eq!(names(&server.get(format!("{LEASES}?{OF_SERVERS}")).await.ok()), [id("rowplane-0")]);
    server.stop().await;
    // The watch has ended with its server.
    while leases.next().await.is_some() {}

    for table in ["servers", "storage_versions"] {
        assert_eq!(setup.database.number(&format!("SELECT COUNT(*) FROM {table}")).await, 0, "{table}");
    }
    setup.identity = None;
    let server = setup.start_empty().await;
    assert_eq!(names(&server.get(VERSIONS).await.ok()), [""; 0]);
    assert_eq!(names(&server.get(format!("{LEASES}?{OF_SERVERS}")).await.ok()), [""; 0]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_others_see_it_go_at_once_and_as_one_change() {
    let mut setup = Setup::new(Database::postgres().await);
    on_host(&mut setup, "rowplane-0");
    let stays = setup.start_empty().await;
    on_host(&mut setup, "rowplane-1");
    let leaves = setup.start_empty().await;
    let at = stays.revision().await;
    let mut versions = stays.watch(format!("{VERSIONS}?watch=1&resourceVersion={at}")).await;
    let count = names(&stays.get(VERSIONS).await.ok()).len();
    leaves.stop().await;
    let mut told = Vec::new();
    for _ in 0..count {
        let version = versions.expect("MODIFIED").await;
        assert_eq!(entries(&version).len(), 1, "{version}");
        assert!(version["status"]["commonEncodingVersion"].is_string());
        told.push(rv(&version));
    }
    let whole = told.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(whole, "no other write came between: {told:?}");
    assert_eq!(names(&stays.get(format!("{LEASES}?{OF_SERVERS}")).await.ok()), [id("rowplane-0")]);
    stays.stop().await;
}

/// The controllers of a killed server are taken over, and its entries are collected with its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_is_replaced() {
    let schema = Schema::create().await;
    let one = Installation::postgres(&schema);
    let other = one.beside().with(&format!("--datastore={}", schema.url()));
    let first = one.start().await;
    let second = other.start().await;
    let client = other.client().await;
    let holder = leader(&client).await;
    let (dead, alive) = match holder.starts_with(&server_id(&one)) {
        true => ((first, &one), (second, &other)),
        false => ((second, &other), (first, &one)),
    };
    let client = alive.1.client().await;
    dead.0.kill().await;
    // Garbage collection works again: deleting the lease removes the entries, by the present leader.
    let lease = format!("{LEASES}/{}", server_id(dead.1));
    client.delete(&lease, None).await.unwrap().ok();
    let path = format!("{VERSIONS}/core.pods");
    let at = rv(&client.get(&path).await.unwrap().ok());
    let mut watch = client.watch(&format!("{VERSIONS}?watch=1&resourceVersion={at}")).await.unwrap();
    loop {
        let event = watch.event().await;
        if event["object"]["metadata"]["name"] == "core.pods" {
            assert_eq!(entries(&event["object"]), [format!("{}=v1", server_id(alive.1))]);
            break;
        }
    }
    assert!(leader(&client).await.starts_with(&server_id(alive.1)));
    drop(alive.0);
}

fn server_id(installation: &Installation) -> String {
    id(&format!("server-{}", installation.port()))
}

async fn leader(client: &Client) -> String {
    let lease: Value = client.get(&format!("{LEASES}/rowplane-controllers")).await.unwrap().ok();
    // Clients that read protobuf could not list leases otherwise.
    assert_eq!((&lease["apiVersion"], &lease["kind"]), (&json!("coordination.k8s.io/v1"), &json!("Lease")));
    lease["spec"]["holderIdentity"].as_str().expect("a holder").to_owned()
}
