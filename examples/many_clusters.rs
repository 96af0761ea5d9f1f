//! The cost of empty clusters in memory in one process: time and memory each, and which parts the memory is of.
//!
//! `cargo run --release --example many_clusters [CLUSTERS [port]]`; with `port` they share a listener, so that each has CAs and an
//! admin of its own.

use std::sync::Arc;
use std::time::Instant;

use rowplane::api::admission::{Chain, Settings};
use rowplane::api::concerns;
use rowplane::auth::pki::temporary_token_key;
use rowplane::cache::Cache;
use rowplane::codec::object::Draft;
use rowplane::flow_control::FlowControl;
use rowplane::http::router::Place;
use rowplane::kinds::built_in;
use rowplane::metrics::Metrics;
use rowplane::runtime::Runtime;
use rowplane::schema::registry::Registry;
use rowplane::server::Builder;
use rowplane::storage::{ResourceId, Store, memory};
use rowplane::{Process, Server};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let clusters = arguments.next().map(|argument| argument.parse()).transpose()?.unwrap_or(1000);
    let has_port = arguments.next().is_some_and(|argument| argument == "port");
    // What is made once: constants, the threads of the runtime.
    drop(Server::builder().memory().start().await?);

    whole(clusters, "all", has_port, |builder| builder).await?;
    whole(clusters, "without controllers", has_port, Builder::without_controllers).await?;
    parts(clusters.min(200)).await
}

/// Starts clusters one after another, and stops them.
async fn whole(
    clusters: usize,
    name: &str,
    has_port: bool,
    settings: fn(Builder) -> Builder,
) -> Result<(), Error> {
    let process = match has_port {
        true => Process::builder().listen(([127, 0, 0, 1], 0).into()).start().await?,
        false => Process::builder().start().await?,
    };
    let (before, begun) = (held(), Instant::now());
    let mut all = Vec::new();
    for n in 0..clusters {
        let place = Place::Prefix(format!("/clusters/c{n}"));
        all.push(process.add(&format!("c{n}"), place, settings(Server::builder().memory())).await?);
    }
    let (took, each) = (begun.elapsed().as_secs_f64(), (held() - before) / clusters as f64);
    println!("{clusters} clusters, {name}: {took:.1} s, {each:.0} KiB each");
    let begun = Instant::now();
    for server in all {
        server.stop().await;
    }
    println!(
        "  stopped in {:.1} s, {:.0} MiB left",
        begun.elapsed().as_secs_f64(),
        (held() - before) / 1024.0
    );
    process.stop().await;
    Ok(())
}

/// Makes many of each part.
async fn parts(count: usize) -> Result<(), Error> {
    let runtime = Runtime::default();
    let registry = || Arc::new(Registry::new(built_in::definitions()));
    let shared = registry();
    let names: Vec<_> = shared.stored().map(|(name, _)| name.clone()).collect();
    let ids: Vec<ResourceId> = memory::open().resource_ids(&names).await?;
    let by_name = names.iter().cloned().zip(ids.iter().copied()).collect();
    let resources = || {
        rowplane::api::catalog::Served::new(
            shared.clone(),
            &by_name,
            Default::default(),
            concerns::of_definition,
        )
    };
    println!("parts, {count} of each:");
    each("metrics", count, Metrics::default);
    each("flow control", count, || FlowControl::new(600, &runtime));
    each("definitions of built-in kinds", count, registry);
    each("their resources", count, resources);
    each("admission", count, || Chain::new(&Settings::default(), &runtime.metrics).ok());
    each("the key of tokens, as PEM", count, || temporary_token_key().ok());
    let before = held();
    let mut stores = Vec::new();
    for _ in 0..count {
        let backend = memory::open();
        backend.resource_ids(&names).await?;
        let mark = Arc::default();
        let decode = Draft::parse;
        let (cache, sink) =
            Cache::start(backend.clone(), decode, &ids, Arc::clone(&mark), &runtime, &Default::default())
                .await?;
        stores.push((Store::start(backend, Some(sink), mark, &runtime), cache));
    }
    print("store and cache", before, count);
    Ok(())
}

fn each<T>(name: &str, count: usize, make: impl Fn() -> T) {
    let before = held();
    let all: Vec<T> = (0..count).map(|_| make()).collect();
    print(name, before, count);
    drop(all);
}

fn print(name: &str, before: f64, count: usize) {
    println!("  {name}: {:.1} KiB", (held() - before) / count as f64);
}

/// The memory of this process that is not of files, in KiB.
fn held() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or_default()
}
