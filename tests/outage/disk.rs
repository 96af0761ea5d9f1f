//! A disk that fails under a server on SQLite: system calls of the running server are made to fail from outside.

use std::path::Path;
use std::process::Stdio;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::optional;
use crate::support::process::{Installation, Process};
use crate::support::rest::{Client, revision};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Enough objects of 100 KB for several times the log's length.
const MANY: usize = 400;

/// Makes system calls of a process fail while it is attached.
struct Tracer {
    child: Child,
}

impl Tracer {
    /// `fault` is the argument of strace's `--inject`; `path` limits it to one file. `None` if tracing is not
    /// permitted.
    async fn attach(server: &Process, fault: &str, path: Option<&Path>) -> Option<Self> {
        let program = optional::program("get-strace", "a disk that fails").await?;
        let mut command = Command::new(program);
        command.args(["-f", "-o", "/dev/null", "-e"]).arg(format!("inject={fault}"));
        if let Some(path) = path {
            command.arg("-P").arg(path);
        }
        command.arg("-p").arg(server.id().to_string());
        let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("start strace");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        loop {
            let line = lines.next_line().await.expect("read").expect("strace goes on");
            if line.contains("attached") {
                // Further output is ignored, but must be read, since strace would block otherwise.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Some(Self { child });
            }
        }
    }

    /// Detaches from the process.
    async fn detach(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().await.expect("run kill").success());
        self.child.wait().await.expect("wait for strace");
    }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A ConfigMap of 100 KB that cannot be compressed.
fn large_map(name: &str, random: &mut StdRng) -> Value {
    let mut map = map(name);
    let text: String = (0..100_000).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
    map["data"]["k"] = text.into();
    map
}

async fn create(client: &Client, object: &Value) -> Option<u64> {
    match client.post(MAPS, object).await {
        Ok(answer) if answer.status == 201 => Some(revision(&answer.body)),
        _ => None,
    }
}

async fn exists(client: &Client, name: &str) -> bool {
    client.get(&format!("{MAPS}/{name}")).await.expect("an answer").status == 200
}

/// How many rows with this name the database file contains without its log.
async fn in_the_file_alone(installation: &Installation, name: &str) -> i64 {
    let copy = installation.dir().join("copy.db");
    std::fs::copy(installation.dir().join("state.db"), &copy).expect("copy");
    let mut connection = SqliteConnectOptions::new().filename(&copy).connect().await.expect("open");
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM objects WHERE name = ?").bind(name);
    let count = count.fetch_one(&mut connection).await.expect("readable");
    connection.close().await.expect("close");
    count
}

async fn ends_with_the_line(server: Process, part: &str) {
    let log = server.log_file().to_owned();
    assert_eq!(server.end().await.code(), Some(1));
    let log = std::fs::read_to_string(log).expect("read the log");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.starts_with("rowplane: the server cannot go on: ") && last.contains(part), "{log}");
    assert!(last.contains("Input/output error") || last.contains("disk I/O error"), "{last}");
}

/// The disk of the server's own log is full. Controllers tell of what fails, and were gone once they could not: a definition
/// that was deleted then stayed for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_cannot_be_written_is_done_without() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let installation = Installation::sqlite().with("--v=6");
    let log = installation.dir().join("server.log");
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    let server = installation.start().await;
    // The server has its log open. It is not to be read: that would have no end.
    std::fs::remove_file(&log).expect("remove the link");
    std::fs::write(&log, "").expect("a file in its place");
    let client = installation.client().await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.full.example.com"},
        "spec": {"group": "full.example.com", "scope": "Namespaced", "versions": [version],
                 "names": {"plural": "things", "kind": "Thing"}},
    });
    client.post(DEFINITIONS, &definition).await.expect("an answer").ok();
    let thing = json!({"apiVersion": "full.example.com/v1", "kind": "Thing", "metadata": {"name": "one"}});
    let things = "/apis/full.example.com/v1/namespaces/default/things";
    client.post(things, &thing).await.expect("an answer").ok();
    let item = format!("{DEFINITIONS}/things.full.example.com");
    client.delete(&item, None).await.expect("an answer").ok();
    while client.get(&item).await.expect("an answer").status != 404 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_of_the_log_that_fails_ends_the_server() {
    let installation = Installation::sqlite().without_heartbeats();
    let server = installation.start().await;
    let client = installation.client().await;
    for n in 0..20 {
        create(&client, &map(&format!("answered-{n}"))).await.expect("created");
    }
    let fault = "fdatasync:error=EIO";
    let Some(_tracer) = Tracer::attach(&server, fault, None).await else { return };
    assert_eq!(create(&client, &map("doubtful")).await, None, "it is on no disk");
    ends_with_the_line(server, "the log could not be synced").await;

    let _server = installation.start().await;
    for n in 0..20 {
        assert!(exists(&client, &format!("answered-{n}")).await, "{n}");
    }
    // The page cache still has it, so the object may exist; but then permanently.
    if exists(&client, "doubtful").await {
        assert_eq!(in_the_file_alone(&installation, "doubtful").await, 1);
    }
    create(&client, &map("later")).await.expect("created");
}

/// SQLite itself syncs when the log is moved into the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_of_the_database_that_fails_ends_the_server() {
    let installation = Installation::sqlite().without_heartbeats();
    let server = installation.start().await;
    let client = installation.client().await;
    let database = installation.dir().join("state.db");
    let Some(_tracer) = Tracer::attach(&server, "fsync:error=EIO", Some(&database)).await else { return };
    let mut random = StdRng::seed_from_u64(7);
    let mut answered = Vec::new();
    for n in 0..MANY {
        let name = format!("m{n}");
        if create(&client, &large_map(&name, &mut random)).await.is_none() {
            break;
        }
        answered.push(name);
    }
    assert!(!answered.is_empty() && answered.len() < MANY, "{} were answered", answered.len());
    ends_with_the_line(server, "the log could not be folded into the file").await;

    let _server = installation.start().await;
    for name in answered {
        assert!(exists(&client, &name).await, "{name}");
    }
    create(&client, &map("later")).await.expect("created");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_survived() {
    let installation = Installation::sqlite().without_heartbeats();
    let server = installation.start().await;
    let client = installation.client().await;
    let before = create(&client, &map("before")).await.expect("created");
    let Some(tracer) = Tracer::attach(&server, "pwrite64:error=ENOSPC", None).await else { return };
    for _ in 0..3 {
        let refused = client.post(MAPS, &map("refused")).await.expect("an answer");
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(exists(&client, "before").await);
    }
    tracer.detach().await;
    assert!(!exists(&client, "refused").await);
    assert_eq!(create(&client, &map("after")).await, Some(before + 1), "refused writes took no revision");
    assert!(!server.log().contains("the database has failed"), "{}", server.log());
}

/// There is space for the log, but not in the file into which it should be moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_cannot_be_moved_for_want_of_space_waits() {
    let installation = Installation::sqlite().without_heartbeats();
    let server = installation.start().await;
    let client = installation.client().await;
    let database = installation.dir().join("state.db");
    let fault = "pwrite64:error=ENOSPC";
    let Some(tracer) = Tracer::attach(&server, fault, Some(&database)).await else { return };
    let mut random = StdRng::seed_from_u64(7);
    for n in 0..MANY {
        create(&client, &large_map(&format!("m{n}"), &mut random)).await.expect("created");
    }
    assert!(server.log().contains("cannot fold the log"), "{}", server.log());
    tracer.detach().await;
    for n in 0..MANY / 4 {
        create(&client, &large_map(&format!("n{n}"), &mut random)).await.expect("created");
    }
    assert_eq!(in_the_file_alone(&installation, "m0").await, 1, "it has been moved since");
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}
