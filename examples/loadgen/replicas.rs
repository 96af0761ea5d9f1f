//! Two servers on one database: how much the second one slows the first down, and how soon it sees the first one's
//! writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use tokio::task::JoinSet;

use crate::client::{Connection, MERGE_PATCH};
use crate::objects::{Maker, mark_patch};
use crate::report::{self, Table};
use crate::scratch::{self, Collection, Scratch};
use crate::stats::Latencies;
use crate::target::Target;
use crate::verbs::{self, Verb};
use crate::{Context, Result, watches};

/// Runs with one server and with both alternate, so that both meet the same conditions of the machine.
const TURNS: usize = 3;
const LISTERS: usize = 16;
const LISTED: usize = 100;
const WRITES_PER_SECOND: u64 = 1000;
const QUESTIONS: &str = "rowplane_clock_questions_total";

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let second = context.second.clone().ok_or("the scenario `replicas` needs --second-kubeconfig")?;
    Ok(vec![
        throughput(context, scratch, &second).await?,
        latency(context, scratch, &second).await?,
        lists(context, scratch, &second).await?,
    ])
}

async fn throughput(context: &Context, scratch: &mut Scratch, second: &Arc<Target>) -> Result<Table> {
    let mut table = Table::new(
        format!("Creates at one server and at both, {} bytes an object", context.args.object_bytes),
        &["clients", "creates/s at one", "p99 ms", "at both", "p99 ms", "both of one"],
    );
    let maker = Arc::new(Maker::new(context.args.object_bytes));
    let one = [context.target.clone()];
    let both = [context.target.clone(), second.clone()];
    for &clients in &context.args.clients {
        let (mut rates, mut times) = ([0.0; 2], [Latencies::default(), Latencies::default()]);
        for turn in 0..TURNS {
            for (side, targets) in [&one[..], &both[..]].into_iter().enumerate() {
                let purpose = format!("replicas-{clients}-{turn}-{side}");
                let collection = scratch.namespace(context, &purpose).await?;
                let outcome =
                    verbs::measure(context, targets, Verb::Create, clients, &collection, &maker).await?;
                eprintln!(
                    "{} server(s), {clients} clients: {}/s",
                    side + 1,
                    report::number(outcome.per_second())
                );
                rates[side] += outcome.per_second() / TURNS as f64;
                times[side].merge(outcome.latencies);
            }
        }
        let [at_one, at_both] = rates.map(report::number);
        let [one_p99, both_p99] = times.map(|mut times| report::number(times.summary().p99));
        let ratio = report::number(rates[1] / rates[0]);
        table.row(vec![clients.to_string(), at_one, one_p99, at_both, both_p99, ratio]);
    }
    Ok(table)
}

async fn latency(context: &Context, scratch: &mut Scratch, second: &Arc<Target>) -> Result<Table> {
    let mut table =
        Table::new("From sending a write to one server to its event at the other", &watches::LATENCY_HEADERS);
    let collection = scratch.namespace(context, "replicas-latency").await?;
    table.row(watches::write_to_watch(context, second, &collection).await?);
    Ok(table)
}

/// Consistent lists at the second server while the first one writes.
async fn lists(context: &Context, scratch: &mut Scratch, second: &Arc<Target>) -> Result<Table> {
    let mut table = Table::new(
        format!("{LISTERS} clients list {LISTED} objects at one server while the other writes"),
        &[
            "writes/s at the other",
            "lists/s",
            "p50 ms",
            "p99 ms",
            "max ms",
            "questions to the database per list",
        ],
    );
    let collection = scratch.namespace(context, "replicas-lists").await?;
    scratch::fill(&context.target, &collection, LISTED, context.args.object_bytes).await?;
    for writes in [0, WRITES_PER_SECOND] {
        let before = questions(second).await?;
        let mut outcome = list(context, second, &collection, writes).await?;
        let asked = questions(second).await? - before;
        let lists = outcome.latencies.len() as f64;
        let mut row = vec![report::number(outcome.written), report::number(lists / outcome.seconds)];
        row.extend(report::times(outcome.latencies.summary()));
        row.push(report::number(asked / lists));
        table.row(row);
    }
    Ok(table)
}

struct Listed {
    latencies: Latencies,
    seconds: f64,
    /// Per second.
    written: f64,
}

async fn list(
    context: &Context,
    second: &Arc<Target>,
    collection: &Collection,
    writes: u64,
) -> Result<Listed> {
    let stop = Arc::new(AtomicBool::new(false));
    let writer = (writes > 0)
        .then(|| tokio::spawn(write(context.target.clone(), collection.clone(), writes, stop.clone())));
    let deadline = Instant::now() + context.seconds();
    let start = Instant::now();
    let mut listers = JoinSet::new();
    for _ in 0..LISTERS {
        let connection = Connection::open(second, context.protocol).await?;
        let path = collection.path.clone();
        listers.spawn(async move {
            let mut latencies = Latencies::default();
            while Instant::now() < deadline {
                let start = Instant::now();
                connection.get(&path).await?;
                latencies.add_since(start);
            }
            Result::<_>::Ok(latencies)
        });
    }
    let mut latencies = Latencies::default();
    while let Some(lister) = listers.join_next().await {
        latencies.merge(lister??);
    }
    let seconds = start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let written = match writer {
        Some(writer) => writer.await?? as f64 / seconds,
        None => 0.0,
    };
    Ok(Listed { latencies, seconds, written })
}

/// Writes at a steady rate until it is told to stop. Returns the number of writes.
async fn write(
    target: Arc<Target>,
    collection: Collection,
    rate: u64,
    stop: Arc<AtomicBool>,
) -> Result<usize> {
    let connection = Arc::new(Connection::open(&target, crate::client::Protocol::Http2).await?);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate as u32);
    let mut sent = JoinSet::new();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let (connection, path) = (connection.clone(), collection.item(&scratch::name(count % LISTED)));
        let patch = mark_patch(&count.to_string());
        sent.spawn(async move {
            connection.call(Method::PATCH, &path, Some((MERGE_PATCH, patch))).await?.success()
        });
        count += 1;
    }
    while let Some(answer) = sent.join_next().await {
        answer??;
    }
    Ok(count)
}

/// How often a server has queried its database for the newest revision; 0 before the first query.
async fn questions(target: &Arc<Target>) -> Result<f64> {
    let connection = Connection::open(target, crate::client::Protocol::Http1).await?;
    let answer = connection.get("/metrics").await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(QUESTIONS)?.trim().parse().ok());
    Ok(line.unwrap_or(0.0))
}
