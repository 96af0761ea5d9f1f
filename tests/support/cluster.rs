//! A PostgreSQL cluster for a single test, which can be killed, restarted, set back, copied to a standby and promoted.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::disk::Disk;
use super::postgres_programs::{Succeed as _, as_user, give, tools};
use super::proxy::Target;

/// An argument of `initdb`: a file of the log is as small as it can be, so that a new one is begun often.
const SMALL_SEGMENTS: &str = "--wal-segsize=1";

pub struct Cluster {
    /// Holds the socket, the log and, mostly, the data.
    dir: TempDir,
    data: PathBuf,
    tools: PathBuf,
    /// Settings of the server, which come after those of all clusters, and so prevail.
    options: Vec<String>,
    /// Environment variables of the server.
    environment: Vec<(&'static str, OsString)>,
    disk: Option<Disk>,
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

    /// Creates and starts a cluster whose disk can be disturbed, and that of its standbys. It syncs, since syncs may fail.
    pub async fn on_a_disk_of_its_own() -> Self {
        let cluster = Self::empty().with_disk();
        cluster.init_command().arg(SMALL_SEGMENTS).succeed().await;
        cluster.start().await;
        cluster
    }

    fn with_disk(mut self) -> Self {
        let disk = Disk::new(&self.dir.path().join("disk"));
        self.environment.extend(disk.environment(&self.data));
        self.disk = Some(disk);
        self.with("fsync=on").with("wal_sync_method=fdatasync")
    }

    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
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
            let path = cluster.data.join(name);
            let before = match *name {
                "postgresql.conf" => std::fs::read_to_string(&path).expect("the configuration"),
                _ => String::new(),
            };
            std::fs::write(&path, format!("{before}{text}")).expect("write a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
            give(&path);
        }
        cluster.start().await;
        cluster
    }

    /// Makes a cluster whose data are in this directory, and which is not started yet.
    pub async fn make_at(data: &Path) -> Self {
        let cluster = Self::at(data);
        private_directory(data);
        cluster.init_command().arg(SMALL_SEGMENTS).succeed().await;
        cluster
    }

    /// The cluster whose data are in this directory, for example those of a machine that has lost its power.
    pub fn at(data: &Path) -> Self {
        let mut cluster = Self::empty();
        data.clone_into(&mut cluster.data);
        cluster
    }

    /// Sets an option of the server, such as `fsync=on`.
    pub fn with(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// Sets an environment variable of the server.
    pub fn env(mut self, variable: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((variable, value.into()));
        self
    }

    async fn init(&self) {
        self.init_command().succeed().await;
    }

    fn init_command(&self) -> Command {
        let mut command = self.tool("initdb");
        command.args(["-U", "rowplane", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-D"]);
        command.arg(&self.data);
        command
    }

    pub fn port(&self) -> u16 {
        let listens = self.listens.as_ref().map(|port| port.local_addr().expect("a bound socket").port());
        listens.unwrap_or(5432)
    }

    /// Copies everything on the stopped cluster's disk.
    pub async fn snapshot(&self) -> TempDir {
        assert!(self.server.lock().await.is_none(), "PostgreSQL is running");
        let copy = tempfile::tempdir().expect("a temporary directory");
        Command::new("cp").arg("-a").arg(&self.data).arg(copy.path()).succeed().await;
        copy
    }

    /// Replaces the cluster's disk by an earlier copy.
    pub async fn set_back(&self, snapshot: TempDir) {
        assert!(self.server.lock().await.is_none(), "PostgreSQL is running");
        std::fs::remove_dir_all(&self.data).expect("remove the data");
        Command::new("cp").arg("-a").arg(snapshot.path().join("data")).arg(&self.data).succeed().await;
    }

    /// Creates a standby of this cluster, which has caught up and streams from it.
    pub async fn standby(&self) -> Self {
        let standby = match self.disk {
            Some(_) => Self::empty().with_disk(),
            None => Self::empty(),
        };
        let source = format!("host={} port={} user=rowplane", self.socket().display(), self.port());
        standby
            .tool("pg_basebackup")
            .args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", &source, "-D"])
            .arg(&standby.data)
            .succeed()
            .await;
        standby.start().await;
        standby
    }

    fn empty() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        set_mode(dir.path(), 0o711);
        let [data, socket] = ["data", "socket"].map(|name| dir.path().join(name));
        private_directory(&data);
        private_directory(&socket);
        // Servers of other users connect through the socket.
        set_mode(&socket, 0o711);
        let (options, environment, server) = (Vec::new(), Vec::new(), Mutex::new(None));
        Self { dir, data, tools: tools(), options, environment, disk: None, listens: None, server }
    }

    /// Starts the cluster. Tries again while remains of a killed one are in the way.
    pub async fn start(&self) {
        while !self.try_start().await {
            pause().await;
        }
    }

    /// Starts the cluster. Returns whether it accepts connections; otherwise its server has ended.
    pub async fn try_start(&self) -> bool {
        let mut server = self.server.lock().await;
        assert!(server.is_none(), "PostgreSQL is running");
        let mut child = self.command().spawn().expect("start PostgreSQL");
        loop {
            if child.try_wait().expect("wait for PostgreSQL").is_some() {
                return false;
            }
            if self.try_connect().await.is_ok() {
                *server = Some(child);
                return true;
            }
            pause().await;
        }
    }

    /// Starts the cluster again if its server has ended by itself, and waits until it accepts connections.
    pub async fn revive(&self) {
        loop {
            let mut server = self.server.lock().await;
            if server.as_mut().is_none_or(|child| child.try_wait().expect("wait for PostgreSQL").is_some()) {
                *server = None;
                drop(server);
                return self.start().await;
            }
            drop(server);
            if self.try_connect().await.is_ok() {
                return;
            }
            pause().await;
        }
    }

    fn command(&self) -> Command {
        let log = std::fs::File::options().create(true).append(true).open(self.log_file()).expect("a log");
        let mut command = self.tool("postgres");
        command.arg("-D").arg(&self.data).arg("-k").arg(self.socket());
        let listens = if self.listens.is_some() { "listen_addresses=127.0.0.1" } else { "listen_addresses=" };
        command.args(["-c", listens, "-c", &format!("port={}", self.port())]);
        // Most tests kill processes, not machines, so syncing is unnecessary.
        command.args(["-c", "fsync=off", "-c", "max_connections=200"]);
        command.args(["-c", "shared_buffers=32MB", "-c", "restart_after_crash=on"]);
        // A standby finishes running queries before it replays more.
        command.args(["-c", "max_standby_streaming_delay=-1"]);
        command.args(self.options.iter().flat_map(|option| ["-c", option]));
        command.envs(self.environment.iter().cloned());
        command.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        command
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
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

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("chmod");
}

/// Makes a directory that is PostgreSQL's alone.
fn private_directory(path: &Path) {
    std::fs::create_dir(path).expect("mkdir");
    set_mode(path, 0o700);
    give(path);
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
