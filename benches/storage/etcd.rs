//! A separate etcd on this machine, loaded through its gRPC API.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::load::Measured;

const ENDPOINT: &str = "127.0.0.1:23790";

pub fn measure(binary: &Path, clients: &[usize], duration: Duration) -> Vec<Measured> {
    let directory = tempfile::tempdir().expect("a directory");
    let loader = build_loader(directory.path());
    let etcd = Etcd::start(binary, directory.path());
    let clients: Vec<String> = clients.iter().map(usize::to_string).collect();
    let output = Command::new(loader)
        .args(["-endpoint", ENDPOINT, "-clients", &clients.join(",")])
        .args(["-duration", &format!("{}s", duration.as_secs())])
        .stderr(Stdio::inherit())
        .output()
        .expect("run the load");
    drop(etcd);
    assert!(output.status.success(), "the load failed");
    String::from_utf8(output.stdout).expect("text").lines().map(measured).collect()
}

/// Parses `clients puts/s p50 p99 max`; times are in microseconds.
fn measured(line: &str) -> Measured {
    let fields: Vec<u64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
    let [writers, per_second, p50, p99, max] = fields[..] else { panic!("five fields: {line}") };
    Measured {
        writers: writers as usize,
        per_second: per_second as f64,
        p50: Duration::from_micros(p50),
        p99: Duration::from_micros(p99),
        max: Duration::from_micros(max),
    }
}

fn build_loader(directory: &Path) -> std::path::PathBuf {
    let loader = directory.join("etcd-load");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/etcd-load");
    let built = Command::new("go").args(["build", "-o"]).arg(&loader).arg(".").current_dir(source).status();
    assert!(built.expect("go is needed for --etcd").success(), "go build failed");
    loader
}

/// Killed when dropped.
struct Etcd(Child);

impl Etcd {
    fn start(binary: &Path, directory: &Path) -> Self {
        let child = Command::new(binary)
            .arg("--data-dir")
            .arg(directory.join("etcd"))
            .args(["--listen-client-urls", &format!("http://{ENDPOINT}")])
            .args(["--advertise-client-urls", &format!("http://{ENDPOINT}")])
            .args(["--listen-peer-urls", "http://127.0.0.1:0", "--quota-backend-bytes", "8589934592"])
            .args(["--log-level", "error"])
            .spawn();
        Self(child.expect("start etcd"))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
