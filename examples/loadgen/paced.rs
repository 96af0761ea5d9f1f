//! Small requests at a steady rate that does not depend on the answers: what one user feels beside others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use tokio::time::MissedTickBehavior;

use crate::client::{Connection, JSON};
use crate::objects::Maker;
use crate::report::{self, Table};
use crate::scratch::{self, Collection, Scratch};
use crate::stats::Latencies;
use crate::verbs::Verb;
use crate::{Context, Result};

const CONNECTIONS: usize = 2;
/// The objects from which `get` chooses and that `list` lists.
const SHARED_OBJECTS: usize = 100;
/// Requests before those that are measured.
const WARM_UP: usize = 20;

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let rate = context.args.rate.max(1);
    let mut table = Table::new(
        format!("Small requests at {rate} per second, {} bytes an object", context.args.object_bytes),
        &["request", "answered", "p50 ms", "p99 ms", "max ms"],
    );
    let maker = Maker::new(context.args.object_bytes);
    for &verb in &context.args.verbs {
        eprintln!("{verb:?} at {rate} per second");
        let collection = scratch.namespace(context, &format!("{verb:?}-paced").to_lowercase()).await?;
        if matches!(verb, Verb::Get | Verb::List) {
            scratch::fill(&context.target, &collection, SHARED_OBJECTS, context.args.object_bytes).await?;
        }
        let mut latencies = measure(context, verb, &collection, &maker).await?;
        let mut row = vec![format!("{verb:?}").to_lowercase(), latencies.len().to_string()];
        row.extend(report::times(latencies.summary()));
        table.row(row);
    }
    Ok(vec![table])
}

/// Sends each request when its time has come, whether or not those before it are answered. The time of an answer counts
/// from when its request was sent, so that a late timer of this process is not taken for the server's.
async fn measure(context: &Context, verb: Verb, collection: &Collection, maker: &Maker) -> Result<Latencies> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Arc::new(Connection::open(&context.target, context.protocol).await?));
    }
    let count = WARM_UP + (context.seconds().as_secs() * context.args.rate) as usize;
    let mut times = tokio::time::interval(Duration::from_secs(1) / context.args.rate.max(1) as u32);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..count {
        times.tick().await;
        let connection = connections[number % CONNECTIONS].clone();
        let (method, path, body) = request(verb, number, collection, maker)?;
        running.spawn(async move {
            let start = Instant::now();
            let answer = connection.call(method, &path, body).await?;
            let taken = start.elapsed();
            answer.success()?;
            Ok::<_, crate::Error>((number, taken))
        });
    }
    let mut latencies = Latencies::default();
    while let Some(done) = running.join_next().await {
        let (number, taken) = done??;
        if number >= WARM_UP {
            latencies.add(taken);
        }
    }
    Ok(latencies)
}

type Sent = (Method, String, Option<(&'static str, Bytes)>);

fn request(verb: Verb, number: usize, collection: &Collection, maker: &Maker) -> Result<Sent> {
    let name = scratch::name(number * 7 % SHARED_OBJECTS);
    Ok(match verb {
        Verb::Get => (Method::GET, collection.item(&name), None),
        Verb::List => (Method::GET, collection.path.to_string(), None),
        Verb::Create => {
            let body = maker.object(&format!("paced-{number}"), "", "0");
            (Method::POST, collection.path.to_string(), Some((JSON, body)))
        }
        Verb::Update | Verb::Patch => return Err("paced requests are get, list and create".into()),
    })
}
