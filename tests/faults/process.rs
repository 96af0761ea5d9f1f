//! A server process that can be started, killed, paused, or deprived of disk space.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};

use super::releases::Program;
use crate::support::clock::WallClock;
pub use crate::support::cluster::pause;
use crate::support::cluster::signal;
use crate::support::disk::Disk;
use crate::support::preloaded::preload;

/// What a server says of tables that were changed by a later release.
const REFUSED: &str = "schema is newer than this server knows";
/// How many files a server may have open while nothing disturbs it.
const DESCRIPTORS: u64 = 1024;

/// What survives the processes of one server.
pub struct Installation {
    dir: TempDir,
    /// A socket that is bound, but does not listen: it reserves the port for the server.
    port: TcpSocket,
    arguments: Vec<String>,
    /// Which program the next process is.
    program: Mutex<Program>,
    encoding: Mutex<Encoding>,
    /// That of the database, on SQLite.
    pub disk: Disk,
    pub clock: WallClock,
}

/// How a server writes; another release may do it differently.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoding {
    pub in_json: bool,
    /// Whether a kind with two versions is stored in the older one.
    pub older_version: bool,
}

impl Encoding {
    fn arguments(self) -> [&'static str; 2] {
        let media = match self.in_json {
            true => "--storage-media-type=application/json",
            false => "--storage-media-type=application/vnd.kubernetes.protobuf",
        };
        let version = match self.older_version {
            true => "--storage-version=autoscaling/horizontalpodautoscalers=autoscaling/v1",
            false => "--storage-version=autoscaling/horizontalpodautoscalers=autoscaling/v2",
        };
        [media, version]
    }
}

impl Installation {
    pub fn new(program: Program, arguments: Vec<String>) -> Self {
        let port = TcpSocket::new_v4().expect("a socket");
        port.set_reuseaddr(true).expect("SO_REUSEADDR");
        port.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let disk = Disk::new(&dir.path().join("disk"));
        let clock = WallClock::new(&dir.path().join("clock"));
        Self { dir, port, arguments, program: Mutex::new(program), encoding: Mutex::default(), disk, clock }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn port(&self) -> u16 {
        self.port.local_addr().expect("a bound socket").port()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("admin.kubeconfig")
    }

    pub fn program(&self) -> Program {
        self.program.lock().unwrap().clone()
    }

    /// Sets which program the next process is.
    pub fn be(&self, program: Program) {
        *self.program.lock().unwrap() = program;
    }

    /// Sets how the next process writes.
    pub fn encode(&self, encoding: Encoding) {
        *self.encoding.lock().unwrap() = encoding;
    }

    /// Starts the server, with the arguments that its program knows, and waits for its banner. If the database is unreachable, the server ends, and is started
    /// again, as a supervisor would do.
    pub async fn start(&self) -> Process {
        loop {
            if let Some(process) = self.try_start().await {
                return process;
            }
            pause().await;
        }
    }

    async fn try_start(&self) -> Option<Process> {
        let file =
            std::fs::File::options().create(true).append(true).open(self.log_file()).expect("open the log");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "sh"]);
        // Without a handler, exceeding the file size limit would kill the process instead of failing the write. Ignored
        // signals are inherited.
        let program = self.program();
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(&program.path);
        command.arg("--data-dir").arg(self.dir()).arg(format!("--secure-port={}", self.port()));
        command.arg(format!("--hostname-override=server-{}", self.port()));
        command.args(self.arguments.iter().filter(|argument| program.knows(argument)));
        command.args(self.encoding.lock().unwrap().arguments());
        preload(&mut command, self.disk.environment(&self.dir().join("state.db")));
        preload(&mut command, self.clock.environment());
        let mut child =
            command.stdout(Stdio::piped()).stderr(file).kill_on_drop(true).spawn().expect("start rowplane");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        while let Some(line) = lines.next_line().await.expect("read the banner") {
            if line.starts_with("export KUBECONFIG=") {
                return Some(Process { child });
            }
        }
        let status = child.wait().await.expect("wait for the server");
        assert_eq!(status.signal(), None, "the server crashed at its start: {}", self.log());
        let log = self.log();
        // A server that was upgraded meanwhile is of the other program at its next start.
        let is_refused = log.lines().next_back().is_some_and(|line| line.contains(REFUSED));
        assert!(
            !is_refused || self.program().path != program.path,
            "what it does not know, it refuses: {log}"
        );
        None
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("server.log")
    }
}

/// A server that has printed its banner. Killed when it is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// `kill -9`
    pub async fn kill(mut self) {
        self.child.kill().await.expect("kill the server");
    }

    /// Sends SIGTERM; returns once the server has ended.
    pub async fn terminate(mut self) {
        signal(&self.child, "TERM").await;
        self.child.wait().await.expect("wait for the server");
    }

    pub async fn stop(&self) {
        signal(&self.child, "STOP").await;
    }

    pub async fn go_on(&self) {
        signal(&self.child, "CONT").await;
    }

    /// Limits the size of files to this many bytes; `None` removes the limit.
    pub async fn limit_files(&self, bytes: Option<u64>) {
        let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        self.limit(&format!("--fsize={limit}:unlimited")).await;
    }

    /// Limits the addresses that the server may use to those that it uses and so many bytes more; `None` removes the limit.
    pub async fn limit_memory(&self, more: Option<u64>) {
        let id = self.child.id().expect("a running server");
        let used = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap_or_default();
        let pages: u64 = used.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or_default();
        let limit = more.map_or("unlimited".to_owned(), |more| (pages * 4096 + more).to_string());
        self.limit(&format!("--as={limit}:unlimited")).await;
    }

    /// Limits the number of open files and connections; `None` removes the limit.
    pub async fn limit_descriptors(&self, count: Option<u64>) {
        self.limit(&format!("--nofile={}:", count.unwrap_or(DESCRIPTORS))).await;
    }

    async fn limit(&self, limit: &str) {
        let id = self.child.id().expect("a running server").to_string();
        let status = Command::new("prlimit").args(["--pid", &id, limit]).status().await;
        let status = status.expect("run prlimit");
        // A server may have ended meanwhile, if that is what the fault does.
        assert!(status.success() || status.code() == Some(1));
    }

    /// Whether the server has ended by itself, which it must not.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait for the server").is_some()
    }
}
