//! A PostgreSQL cluster for a single test, which can be killed, restarted, set back, copied to a standby and promoted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::proxy::Target;

pub struct Cluster {
    dir: TempDir,
    tools: PathBuf,
    /// A socket that is bound, but does not listen: it reserves the port for a cluster that listens on TCP.
    listens: Option<TcpSocket>,
    server: Mutex<Option<Child>>,
}

impl Cluster {
    /// Creates and starts a cluster.
    pub async fn create() -> Self {
        let cluster = Self::empty();
        cluster.init().await;
        cluster.start().await;
        cluster
    }

    /// A cluster that listens on a port of 127.0.0.1. The files are put into its directory; `postgresql.conf` is
    /// appended to.
    pub async fn listening(files: &[(&str, &str)]) -> Self {
        let mut cluster = Self::empty();
        let port = TcpSocket::new_v4().expect("a socket");
        port.set_reuseaddr(true).expect("SO_REUSEADDR");
        port.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        cluster.listens = Some(port);
        cluster.init().await;
        for (name, text) in files {
            let path = cluster.data().join(name);
            let before = match *name {
                "postgresql.conf" => std::fs::read_to_string(&path).expect("the configuration"),
                _ => String::new(),
            };
            std::fs::write(&path, format!("{before}{text}")).expect("write a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
            if let Some((user, group)) = other_user() {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("chown");
            }
        }
        cluster.start().await;
        cluster
    }

    async fn init(&self) {
        let mut command = self.tool("initdb");
        command.args(["-U", "rowplane", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-D"]);
        command.arg(self.data()).succeed().await;
    }

    pub fn port(&self) -> u16 {
        let listens = self.listens.as_ref().map(|port| port.local_addr().expect("a bound socket").port());
        listens.unwrap_or(5432)
    }

    /// Copies everything on the stopped cluster's disk.
    pub async fn snapshot(&self) -> TempDir {
        assert!(self.server.lock().await.is_none(), "PostgreSQL is running");
        let copy = tempfile::tempdir().expect("a temporary directory");
        Command::new("cp").arg("-a").arg(self.data()).arg(copy.path()).succeed().await;
        copy
    }

    /// Replaces the cluster's disk by an earlier copy.
    pub async fn set_back(&self, snapshot: TempDir) {
        assert!(self.server.lock().await.is_none(), "PostgreSQL is running");
        std::fs::remove_dir_all(self.data()).expect("remove the data");
        Command::new("cp").arg("-a").arg(snapshot.path().join("data")).arg(self.dir.path()).succeed().await;
    }

    /// Creates a standby of this cluster, which has caught up and streams from it.
    pub async fn standby(&self) -> Self {
        let standby = Self::empty();
        let source = format!("host={} port={} user=rowplane", self.socket().display(), self.port());
        standby
            .tool("pg_basebackup")
            .args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", &source, "-D"])
            .arg(standby.data())
            .succeed()
            .await;
        standby.start().await;
        standby
    }

    fn empty() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let set_mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("chmod")
        };
        set_mode(dir.path(), 0o711);
        for name in ["data", "socket"] {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).expect("mkdir");
            set_mode(&path, 0o700);
            if let Some((user, group)) = other_user() {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).expect("chown");
            }
        }
        // Servers of other users connect through the socket.
        set_mode(&dir.path().join("socket"), 0o711);
        Self { dir, tools: tools(), listens: None, server: Mutex::new(None) }
    }

    /// Starts the cluster. Tries again while remains of a killed one are in the way.
    pub async fn start(&self) {
        let mut server = self.server.lock().await;
        assert!(server.is_none(), "PostgreSQL is running");
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .expect("a log");
        loop {
            let mut command = self.tool("postgres");
            command.arg("-D").arg(self.data()).arg("-k").arg(self.socket());
            // Tests kill processes, not machines, so syncing is unnecessary.
            let listens =
                if self.listens.is_some() { "listen_addresses=127.0.0.1" } else { "listen_addresses=" };
            command.args(["-c", listens, "-c", &format!("port={}", self.port())]);
            command.args(["-c", "fsync=off", "-c", "max_connections=200"]);
            command.args(["-c", "shared_buffers=32MB", "-c", "restart_after_crash=on"]);
            // A standby finishes running queries before it replays more.
            command.args(["-c", "max_standby_streaming_delay=-1"]);
            command.stdout(Stdio::null()).stderr(log.try_clone().expect("the log")).kill_on_drop(true);
            let mut child = command.spawn().expect("start PostgreSQL");
            loop {
                if child.try_wait().expect("wait for PostgreSQL").is_some() {
                    break;
                }
                if self.try_connect().await.is_ok() {
                    *server = Some(child);
                    return;
                }
                pause().await;
            }
            pause().await;
        }
    }

    /// Kills the postmaster with SIGKILL; its other processes notice and end.
    pub async fn kill(&self) {
        self.end("KILL").await;
    }

    /// Stops like `pg_ctl -m immediate`: without a checkpoint, so that the next start needs recovery.
    pub async fn stop_immediately(&self) {
        self.end("QUIT").await;
    }

    /// Stops like `pg_ctl -m fast`.
    pub async fn stop(&self) {
        self.end("INT").await;
    }

    async fn end(&self, name: &str) {
        if let Some(mut child) = self.server.lock().await.take() {
            signal(&child, name).await;
            child.wait().await.expect("wait for PostgreSQL");
        }
    }

    /// Promotes the standby with what it has received.
    pub async fn promote(&self) {
        // The statement must not wait: the replay might have to wait for the statement.
        self.execute("SELECT pg_promote(false)").await;
        while self.number("SELECT pg_is_in_recovery()::int::bigint").await == 1 {
            pause().await;
        }
    }

    /// Stops the standby from receiving further commits.
    pub async fn stop_receiving(&self) {
        self.execute("ALTER SYSTEM SET primary_conninfo = ''").await;
        self.execute("SELECT pg_reload_conf()").await;
        while self.number("SELECT COUNT(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'").await > 0 {
            pause().await;
        }
    }

    /// From now on, no commit is acknowledged before the standby has it.
    pub async fn wait_for_standbys(&self) {
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        self.execute("SELECT pg_reload_conf()").await;
        while self.number("SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'").await == 0 {
            pause().await;
        }
    }

    pub fn target(&self) -> Target {
        Target::Unix(self.socket().join(format!(".s.PGSQL.{}", self.port())))
    }

    /// The URL for a server that reaches the cluster through this port.
    pub fn url_through(port: u16) -> String {
        format!("postgres://rowplane@127.0.0.1:{port}/postgres?sslmode=disable")
    }

    /// The URL for a direct connection.
    pub fn url(&self) -> String {
        let socket = self.socket().display().to_string().replace('/', "%2F");
        format!("postgres://rowplane@{socket}:{}/postgres", self.port())
    }

    pub async fn try_connect(&self) -> Result<PgConnection, sqlx::Error> {
        // Settings that a test applies to servers must not affect the test's own connections.
        PgConnection::connect(&format!("{}?options=-cstatement_timeout%3D0", self.url())).await
    }

    pub async fn execute(&self, statement: &str) {
        let mut connection = self.try_connect().await.expect("connect");
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("execute");
    }

    /// Executes a statement. Returns whether that succeeded.
    pub async fn try_execute(&self, statement: &str) -> bool {
        let Ok(mut connection) = self.try_connect().await else { return false };
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.is_ok()
    }

    pub async fn number(&self, query: &str) -> i64 {
        let mut connection = self.try_connect().await.expect("connect");
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.expect("query")
    }

    pub async fn text(&self, query: &str) -> String {
        let mut connection = self.try_connect().await.expect("connect");
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.expect("query")
    }

    /// A program of PostgreSQL's.
    fn tool(&self, name: &str) -> Command {
        as_user(&self.tools.join(name))
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }
}

impl Drop for Cluster {
    /// Kills the postmaster; its other processes end by themselves.
    fn drop(&mut self) {
        if let Some(child) = self.server.get_mut()
            && let Some(id) = child.id()
        {
            let _ = std::process::Command::new("kill").args(["-s", "QUIT", &id.to_string()]).status();
            while matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// A program that runs as PostgreSQL's user, and is killed when this process ends.
pub fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    // PostgreSQL refuses to run as root.
    if let Some((user, group)) = other_user() {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups");
    }
    command.arg(program).current_dir("/").stdin(Stdio::null());
    command
}

/// A directory that belongs to PostgreSQL's user.
pub fn give(path: &Path) {
    if let Some((user, group)) = other_user() {
        std::os::unix::fs::chown(path, Some(user), Some(group)).expect("chown");
    }
}

/// The directory of PostgreSQL's server programs, found like `tests/support/with-postgres` does.
pub fn tools() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut candidates = versions.into_iter().rev().chain(on_path);
    let found = candidates.find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file());
    found.expect("PostgreSQL's server programs (./test installs them)")
}

/// The user as which PostgreSQL runs if the test runs as root.
fn other_user() -> Option<(u32, u32)> {
    let of = |path: &str| std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).expect("stat"));
    if of("/proc/self") != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let entry = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().expect("a number"));
        Some((fields.next()?, fields.next()?))
    };
    Some(entry("postgres").or_else(|| entry("nobody")).expect("a user to run PostgreSQL as"))
}

trait Succeed {
    async fn succeed(&mut self);
}

impl Succeed for Command {
    async fn succeed(&mut self) {
        let output = self.output().await.expect("run a program");
        assert!(output.status.success(), "{self:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

pub async fn signal(child: &Child, name: &str) {
    let Some(id) = child.id() else { return };
    let sent = Command::new("kill").args(["-s", name, &id.to_string()]).status().await.expect("run kill");
    assert!(sent.success());
}

/// The pause before another attempt.
pub async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}
