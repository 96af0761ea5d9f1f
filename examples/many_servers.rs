//! The cost of a server in memory beside others in one process: time to start, and memory, empty and with objects.
//!
//! `cargo run --release --example many_servers [SERVERS [OBJECTS]]`

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use rowplane::Server;
use serde_json::json;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let servers = arguments.next().transpose()?.unwrap_or(100);
    let objects = arguments.next().transpose()?.unwrap_or(100);

    let before = resident();
    let (first, took) = start().await?;
    println!("first server:  ready in {:.1} ms, {:.1} MB", millis(took), resident() - before);

    let alone = resident();
    let (mut all, mut times) = (vec![first], Vec::new());
    for _ in 1..servers {
        let (server, took) = start().await?;
        times.push(took);
        all.push(server);
    }
    times.sort_unstable();
    if let (Some(median), Some(longest)) = (times.get(times.len() / 2), times.last()) {
        let each = (resident() - alone) / times.len() as f64;
        println!(
            "each other:    ready in {:.1} ms (median), {:.1} ms (longest), {each:.2} MB",
            millis(*median),
            millis(*longest)
        );
    }

    let empty = resident();
    let begun = Instant::now();
    try_join_all(all.iter().map(|server| fill(server, objects))).await?;
    let each = (resident() - empty) / servers as f64;
    println!("{objects} objects each: written in {:.0} ms, {each:.2} MB each", millis(begun.elapsed()));
    println!("{servers} servers:   {:.0} MB in all", resident());

    let begun = Instant::now();
    for server in all {
        server.stop().await;
    }
    println!("all stopped:   in {:.0} ms, {:.0} MB left", millis(begun.elapsed()), resident());
    Ok(())
}

async fn start() -> Result<(Server, Duration), Error> {
    let begun = Instant::now();
    let server = Server::builder().memory().start().await?;
    Ok((server, begun.elapsed()))
}

/// Creates ConfigMaps, and checks that the server has no others.
async fn fill(server: &Server, objects: usize) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::default_namespaced(Client::new(server.service(), "default"));
    for n in 0..objects {
        let object = json!({"metadata": {"name": format!("c-{n}")}, "data": {"text": "x".repeat(500)}});
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    }
    assert_eq!(api.list(&ListParams::default()).await?.items.len(), objects);
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The resident memory of this process in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()).unwrap_or_default()
        / 1024.0
}
