//! Small requests: N clients, each of which waits for its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use http::Method;

use crate::client::{Connection, JSON, MERGE_PATCH};
use crate::objects::{Maker, mark_patch};
use crate::report::{self, Table};
use crate::scratch::{self, Collection, Scratch};
use crate::stats::Latencies;
use crate::target::Target;
use crate::{Context, Result, etcd};

/// A client stops after this many requests even if its time is not over.
const MAX_REQUESTS_EACH: usize = 500_000;
/// The objects from which `get` chooses and that `list` lists.
const SHARED_OBJECTS: usize = 100;
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verb {
    Create,
    Update,
    Patch,
    Get,
    List,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Get => "get",
            Self::List => "list of 100",
        }
    }

    fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch)
    }
}

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let mut table = Table::new(
        format!("Small requests, {} bytes an object", context.args.object_bytes),
        &[
            "request",
            "clients",
            "per second",
            "p50 ms",
            "p99 ms",
            "max ms",
            "server CPU us each",
            "of etcd's puts",
        ],
    );
    let mut puts = Vec::new();
    if let Some(binaries) = &context.args.etcd {
        puts = etcd::puts(context, binaries).await?;
        for put in &puts {
            let mut row =
                vec!["etcd put".to_owned(), put.clients.to_string(), report::number(put.per_second)];
            row.extend(report::times(put.times));
            row.extend([report::option(put.cpu_micros), report::number(1.0)]);
            table.row(row);
        }
    }
    let maker = Arc::new(Maker::new(context.args.object_bytes));
    for &verb in &context.args.verbs {
        for &clients in &context.args.clients {
            eprintln!("{} with {clients} clients", verb.name());
            let collection =
                scratch.namespace(context, &format!("{verb:?}-{clients}").to_lowercase()).await?;
            if !verb.writes() {
                let bytes = context.args.object_bytes;
                scratch::fill(&context.target, &collection, SHARED_OBJECTS, bytes).await?;
            }
            let targets = std::slice::from_ref(&context.target);
            let mut outcome = measure(context, targets, verb, clients, &collection, &maker).await?;
            let put = puts.iter().find(|put| put.clients == clients && verb.writes());
            let per_second = outcome.per_second();
            let mut row = vec![verb.name().to_owned(), clients.to_string(), report::number(per_second)];
            row.extend(report::times(outcome.latencies.summary()));
            row.push(report::option(outcome.server_micros_each));
            row.push(report::option(put.map(|put| per_second / put.per_second)));
            table.row(row);
        }
    }
    Ok(vec![table])
}

pub struct Outcome {
    pub latencies: Latencies,
    pub elapsed: Duration,
    server_micros_each: Option<f64>,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Connections are distributed over the targets.
pub async fn measure(
    context: &Context,
    targets: &[Arc<Target>],
    verb: Verb,
    clients: usize,
    collection: &Collection,
    maker: &Arc<Maker>,
) -> Result<Outcome> {
    let mut connections = Vec::new();
    let each = clients.div_ceil(targets.len());
    for _ in 0..each.div_ceil(context.sharing(context.args.clients_per_connection)) {
        for target in targets {
            connections.push(Arc::new(Connection::open(target, context.protocol).await?));
        }
    }
    let mut workers = Vec::new();
    for id in 0..clients {
        let connection = connections[id % connections.len()].clone();
        let (collection, maker) = (collection.clone(), maker.clone());
        workers.push(Worker { verb, id, connection, collection, maker, sent: 0, version: String::new() });
    }
    for worker in &mut workers {
        worker.prepare().await?;
    }
    let (_, mut workers) = drive(workers, WARM_UP).await?;
    workers.sort_by_key(|worker| worker.id);
    let (start, cpu) = (Instant::now(), context.server.cpu());
    let (latencies, _) = drive(workers, context.seconds()).await?;
    let elapsed = start.elapsed();
    let server_micros_each = context.server.micros_each(cpu, latencies.len());
    Ok(Outcome { latencies, elapsed, server_micros_each })
}

async fn drive(workers: Vec<Worker>, duration: Duration) -> Result<(Latencies, Vec<Worker>)> {
    let deadline = Instant::now() + duration;
    let mut running = tokio::task::JoinSet::new();
    for mut worker in workers {
        running.spawn(async move {
            let mut latencies = Latencies::default();
            while latencies.len() < MAX_REQUESTS_EACH {
                let start = Instant::now();
                if start >= deadline {
                    break;
                }
                worker.step().await?;
                latencies.add_since(start);
            }
            Ok((latencies, worker))
        });
    }
    let (mut all, mut workers) = (Latencies::default(), Vec::new());
    while let Some(done) = running.join_next().await {
        let done: Result<_> = done?;
        let (latencies, worker) = done?;
        all.merge(latencies);
        workers.push(worker);
    }
    Ok((all, workers))
}

/// One client. A client that writes existing objects has an object of its own.
struct Worker {
    verb: Verb,
    id: usize,
    connection: Arc<Connection>,
    collection: Collection,
    maker: Arc<Maker>,
    sent: usize,
    version: String,
}

impl Worker {
    async fn prepare(&mut self) -> Result<()> {
        if matches!(self.verb, Verb::Update | Verb::Patch) {
            let body = self.maker.object(&self.own_name(), "", "0");
            let create = self.connection.call(Method::POST, &self.collection.path, Some((JSON, body)));
            self.version = create.await?.success()?.resource_version()?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<()> {
        self.sent += 1;
        let mark = self.sent.to_string();
        let (method, path, body) = match self.verb {
            Verb::Create => {
                let name = format!("c{}-{mark}", self.id);
                (
                    Method::POST,
                    self.collection.path.to_string(),
                    Some((JSON, self.maker.object(&name, "", &mark))),
                )
            }
            Verb::Update => {
                let name = self.own_name();
                let body = self.maker.versioned(&name, "", &mark, Some(&self.version));
                (Method::PUT, self.collection.item(&name), Some((JSON, body)))
            }
            Verb::Patch => {
                let path = self.collection.item(&self.own_name());
                (Method::PATCH, path, Some((MERGE_PATCH, mark_patch(&mark))))
            }
            Verb::Get => {
                let name = scratch::name((self.id + self.sent * 7) % SHARED_OBJECTS);
                (Method::GET, self.collection.item(&name), None)
            }
            Verb::List => (Method::GET, self.collection.path.to_string(), None),
        };
        let answer = self.connection.call(method, &path, body).await?.success()?;
        if self.verb == Verb::Update {
            self.version = answer.resource_version()?;
        }
        Ok(())
    }

    fn own_name(&self) -> String {
        format!("own-{}", self.id)
    }
}
