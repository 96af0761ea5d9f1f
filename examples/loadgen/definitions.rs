//! CustomResourceDefinitions of real size, written by several clients at once: what each one costs as they become many,
//! and, with a second server, how soon they can be used there.

mod schemas;
mod shapes;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use tokio::task::JoinSet;

use self::shapes::Definition;
use crate::client::{Answer, Connection, JSON, Protocol};
use crate::report::{self, Table};
use crate::scratch::Scratch;
use crate::stats::Latencies;
use crate::target::Target;
use crate::{Context, Result};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What definitions cost is told for each of so many parts of them, in the order in which they were written.
const PARTS: usize = 4;
/// How often a server that establishes definitions later is asked.
const POLL: Duration = Duration::from_millis(5);
/// After the last definition, the server may still be at work for others; its memory is read then.
const REST: Duration = Duration::from_secs(5);
/// How many definitions are used on another server.
const ELSEWHERE: usize = 200;

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let mut cost = Table::new(
        format!("Definitions of 30 KB from {} clients", context.args.definers),
        &[
            "definitions",
            "seconds",
            "POST p50 ms",
            "p99 ms",
            "max ms",
            "until established p99 ms",
            "server CPU ms each",
            "resident MB",
            "KB each",
        ],
    );
    let mut use_of = Table::new(
        "From a definition's answer to its first use, one after the other",
        &["what", "p50 ms", "p99 ms", "max ms", "failed at first"],
    );
    for &count in &context.args.definitions {
        let family = format!("d{count}p{}", std::process::id());
        define(context, scratch, &family, count, &mut cost).await?;
    }
    if let Some(second) = &context.second {
        use_there(context, scratch, &context.target, "at the same server", &mut use_of).await?;
        use_there(context, scratch, second, "at another server", &mut use_of).await?;
    }
    Ok([cost, use_of].into_iter().filter(|table| !table.is_empty()).collect())
}

/// Writes this many definitions, part by part.
async fn define(
    context: &Context,
    scratch: &mut Scratch,
    family: &str,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    eprintln!("making {count} definitions");
    let definitions: Vec<_> = (0..count).map(|number| Arc::new(Definition::new(family, number))).collect();
    scratch.others(definitions.iter().map(|definition| format!("{DEFINITIONS}/{}", definition.name)));
    let mut connections = Vec::new();
    for _ in 0..context.args.definers {
        connections.push(Arc::new(Connection::open(&context.target, context.protocol).await?));
    }
    let (start, cpu, before) = (Instant::now(), context.server.cpu(), context.server.resident_mb());
    let mut all = Written::default();
    for part in definitions.chunks(count.div_ceil(PARTS).max(1)) {
        let (start, cpu) = (Instant::now(), context.server.cpu());
        let mut written = write(&connections, part).await?;
        let micros = context.server.micros_each(cpu, part.len());
        let upto = all.posts.len() + part.len();
        let title = format!("{} to {upto}", all.posts.len() + 1);
        table.row(row(title, start.elapsed(), &mut written, micros, [None; 2]));
        all.merge(written);
    }
    let elapsed = start.elapsed();
    tokio::time::sleep(REST).await;
    let micros = context.server.micros_each(cpu, count);
    let after = context.server.resident_mb();
    let each = before.zip(after).map(|(before, after)| (after - before) * 1024.0 / count as f64);
    table.row(row(format!("all {count}"), elapsed, &mut all, micros, [after, each]));
    Ok(())
}

fn row(
    title: String,
    elapsed: Duration,
    written: &mut Written,
    micros: Option<f64>,
    memory: [Option<f64>; 2],
) -> Vec<String> {
    let mut row = vec![title, report::number(elapsed.as_secs_f64())];
    row.extend(report::times(written.posts.summary()));
    row.push(report::number(written.established.summary().p99));
    row.push(report::option(micros.map(|micros| micros / 1000.0)));
    row.extend(memory.map(report::option));
    row
}

/// How long the POSTs took, and how long it took from sending them until the definitions were established.
#[derive(Default)]
struct Written {
    posts: Latencies,
    established: Latencies,
}

impl Written {
    fn merge(&mut self, other: Self) {
        self.posts.merge(other.posts);
        self.established.merge(other.established);
    }
}

async fn write(connections: &[Arc<Connection>], definitions: &[Arc<Definition>]) -> Result<Written> {
    let next = Arc::new(AtomicUsize::new(0));
    let definitions: Arc<[Arc<Definition>]> = definitions.into();
    let mut running = JoinSet::new();
    for connection in connections {
        let (connection, definitions, next) = (connection.clone(), definitions.clone(), next.clone());
        running.spawn(async move {
            let mut written = Written::default();
            while let Some(definition) = definitions.get(next.fetch_add(1, Ordering::Relaxed)) {
                let start = Instant::now();
                let answer = post(&connection, DEFINITIONS, &definition.body).await?.success()?;
                written.posts.add_since(start);
                until_established(&connection, definition, answer).await?;
                written.established.add_since(start);
            }
            Result::<_>::Ok(written)
        });
    }
    let mut all = Written::default();
    while let Some(written) = running.join_next().await {
        all.merge(written??);
    }
    Ok(all)
}

async fn post(connection: &Connection, path: &str, body: &bytes::Bytes) -> Result<Answer> {
    connection.call(Method::POST, path, Some((JSON, body.clone()))).await
}

async fn until_established(
    connection: &Connection,
    definition: &Definition,
    mut answer: Answer,
) -> Result<()> {
    while !is_established(&answer)? {
        tokio::time::sleep(POLL).await;
        answer = connection.get(&format!("{DEFINITIONS}/{}", definition.name)).await?;
    }
    Ok(())
}

fn is_established(answer: &Answer) -> Result<bool> {
    let object: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(conditions.iter().any(|found| found["type"] == "Established" && found["status"] == "True"))
}

/// From the answer to a definition's POST until a server has its version in discovery, and until that server has created
/// an object of it.
async fn use_there(
    context: &Context,
    scratch: &mut Scratch,
    there: &Arc<Target>,
    place: &str,
    table: &mut Table,
) -> Result<()> {
    let family = format!("u{}p{}", place.len(), std::process::id());
    let definitions: Vec<_> = (0..ELSEWHERE).map(|number| Definition::new(&family, number)).collect();
    for definition in &definitions {
        scratch.others([
            format!("{}/first", definition.collection),
            format!("{DEFINITIONS}/{}", definition.name),
        ]);
    }
    let here = Connection::open(&context.target, Protocol::Http1).await?;
    let there = Connection::open(there, Protocol::Http1).await?;
    let mut uses = [Use::default(), Use::default()];
    for (number, definition) in definitions.iter().enumerate() {
        post(&here, DEFINITIONS, &definition.body).await?.success()?;
        let start = Instant::now();
        let [discovered, created] = &mut uses;
        // Each definition is used in one way: what the first request sets off, the second one finds done.
        let (used, method, path, body) = match number % 2 {
            0 => (discovered, Method::GET, &definition.version_path, None),
            _ => (created, Method::POST, &definition.collection, Some(&definition.object)),
        };
        used.late += tries(&there, method, path, body).await?;
        used.latencies.add_since(start);
    }
    for (what, mut used) in ["found in discovery", "an object created"].into_iter().zip(uses) {
        let mut row = vec![format!("{what} {place}")];
        let of = used.latencies.len();
        row.extend(report::times(used.latencies.summary()));
        row.push(format!("{} of {of}", used.late));
        table.row(row);
    }
    Ok(())
}

/// Uses of new definitions, and how many of them did not succeed at once.
#[derive(Default)]
struct Use {
    latencies: Latencies,
    late: usize,
}

/// Repeats a request until what it needs is there. Tells whether it failed at first.
async fn tries(
    connection: &Connection,
    method: Method,
    path: &str,
    body: Option<&bytes::Bytes>,
) -> Result<usize> {
    let mut late = 0;
    loop {
        let sent = body.map(|body| (JSON, body.clone()));
        let answer = connection.call(method.clone(), path, sent).await?;
        if answer.status != StatusCode::NOT_FOUND && answer.status != StatusCode::SERVICE_UNAVAILABLE {
            answer.success()?;
            return Ok(late);
        }
        late = 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
