//! The cost of empty clusters in memory in one process: time and memory each, and which parts the memory is of.
//!
//! `cargo run --release --example many_clusters [CLUSTERS [PART]]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowplane::api::admission::{Chain, Settings};
use rowplane::api::concerns;
use rowplane::cache::{Cache, LoadProgress};
use rowplane::codec::object::Draft;
use rowplane::flow_control::FlowControl;
use rowplane::http::router::Place;
use rowplane::kinds::built_in;
use rowplane::metrics::Metrics;
use rowplane::runtime::Runtime;
use rowplane::schema::registry::Registry;
use rowplane::server::Builder;
use rowplane::storage::{HighWaterMark, ResourceId, Store, memory};
use rowplane::{Process, Server};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The measurements, each made by a process of its own: memory that was freed is used again, and would hide the next part.
const RUNS: [&str; 10] = [
    "clusters",
    "clusters without controllers",
    "clusters without controllers behind a port",
    "metrics",
    "flow control",
    "definitions of built-in kinds",
    "resources of built-in kinds",
    "admission",
    "database in memory",
    "store and cache",
];

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map(|argument| argument.parse()).transpose()?.unwrap_or(1000);
    if let Some(run) = arguments.next() {
        return measure(&run, count);
    }
    for run in RUNS {
        let child =
            std::process::Command::new(std::env::current_exe()?).arg(count.to_string()).arg(run).status()?;
        if !child.success() {
            return Err(format!("{run} has failed").into());
        }
    }
    Ok(())
}

#[tokio::main]
async fn measure(run: &str, count: usize) -> Result<(), Error> {
    match run {
        "clusters" => whole(run, count, false, |builder| builder).await,
        "clusters without controllers" => whole(run, count, false, Builder::without_controllers).await,
        "clusters without controllers behind a port" => {
            whole(run, count, true, Builder::without_controllers).await
        }
        part => parts(part, count.min(200)).await,
    }
}

/// How long all clusters do nothing but what they do by themselves.
const IDLE: Duration = Duration::from_secs(10);

/// Starts clusters one after another, and stops them.
async fn whole(
    run: &str,
    clusters: usize,
    has_port: bool,
    settings: fn(Builder) -> Builder,
) -> Result<(), Error> {
    // What is made once: constants, the threads of the runtime.
    drop(Server::builder().memory().start().await?);
    let process = match has_port {
        true => Process::builder().listen(([127, 0, 0, 1], 0).into()).start().await?,
        false => Process::builder().start().await?,
    };
    let (before, begun, computed_before) = (held(), Instant::now(), computed());
    let mut all = Vec::new();
    for n in 0..clusters {
        let place = Place::Prefix(format!("/clusters/c{n}"));
        all.push(process.add(&format!("c{n}"), place, settings(Server::builder().memory())).await?);
    }
    let (took, each) = (begun.elapsed().as_secs_f64(), (held() - before) / clusters as f64);
    let computed_each = (computed() - computed_before) * 1000.0 / clusters as f64;
    println!("{clusters} {run}: {took:.1} s, {computed_each:.1} ms of processor and {each:.0} KiB each");
    let before_rest = computed();
    tokio::time::sleep(IDLE).await;
    let idle = (computed() - before_rest) / IDLE.as_secs_f64();
    println!("  idle: {:.1} % of a processor", idle * 100.0);
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
async fn parts(part: &str, count: usize) -> Result<(), Error> {
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
    drop(resources());
    match part {
        "metrics" => each(part, count, Metrics::default),
        "flow control" => each(part, count, || FlowControl::new(600, &runtime)),
        "definitions of built-in kinds" => each(part, count, registry),
        "resources of built-in kinds" => each(part, count, resources),
        "admission" => each(part, count, || Chain::new(&Settings::default(), &runtime.metrics).ok()),
        "database in memory" => {
            let all = (0..count).map(|_| memory::open()).collect::<Vec<_>>();
            let before = held();
            for backend in &all {
                backend.resource_ids(&names).await?;
            }
            print(part, before, count);
        }
        "store and cache" => {
            let (before, mut all) = (held(), Vec::new());
            for _ in 0..count {
                let (backend, mark) = (memory::open(), Arc::<HighWaterMark>::default());
                let progress = LoadProgress::default();
                let cache =
                    Cache::start(backend.clone(), Draft::parse, &ids, mark.clone(), &runtime, &progress);
                let (cache, sink) = cache.await?;
                all.push((Store::start(backend, Some(sink), mark, &runtime), cache));
            }
            print(part, before, count);
        }
        other => return Err(format!("{other:?} is none of {RUNS:?}").into()),
    }
    Ok(())
}

fn each<T>(name: &str, count: usize, make: impl Fn() -> T) {
    let before = held();
    let all: Vec<T> = (0..count).map(|_| make()).collect();
    print(name, before, count);
    drop(all);
}

fn print(name: &str, before: f64, count: usize) {
    println!("  {name}: {:.1} KiB each", (held() - before) / count as f64);
}

/// The processor time that this process has used, in seconds: a hundredth is what Linux counts in.
fn computed() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The memory of this process that is not of files, in KiB.
fn held() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or_default()
}
