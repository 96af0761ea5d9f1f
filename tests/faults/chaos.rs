//! Faults drawn from a seed. Each is applied for a while, and healed by the code that applied it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sqlx::AssertSqlSafe;
use tokio::task::JoinHandle;

use super::cluster::Cluster;
use super::disks;
use super::drawn::{Fault, Side, Trouble, draw};
use super::failovers::fail_over;
use super::load::PATIENCE;
use super::process::{Encoding, pause};
use super::proxy::{Direction, Flow, Proxy};
use super::replicas::{Database, Replicas};
use super::run::works;
use super::server::Server;
use crate::support::clock::DAY;
use crate::support::rest::Client;

/// How many faults may overlap.
const AT_ONCE: u64 = 2;
/// A fault whose healing takes longer than this is reported.
const SLOW: Duration = Duration::from_secs(10);
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
/// How many of the faults are that a server comes back as the other program, where there are two.
const OTHER_RELEASE: f64 = 0.2;
const REST: std::ops::Range<u64> = 100..1500;

/// How often each kind of fault was applied.
pub type Counts = BTreeMap<String, usize>;

pub struct Chaos {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<Counts>>,
}

impl Chaos {
    /// `longest` is the longest duration of a fault in milliseconds.
    pub fn start(replicas: &Arc<Replicas>, seed: u64, longest: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let worker = |n| {
            let random = StdRng::seed_from_u64(seed.wrapping_add(n));
            tokio::spawn(keep_disturbing(replicas.clone(), random, longest, stop.clone()))
        };
        Self { workers: (0..AT_ONCE).map(worker).collect(), stop }
    }

    /// Returns once the last fault is healed.
    pub async fn stop(self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Counts::new();
        for worker in self.workers {
            for (fault, count) in worker.await.expect("a worker") {
                *all.entry(fault).or_default() += count;
            }
        }
        all
    }
}

async fn keep_disturbing(
    replicas: Arc<Replicas>,
    mut random: StdRng,
    longest: u64,
    stop: Arc<AtomicBool>,
) -> Counts {
    let mut counts = Counts::new();
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(random.random_range(REST))).await;
        let fault = match replicas.releases.are_two() && random.random_bool(OTHER_RELEASE) {
            true => Fault::OtherRelease,
            false => draw(&mut random, &replicas.database),
        };
        let server = random.random_range(0..replicas.servers.len());
        // Durations on a logarithmic scale: as many short ones as long ones.
        let lasts = (longest as f64 / 20.0) * 20f64.powf(random.random_range(0.0..1.0));
        let lasts = Duration::from_millis(lasts as u64);
        let amount = random.random_range(0..1000);
        let began = Instant::now();
        let encoding = Encoding { in_json: random.random_bool(0.5), older_version: random.random_bool(0.5) };
        replicas.servers[server].installation.encode(encoding);
        apply(&replicas, fault, server, lasts, amount).await;
        let took = began.elapsed();
        if took > lasts + SLOW {
            println!("  {fault:?} of server {server} for {lasts:?} took {took:?}");
        }
        *counts.entry(format!("{fault:?}")).or_default() += 1;
    }
    counts
}

async fn apply(replicas: &Replicas, fault: Fault, number: usize, lasts: Duration, amount: u64) {
    let server = &replicas.servers[number];
    match fault {
        Fault::Kill | Fault::Terminate | Fault::OtherRelease => {
            let mut process = server.process().await;
            if let Some(running) = process.take() {
                match fault {
                    Fault::Kill => running.kill().await,
                    Fault::OtherRelease if amount < 300 => running.kill().await,
                    _ => running.terminate().await,
                }
            }
            tokio::time::sleep(lasts / 4).await;
            if matches!(fault, Fault::OtherRelease) {
                replicas.releases.turn(&replicas.servers, number);
            }
            *process = Some(server.installation.start().await);
        }
        Fault::Pause => {
            let process = server.process().await;
            let Some(process) = &*process else { return };
            process.stop().await;
            tokio::time::sleep(lasts).await;
            process.go_on().await;
        }
        Fault::Migrate => migrate(&server.client, amount).await,
        Fault::DiskFull => {
            let process = server.process().await;
            let Some(process) = &*process else { return };
            process.limit_files(Some(4096 + amount * amount * 8)).await;
            tokio::time::sleep(lasts).await;
            process.limit_files(None).await;
        }
        Fault::DescriptorsFull => {
            let process = server.process().await;
            let Some(process) = &*process else { return };
            // Few servers have so few open files, so mostly there is room for none.
            process.limit_descriptors(Some(16 + amount / 16)).await;
            tokio::time::sleep(lasts).await;
            process.limit_descriptors(None).await;
        }
        Fault::Disk(fault) => disks::disturb_server(server, fault, lasts, amount).await,
        Fault::ClockJumps => {
            // Up to a day, first one way, then the other, and then it stays so.
            let seconds = (amount as i64 - 500) * DAY / 500;
            server.installation.clock.set(seconds);
            tokio::time::sleep(lasts).await;
            server.installation.clock.set(-seconds);
        }
        Fault::MemoryFull => starve(server, lasts, amount).await,
        Fault::Link(Side::Front, trouble) => disturb(&server.front, trouble, lasts).await,
        Fault::Link(Side::Back, trouble) => {
            let Some(back) = &server.back else { return };
            disturb(back, trouble, lasts).await;
        }
        Fault::DatabaseKilled
        | Fault::DatabaseStoppedImmediately
        | Fault::DatabaseRestarted
        | Fault::ClockLocked
        | Fault::Unregistered
        | Fault::StatementsCancelled
        | Fault::ConnectionsFull
        | Fault::DatabaseDisk(_)
        | Fault::Failover(_) => disturb_database(replicas, fault, lasts, amount).await,
    }
}

/// A program whose allocation fails ends; it is started again.
async fn starve(server: &Server, lasts: Duration, amount: u64) {
    if let Some(process) = &*server.process().await {
        process.limit_memory(Some(amount * amount * 16)).await;
        tokio::time::sleep(lasts).await;
        process.limit_memory(None).await;
    }
    let began = Instant::now();
    while !server.revive().await && !works(&server.client, began.elapsed()).await {
        pause().await;
    }
}

/// The leading server then writes rows again in its encoding. It does not matter whether the request arrives.
async fn migrate(client: &Client, amount: u64) {
    let resources =
        [("", "configmaps"), ("apps", "deployments"), ("", "pods"), ("faults.example.com", "widgets")];
    let (group, resource) = resources[amount as usize % resources.len()];
    let spec = json!({"resource": {"group": group, "resource": resource}});
    let body = json!({"metadata": {"generateName": "again-"}, "spec": spec});
    let _ = tokio::time::timeout(PATIENCE, client.post(MIGRATIONS, &body)).await;
}

async fn disturb(link: &Proxy, trouble: Trouble, lasts: Duration) {
    let directions = match trouble {
        Trouble::Cut => return link.cut(),
        Trouble::Lost => return link.lose(),
        Trouble::LostInCalls => {
            link.lose_in_calls();
            tokio::time::sleep(lasts).await;
            return link.lose();
        }
        Trouble::Held(direction) => vec![direction],
        Trouble::HeldBothWays | Trouble::Delayed | Trouble::Lossy => vec![Direction::Up, Direction::Down],
    };
    let flow = match trouble {
        Trouble::Delayed => Flow::Delayed(lasts / 100),
        Trouble::Lossy => Flow::Lossy,
        _ => Flow::Held,
    };
    for direction in &directions {
        link.set_flow(*direction, flow);
    }
    tokio::time::sleep(lasts).await;
    for direction in directions {
        link.set_flow(direction, Flow::Open);
    }
}

async fn disturb_database(replicas: &Replicas, fault: Fault, lasts: Duration, amount: u64) {
    let Database::Postgres(primary) = &replicas.database else { return };
    let mut promotions = replicas.database_turn.lock().await;
    let cluster = primary.get();
    match fault {
        Fault::Failover(replication) => promotions.extend(fail_over(replicas, replication, lasts).await),
        Fault::ClockLocked => {
            let Ok(mut connection) = cluster.try_connect().await else { return };
            // The lock ends with the connection.
            let lock = "BEGIN; SELECT revision FROM clock FOR UPDATE";
            if sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut connection).await.is_ok() {
                tokio::time::sleep(lasts).await;
            }
        }
        Fault::Unregistered => {
            // A server that starts makes the system's objects before it registers. So none is started meanwhile.
            let _held = join_all(replicas.servers.iter().map(|server| server.process())).await;
            let found = unregister(&cluster, lasts).await;
            replicas.unfenced.fetch_add(found.unwrap_or(0), Ordering::Relaxed);
        }
        Fault::StatementsCancelled => {
            // What commits a batch is not cancelled: it would be answered without having waited for the standby.
            let cancel = "SELECT COUNT(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = 'rowplane' \
                 AND state = 'active' AND query <> 'COMMIT' AND query NOT LIKE '%commit_batch_3%' AND query NOT LIKE '%INTO batches%' AND query_start < now() - interval '5 ms'";
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                cluster.try_execute(cancel).await;
            }
        }
        Fault::ConnectionsFull => {
            cluster.try_execute(END_CONNECTIONS).await;
            let mut taken = Vec::new();
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                match cluster.try_connect().await {
                    Ok(connection) => taken.push(connection),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        }
        Fault::DatabaseDisk(fault) => disks::disturb_cluster(&cluster, fault, lasts, amount).await,
        Fault::DatabaseKilled => {
            cluster.kill().await;
            tokio::time::sleep(lasts / 4).await;
            cluster.start().await;
        }
        Fault::DatabaseStoppedImmediately => {
            cluster.stop_immediately().await;
            tokio::time::sleep(lasts / 4).await;
            cluster.start().await;
        }
        _ => {
            cluster.stop().await;
            cluster.start().await;
        }
    }
}

const END_CONNECTIONS: &str =
    "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'rowplane'";

/// Removes all registrations, and returns how many rows were written after that while there was none, by servers that are
/// allowed no more than to register again. The rows and the registrations are counted in one state of the database. An
/// error of the database's says nothing.
async fn unregister(cluster: &Cluster, lasts: Duration) -> Result<usize, sqlx::Error> {
    let mut connection = cluster.try_connect().await?;
    let mut transaction = sqlx::Connection::begin(&mut connection).await?;
    let at: i64 =
        sqlx::query_scalar("SELECT revision FROM clock FOR UPDATE").fetch_one(&mut *transaction).await?;
    sqlx::raw_sql("DELETE FROM storage_versions; DELETE FROM servers").execute(&mut *transaction).await?;
    transaction.commit().await?;
    let until = Instant::now() + lasts;
    let mut written = Vec::new();
    // What is written once a server has registered says nothing: it may be stopped, and then nobody is registered again.
    while Instant::now() < until {
        let (registered, rows): (bool, Vec<String>) =
            sqlx::query_as(UNFENCED).bind(at).fetch_one(&mut connection).await?;
        if registered {
            break;
        }
        written = rows;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for row in &written {
        println!("  a server that was not registered has written {row}");
    }
    Ok(written.len())
}

/// Whether a server is registered, and the rows after revision $1 that need a registration.
const UNFENCED: &str = "SELECT EXISTS (SELECT FROM servers), \
     ARRAY(SELECT r.plural || ' ' || c.namespace || '/' || c.name || ' at ' || c.resource_version \
           FROM changes c JOIN resources r ON r.id = c.resource \
           WHERE c.resource_version > $1 \
           AND NOT (r.api_group, r.plural) IN (('', 'namespaces'), ('coordination.k8s.io', 'leases'), \
                                               ('internal.apiserver.k8s.io', 'storageversions')))";
