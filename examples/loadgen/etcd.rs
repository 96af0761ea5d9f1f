//! The reference for writes: plain puts into a separate etcd, by the client in `benches/etcd-load`.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::process::Server;
use crate::stats::Summary;
use crate::{Context, Result};

const LOADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/etcd-load");
const START_LIMIT: Duration = Duration::from_secs(20);

/// The result of etcd with one number of clients.
pub struct Puts {
    pub clients: usize,
    pub per_second: f64,
    pub times: Summary,
    pub cpu_micros: Option<f64>,
}

pub async fn puts(context: &Context, binaries: &Path) -> Result<Vec<Puts>> {
    let scratch = ScratchDirectory::new(&context.args.etcd_data)?;
    let loader = build_loader(&scratch).await?;
    let etcd = Etcd::start(binaries, &scratch).await?;
    let args = &context.args;
    let mut all = Vec::new();
    for &clients in &args.clients {
        eprintln!("etcd with {clients} clients");
        let cpu = etcd.server.cpu();
        let output = Command::new(&loader)
            .args(["-endpoint", &etcd.endpoint, "-clients", &clients.to_string()])
            .args(["-size", &args.object_bytes.to_string(), "-duration", &format!("{}s", args.seconds)])
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await?;
        let mut puts = parse(&String::from_utf8_lossy(&output.stdout)).ok_or("etcd-load failed")?;
        let count = puts.per_second * args.seconds as f64;
        puts.cpu_micros = etcd.server.micros_each(cpu, count as usize);
        all.push(puts);
    }
    Ok(all)
}

/// Parses clients, puts per second, then p50, p99 and maximum in microseconds.
fn parse(line: &str) -> Option<Puts> {
    let fields: Vec<f64> = line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [clients, per_second, p50, p99, max] = fields[..] else { return None };
    let times = Summary { p50: p50 / 1000.0, p99: p99 / 1000.0, max: max / 1000.0 };
    Some(Puts { clients: clients as usize, per_second, times, cpu_micros: None })
}

async fn build_loader(scratch: &ScratchDirectory) -> Result<PathBuf> {
    let binary = scratch.0.join("etcd-load");
    let built = Command::new("go").args(["build", "-o"]).arg(&binary).arg(".").current_dir(LOADER).status();
    match built.await {
        Ok(status) if status.success() => Ok(binary),
        Ok(status) => Err(format!("go build in {LOADER}: {status}").into()),
        Err(error) => Err(format!("go build in {LOADER}: {error}").into()),
    }
}

/// A running etcd, which ends with this value.
struct Etcd {
    endpoint: String,
    server: Server,
    _process: Child,
}

impl Etcd {
    async fn start(binaries: &Path, scratch: &ScratchDirectory) -> Result<Self> {
        let (client, peer) = (free_address()?, free_address()?);
        let peer_url = format!("http://{peer}");
        let client_url = format!("http://{client}");
        let process = Command::new(binaries.join("etcd"))
            .arg("--data-dir")
            .arg(scratch.0.join("data"))
            .args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("default={peer_url}"), "--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", binaries.join("etcd").display()))?;
        let server = Server::new(process.id());
        let etcd = Self { endpoint: client.clone(), server, _process: process };
        let listening = async {
            while tokio::net::TcpStream::connect(&client).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(START_LIMIT, listening).await.map_err(|_| "etcd did not start")?;
        Ok(etcd)
    }
}

fn free_address() -> Result<String> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.to_string())
}

struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("loadgen-etcd-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path.canonicalize()?))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
