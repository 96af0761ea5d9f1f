//! Clients that do the same work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;

use super::work::{Work, Worker};
use crate::client::Connection;
use crate::report;
use crate::scratch::Scratch;
use crate::stats::{Latencies, median};
use crate::{Context, Result};

/// Clients with the same work, which pause between rounds.
pub struct Crew {
    pub work: Work,
    path: Arc<str>,
    workers: Vec<Worker>,
    latencies: Latencies,
    /// The rate of each round.
    pub per_second: Vec<f64>,
    /// The server's processor time per request, in microseconds, of each round.
    pub micros: Vec<f64>,
}

impl Crew {
    pub async fn new(context: &Context, scratch: &mut Scratch, work: Work, clients: usize) -> Result<Self> {
        let maps = scratch.namespace(context, &format!("{work:?}-{clients}").to_lowercase()).await?;
        let namespace = maps.path.split('/').nth(4).unwrap_or_default().to_owned();
        let path: Arc<str> = work.collection(&namespace).into();
        let mut workers = Vec::with_capacity(clients);
        let mut connection = None;
        let sharing = context.sharing(context.args.clients_per_connection);
        for id in 0..clients {
            if id % sharing == 0 {
                connection = Some(Arc::new(Connection::open(&context.target, context.protocol).await?));
            }
            let connection = connection.clone().ok_or("no connection")?;
            let mut worker = Worker::new(work, id, connection, path.clone());
            worker.prepare().await?;
            workers.push(worker);
        }
        let latencies = Latencies::default();
        Ok(Self { work, path, workers, latencies, per_second: Vec::new(), micros: Vec::new() })
    }

    pub async fn round(&mut self, context: &Context, length: Duration) -> Result<()> {
        let (start, cpu) = (Instant::now(), context.server.cpu());
        let deadline = start + length;
        let mut running = tokio::task::JoinSet::new();
        for mut worker in self.workers.drain(..) {
            running.spawn(async move {
                let mut latencies = Latencies::default();
                while Instant::now() < deadline {
                    let start = Instant::now();
                    worker.step().await?;
                    latencies.add_since(start);
                }
                Ok((worker, latencies))
            });
        }
        let before = self.latencies.len();
        while let Some(done) = running.join_next().await {
            let done: Result<(Worker, Latencies)> = done?;
            let (worker, latencies) = done?;
            self.workers.push(worker);
            self.latencies.merge(latencies);
        }
        let requests = self.latencies.len() - before;
        self.per_second.push(requests as f64 / start.elapsed().as_secs_f64());
        self.micros.extend(context.server.micros_each(cpu, requests));
        Ok(())
    }

    /// The table's row with the results of all rounds.
    pub fn row(&mut self) -> Vec<String> {
        let rate = |rate: Option<f64>| report::option(rate);
        let mut row = vec![self.work.name().to_owned(), self.workers.len().to_string()];
        let lowest = self.per_second.iter().copied().min_by(f64::total_cmp);
        let highest = self.per_second.iter().copied().max_by(f64::total_cmp);
        row.push(rate(median(&self.per_second)));
        row.push(format!("{} to {}", rate(lowest), rate(highest)));
        row.extend(report::times(self.latencies.summary()));
        row.push(report::option(median(&self.micros)));
        row
    }

    pub async fn leave(self, context: &Context) -> Result<()> {
        let connection = Connection::open(&context.target, context.protocol).await?;
        let objects = format!("{}?gracePeriodSeconds=0", self.path);
        connection.call(Method::DELETE, &objects, None).await?.success()?;
        Ok(())
    }
}
