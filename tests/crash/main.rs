//! Servers are killed, and their database connections cut, at random moments under load. Answered writes must persist,
//! refused ones must not exist, unanswered ones must exist completely or not at all, and a resumed watch must report
//! everything.
//!
//! `ROWPLANE_TEST_ROUNDS=20 ./test --test crash` disturbs 20 times. The seed, printed and set as `ROWPLANE_TEST_SEED`,
//! decides what clients do; the timing depends on the machine.

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod history;
mod load;
mod power;

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::history::{History, Listing};
use crate::load::{CONFIGMAPS, Load, NAMESPACES, RECORDS, Resource, list, write_sentinel};
use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const WRITERS: u64 = 8;
/// How many lists at past revisions are compared with the history at the end.
const PAST_LISTS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_server_killed() {
    run(Installation::sqlite(), &CONFIGMAPS, Disturbance::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_server_of_custom_objects_killed() {
    run(Installation::sqlite(), &RECORDS, Disturbance::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_server_killed() {
    let schema = Schema::create().await;
    run(Installation::postgres(&schema), &CONFIGMAPS, Disturbance::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_server_of_custom_objects_killed() {
    let schema = Schema::create().await;
    run(Installation::postgres(&schema), &RECORDS, Disturbance::Kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_connections_cut() {
    let schema = Schema::create().await;
    run(Installation::postgres(&schema), &CONFIGMAPS, Disturbance::CutConnections(&schema)).await;
}

enum Disturbance<'a> {
    Kill,
    CutConnections(&'a Schema),
}

async fn run(installation: Installation, resource: &'static Resource, disturbance: Disturbance<'_>) {
    let seed = number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let installation = installation.with("--compaction-interval=0").without_heartbeats();

    let mut server = installation.start().await;
    let client = installation.client().await;
    make_namespaces(&client).await;
    if !resource.is_built_in() {
        client.post(definitions::DEFINITIONS, &definitions::records()).await.unwrap().ok();
    }
    let start = revision(&client.get(&resource.all()).await.unwrap().ok());

    let load = Load::start(&client, resource, seed, start, WRITERS);
    for _ in 0..number("ROWPLANE_TEST_ROUNDS").unwrap_or(3) {
        load.more_answers(random.random_range(50..400)).await;
        // Waits, so that the disturbance does not always follow an answer directly.
        tokio::time::sleep(Duration::from_micros(random.random_range(0..5000))).await;
        match disturbance {
            Disturbance::Kill => {
                server.kill().await;
                load.server_is_down();
                server = installation.start().await;
                load.server_is_up();
            }
            Disturbance::CutConnections(schema) => assert!(schema.kill_connections().await > 0),
        }
    }
    load.more_answers(100).await;

    let history = finish(load, &client, resource, start).await;
    println!("{}", history.summary());
    history.check();
    for _ in 0..PAST_LISTS {
        let at = random.random_range(start..history.end());
        let past = format!("?resourceVersion={at}&resourceVersionMatch=Exact");
        history.check_listing(&Listing { floor: at, ..list(&client, resource, &past).await.unwrap() });
    }
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}

/// Ends the load once the watcher has seen everything.
async fn finish(mut load: Load, client: &Client, resource: &Resource, start: u64) -> History {
    let (writes, mut listings) = load.stop_writing().await;
    write_sentinel(client, resource).await;
    let events = load.watched().await;
    listings.push(list(client, resource, "").await.expect("the last list"));
    History { alone: resource.is_built_in(), start, writes, listings, events }
}

async fn make_namespaces(client: &Client) {
    for name in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        client.post("/api/v1/namespaces", &namespace).await.unwrap().ok();
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number")))
}
