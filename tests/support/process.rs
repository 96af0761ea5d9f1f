//! The real program as a separate process, which can be killed and restarted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};

use super::postgres::Schema;
use super::rest::Client;

/// What survives the processes of a server: its data directory, its port and its flags.
pub struct Installation {
    dir: Arc<TempDir>,
    /// A socket that is bound, but does not listen: it reserves the port for the server while it does not run. (Both
    /// set SO_REUSEADDR.)
    port: TcpSocket,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
}

impl Installation {
    pub fn sqlite() -> Self {
        Self::in_dir(Arc::new(tempfile::tempdir().expect("a temporary directory")))
    }

    /// Another server in the same data directory, with its own port and no flags.
    pub fn beside(&self) -> Self {
        Self::in_dir(self.dir.clone())
    }

    /// A server on what is in the directory.
    pub fn on(dir: TempDir) -> Self {
        Self::in_dir(Arc::new(dir))
    }

    fn in_dir(dir: Arc<TempDir>) -> Self {
        let port = TcpSocket::new_v4().expect("a socket");
        port.set_reuseaddr(true).expect("SO_REUSEADDR");
        port.bind("127.0.0.1:0".parse().unwrap()).expect("a free port");
        let program = program();
        let (arguments, environment) = (Vec::new(), Vec::new());
        let mut installation = Self { dir, port, program, arguments, environment };
        // All servers of a test run on one host, so each gets a name of its own.
        let hostname = format!("--hostname-override=server-{}", installation.port());
        installation.arguments.push(hostname);
        // Namespaces are empty, so that tests find what they have made.
        for flag in [
            "--namespace-contents=false",
            "--cluster-authentication=false",
            "--disable-admission-plugins=ServiceAccount",
        ] {
            installation.arguments.push(flag.to_owned());
        }
        installation
    }

    pub fn postgres(schema: &Schema) -> Self {
        Self::sqlite().with(&format!("--datastore={}", schema.url()))
    }

    /// Without a name of its own, so that the server uses its host's name.
    pub fn nameless(mut self) -> Self {
        self.arguments.retain(|argument| !argument.starts_with("--hostname-override"));
        self
    }

    /// Servers of another release, with those of the flags that it knows.
    pub fn of(mut self, program: &Path) -> Self {
        let help = std::process::Command::new(program).arg("--help").output().expect("a server program");
        let help = String::from_utf8(help.stdout).expect("UTF-8");
        self.arguments.retain(|argument| help.contains(argument.split('=').next().expect("a flag")));
        program.clone_into(&mut self.program);
        self
    }

    pub fn with(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets an environment variable of the server.
    pub fn env(mut self, variable: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((variable, value.into()));
        self
    }

    /// Without heartbeats, only clients' writes advance the clock.
    pub fn without_heartbeats(self) -> Self {
        self.with("--feature-gates=APIServerIdentity=false")
    }

    pub fn port(&self) -> u16 {
        self.port.local_addr().expect("a bound socket").port()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("admin.kubeconfig")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A client that can be used across restarts.
    pub async fn client(&self) -> Client {
        Client::of(&self.kubeconfig()).await
    }

    /// Starts a server and waits for its banner.
    pub async fn start(&self) -> Process {
        self.try_start().await.expect("the server ended before it was ready")
    }

    /// `None` if the server ends before it is ready.
    pub async fn try_start(&self) -> Option<Process> {
        let log = self.dir.path().join("server.log");
        let file = std::fs::File::options().create(true).append(true).open(&log).expect("open the log");
        let mut child = self.command().stdout(Stdio::piped()).stderr(file).spawn().expect("start rowplane");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let process = Process { child, log };
        while let Some(line) = lines.next_line().await.expect("read the banner") {
            if line.starts_with("export KUBECONFIG=") {
                return Some(process);
            }
        }
        None
    }

    /// Starts a server that must fail. Returns its exit code and its message.
    pub async fn refused(&self) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.command().output().await.expect("start rowplane");
        (status.code(), String::from_utf8(stderr).expect("UTF-8"))
    }

    /// Runs a subcommand on the server's store, and answers with what it prints.
    pub async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command.args(arguments).arg("--data-dir").arg(self.dir.path());
        command.args(self.arguments.iter().filter(|argument| argument.starts_with("--datastore=")));
        let Output { status, stdout, stderr } = command.output().await.expect("start rowplane");
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).expect("UTF-8")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--data-dir").arg(self.dir.path()).arg(format!("--secure-port={}", self.port()));
        command.args(&self.arguments).envs(self.environment.iter().cloned()).kill_on_drop(true);
        command
    }
}

/// The server of this build or another one, such as one with planted bugs.
fn program() -> PathBuf {
    let other = std::env::var_os("ROWPLANE_FAULTS_SERVER");
    other.map_or_else(|| env!("CARGO_BIN_EXE_rowplane").into(), PathBuf::from)
}

/// A server that has printed its banner. Killed when it is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Kills the server with SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("kill the server");
        self.assert_no_panic();
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("a running server")
    }

    /// The server's whole log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("read the log")
    }

    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// Asks the server to end; [`Process::end`] waits for it.
    pub async fn terminate(&self) {
        let id = self.child.id().expect("a running server").to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &id]).status().await.expect("run kill");
        assert!(sent.success());
    }

    pub async fn end(mut self) -> ExitStatus {
        let status = self.child.wait().await.expect("wait for the server");
        self.assert_no_panic();
        status
    }

    fn assert_no_panic(&self) {
        let log = std::fs::read_to_string(&self.log).expect("read the log");
        assert!(!log.contains("panicked at"), "the server has panicked");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            eprintln!("--- the server's log ends:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}
