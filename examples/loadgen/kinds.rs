//! Writes of typed objects: what defaults, validation, ownership and protobuf at rest cost beside ConfigMaps.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::ValueEnum;
use http::Method;

use crate::client::{APPLY, Connection, JSON};
use crate::report::{self, Table};
use crate::scratch::Scratch;
use crate::stats::Latencies;
use crate::{Context, Result};

/// Variables of a Pod's container, so that the Pod has about 5 KB.
const VARIABLES: usize = 60;
/// Entries of the list that is applied.
const ENTRIES: usize = 1000;

/// What one client does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    CreatePods,
    UpdatePods,
    /// Of an object whose managedFields were emptied, so that nobody keeps track.
    UpdateUntracked,
    ApplyUnchanged,
    ApplyLongList,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::CreatePods => "create Pods of 5 KB",
            Self::UpdatePods => "update Pods of 5 KB",
            Self::UpdateUntracked => "update Pods of 5 KB, untracked",
            Self::ApplyUnchanged => "apply an unchanged Deployment",
            Self::ApplyLongList => "apply a changed list of 1,000 variables",
        }
    }

    fn collection(self, namespace: &str) -> String {
        match self {
            Self::ApplyUnchanged | Self::ApplyLongList => {
                format!("/apis/apps/v1/namespaces/{namespace}/deployments")
            }
            _ => format!("/api/v1/namespaces/{namespace}/pods"),
        }
    }
}

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let columns = ["request", "clients", "per second", "p50 ms", "p99 ms", "max ms", "server CPU us each"];
    let mut table = Table::new("Typed objects".to_owned(), &columns);
    let wanted = |work: &&Work| context.args.work.is_empty() || context.args.work.contains(work);
    for work in Work::value_variants().iter().filter(wanted) {
        for &clients in &context.args.clients {
            // One at a time shows what it costs; many of these would only queue.
            if *work == Work::ApplyLongList && clients > 1 {
                continue;
            }
            eprintln!("{} with {clients} clients", work.name());
            let purpose = format!("{work:?}-{clients}").to_lowercase();
            let maps = scratch.namespace(context, &purpose).await?;
            let namespace = maps.path.split('/').nth(4).unwrap_or_default().to_owned();
            let path: Arc<str> = work.collection(&namespace).into();
            let mut row = vec![work.name().to_owned(), clients.to_string()];
            row.extend(measure(context, *work, clients, &path).await?);
            table.row(row);
            let connection = Connection::open(&context.target, context.protocol).await?;
            let objects = format!("{path}?gracePeriodSeconds=0");
            connection.call(Method::DELETE, &objects, None).await?.success()?;
        }
    }
    Ok(vec![table])
}

async fn measure(context: &Context, work: Work, clients: usize, path: &Arc<str>) -> Result<Vec<String>> {
    let mut workers = Vec::new();
    let mut connection = None;
    let sharing = context.sharing(context.args.clients_per_connection);
    for id in 0..clients {
        if id % sharing == 0 {
            connection = Some(Arc::new(Connection::open(&context.target, context.protocol).await?));
        }
        let connection = connection.clone().ok_or("no connection")?;
        let mut worker = Worker { work, id, connection, path: path.clone(), sent: 0, version: String::new() };
        worker.prepare().await?;
        workers.push(worker);
    }
    let (start, cpu) = (Instant::now(), context.server.cpu());
    let deadline = start + context.seconds();
    let mut running = tokio::task::JoinSet::new();
    for mut worker in workers {
        running.spawn(async move {
            let mut latencies = Latencies::default();
            while Instant::now() < deadline {
                let start = Instant::now();
                worker.step().await?;
                latencies.add_since(start);
            }
            Ok(latencies)
        });
    }
    let mut all = Latencies::default();
    while let Some(done) = running.join_next().await {
        let latencies: Result<Latencies> = done?;
        all.merge(latencies?);
    }
    let per_second = all.len() as f64 / start.elapsed().as_secs_f64();
    let micros = context.server.micros_each(cpu, all.len());
    let mut row = vec![report::number(per_second)];
    row.extend(report::times(all.summary()));
    row.push(report::option(micros));
    Ok(row)
}

/// One client, with an object of its own where it writes one again and again.
struct Worker {
    work: Work,
    id: usize,
    connection: Arc<Connection>,
    path: Arc<str>,
    sent: usize,
    version: String,
}

impl Worker {
    async fn prepare(&mut self) -> Result<()> {
        match self.work {
            Work::CreatePods => {}
            Work::UpdatePods => {
                let body = pod(&self.own(), "0", "");
                self.version = self.send(Method::POST, &self.path, JSON, body).await?;
            }
            Work::UpdateUntracked => {
                let body = pod(&self.own(), "0", "");
                self.version = self.send(Method::POST, &self.path, JSON, body).await?;
                let item = self.item();
                let body = pod(&self.own(), "1", &self.preconditions(r#","managedFields":[]"#));
                self.version = self.send(Method::PUT, &item, JSON, body).await?;
            }
            Work::ApplyUnchanged | Work::ApplyLongList => self.step().await?,
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<()> {
        self.sent += 1;
        let mark = self.sent.to_string();
        let item = self.item();
        self.version = match self.work {
            Work::CreatePods => {
                let body = pod(&format!("c{}-{mark}", self.id), &mark, "");
                self.send(Method::POST, &self.path, JSON, body).await?
            }
            Work::UpdatePods | Work::UpdateUntracked => {
                let body = pod(&self.own(), &mark, &self.preconditions(""));
                self.send(Method::PUT, &item, JSON, body).await?
            }
            Work::ApplyUnchanged => self.apply(&item, 1, "0").await?,
            Work::ApplyLongList => self.apply(&item, ENTRIES, &mark).await?,
        };
        Ok(())
    }

    async fn apply(&self, item: &str, variables: usize, mark: &str) -> Result<String> {
        let body = deployment(&self.own(), variables, mark);
        self.send(Method::PATCH, &format!("{item}?fieldManager=loadgen&force=true"), APPLY, body).await
    }

    /// The resourceVersion of the answer.
    async fn send(&self, method: Method, path: &str, kind: &'static str, body: Bytes) -> Result<String> {
        self.connection.call(method, path, Some((kind, body))).await?.success()?.resource_version()
    }

    fn own(&self) -> String {
        format!("own-{}", self.id)
    }

    fn item(&self) -> String {
        format!("{}/{}", self.path, self.own())
    }

    fn preconditions(&self, more: &str) -> String {
        format!(r#","resourceVersion":"{}"{more}"#, self.version)
    }
}

fn variables(count: usize, mark: &str) -> String {
    let one = |n: usize| {
        format!(r#"{{"name":"VARIABLE_{n}","value":"a value of some length, number {n}, {mark}"}}"#)
    };
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

/// Only labels of a Pod change, since little else may.
fn pod(name: &str, mark: &str, metadata: &str) -> Bytes {
    pod_of(VARIABLES, name, mark, metadata)
}

/// A Pod with so many variables.
pub fn pod_of(count: usize, name: &str, mark: &str, metadata: &str) -> Bytes {
    let variables = variables(count, "the same for all");
    Bytes::from(format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","labels":{{"app":"web","mark":"{mark}"}}{metadata}}},"spec":{{"containers":[{{"name":"web","image":"nginx:1","ports":[{{"containerPort":80}}],"env":[{variables}]}}]}}}}"#
    ))
}

fn deployment(name: &str, count: usize, mark: &str) -> Bytes {
    let variables = variables(count, mark);
    Bytes::from(format!(
        r#"{{"kind":"Deployment","apiVersion":"apps/v1","metadata":{{"name":"{name}"}},"spec":{{"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{{"name":"web","image":"nginx:1","env":[{variables}]}}]}}}}}}}}"#
    ))
}
