//! A real HAProxy in front of two servers, with the file that docker-compose.yml gives it but for its addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kube::config::Kubeconfig;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::optional;
use super::process::Installation;

/// How a server stands with the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Up,
    /// It gets nobody new.
    Stopping,
    Down,
}

/// A proxy. Killed when it is dropped.
pub struct Haproxy {
    _child: Child,
    /// They are bound, but do not listen, as the port of an [`Installation`].
    _ports: [TcpSocket; 3],
    dir: TempDir,
    port: u16,
    standings: watch::Receiver<BTreeMap<String, Standing>>,
}

impl Haproxy {
    /// `None` if there is no HAProxy on this machine.
    pub async fn start([a, b]: [&Installation; 2]) -> Option<Self> {
        let program = optional::program("get-haproxy", "rolling restarts behind HAProxy").await?;
        let ports = [free_port(), free_port(), free_port()];
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("haproxy.cfg");
        let local = |port: &TcpSocket| port.local_addr().expect("a bound socket").port();
        let [own, health_a, health_b] = ports.each_ref().map(local);
        let addresses = [
            ("bind :6443", format!("bind 127.0.0.1:{own}")),
            (" a:6443", format!(" 127.0.0.1:{}", a.port())),
            (" b:6443", format!(" 127.0.0.1:{}", b.port())),
            ("port 6501", format!("port {health_a}")),
            ("port 6502", format!("port {health_b}")),
            ("bind 127.0.0.1:6501", format!("bind 127.0.0.1:{health_a}")),
            ("bind 127.0.0.1:6502", format!("bind 127.0.0.1:{health_b}")),
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut text = std::fs::read_to_string(root.join("docker/haproxy.cfg")).expect("the file");
        for (published, here) in addresses {
            assert!(text.contains(published), "{published:?} is not in docker/haproxy.cfg");
            text = text.replace(published, &here);
        }
        std::fs::write(&path, text).expect("write");
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(&path).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.kill_on_drop(true).spawn().expect("start HAProxy");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, standings) = watch::channel(BTreeMap::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((server, standing)) = standing(&line) {
                    tell.send_modify(|all| {
                        all.insert(server.to_owned(), standing);
                    });
                }
            }
        });
        Some(Self { _child: child, _ports: ports, dir, port: own, standings })
    }

    /// Returns once a server, such as `ready/a`, stands so. All are up at the beginning, before their first check.
    pub async fn until(&self, server: &str, standing: Standing) {
        let mut standings = self.standings.clone();
        let stands = |all: &BTreeMap<_, _>| *all.get(server).unwrap_or(&Standing::Up) == standing;
        standings.wait_for(stands).await.expect("HAProxy runs");
    }

    /// An administrator's kubeconfig of these servers with the proxy's address, and its path.
    pub fn kubeconfig(&self, of: &Installation) -> (Kubeconfig, PathBuf) {
        let text = std::fs::read_to_string(of.kubeconfig()).expect("a kubeconfig");
        let at = |line: &str| line.trim_start().starts_with("server: ");
        let own = format!("    server: https://127.0.0.1:{}", self.port);
        let lines: Vec<&str> = text.lines().map(|line| if at(line) { own.as_str() } else { line }).collect();
        assert!(lines.contains(&own.as_str()), "{text}");
        let path = self.dir.path().join("kubeconfig");
        std::fs::write(&path, lines.join("\n")).expect("write");
        (Kubeconfig::read_from(&path).expect("a kubeconfig"), path)
    }
}

/// What a line of the log says about a server.
fn standing(line: &str) -> Option<(&str, Standing)> {
    let (server, told) = line.strip_prefix("Server ")?.split_once(" is ")?;
    let standings = [("UP", Standing::Up), ("stopping", Standing::Stopping), ("DOWN", Standing::Down)];
    let (_, standing) = standings.into_iter().find(|(word, _)| told.starts_with(word))?;
    Some((server, standing))
}

fn free_port() -> TcpSocket {
    let port = TcpSocket::new_v4().expect("a socket");
    port.set_reuseaddr(true).expect("SO_REUSEADDR");
    port.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    port
}
