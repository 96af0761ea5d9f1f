//! client-go and controller-runtime, used as most programs use them: `tests/upstream/live` against servers of its own.

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::optional;
use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn live() -> Option<PathBuf> {
    optional::program("get-live", "client-go and controller-runtime").await
}

/// Objects of many kinds are written in JSON and in protobuf, and each is read back in the other encoding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_the_same_in_both_forms() {
    let Some(live) = live().await else { return };
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let helm = output(Command::new(root.join("tests/tools/get-helm")).arg(tools)).await;
    let mut template = Command::new(helm.trim());
    let objects = output(template.args(["template", "x"]).arg(root.join("tests/fixtures/chart"))).await;
    on_both(async |installation| Running::new(&live, "forms", installation).tell_and_end(&objects).await)
        .await;
}

/// Informers of a typed client in both encodings, of the metadata client and of the dynamic client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_follow_writes() {
    let Some(live) = live().await else { return };
    on_both(async |installation| Running::new(&live, "follow", installation).tell_and_end("").await).await;
}

/// A controller of controller-runtime: election, cache, index, finalizers, owners, applies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_reconciles() {
    let Some(live) = live().await else { return };
    on_both(async |installation| Running::new(&live, "operate", installation).tell_and_end("").await).await;
}

/// An operator as kubebuilder makes them: it installs its definition, and follows objects of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_runs() {
    let Some(live) = live().await else { return };
    on_both(async |installation| Running::new(&live, "custom", installation).tell_and_end("").await).await;
}

/// Programs that have updated objects start to apply them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_become_appliers() {
    let Some(live) = live().await else { return };
    on_both(async |installation| Running::new(&live, "upgrade", installation).tell_and_end("").await).await;
}

/// A test suite with envtest finds links to this program instead of a control plane, and no etcd.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn envtest_starts_a_control_plane() {
    let Some(live) = live().await else { return };
    let assets = tempfile::tempdir().unwrap();
    let mut fill = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let told = output(fill.arg("envtest-assets").arg(assets.path())).await;
    assert!(told.contains(&format!("export KUBEBUILDER_ASSETS={}", assets.path().display())), "{told}");
    let mut suite = Command::new(live.with_extension("test"));
    suite.args(["-test.v", "-test.run=^TestEnvtest$"]).env("KUBEBUILDER_ASSETS", assets.path());
    let ran = output(&mut suite).await;
    let tests = [
        "a_controller_reconciles",
        "an_operator_of_custom_resources",
        "users_are_told_apart",
        "an_operator_with_hooks",
        "the_next_plane_is_empty",
    ];
    for test in tests {
        assert!(ran.contains(&format!("--- PASS: TestEnvtest/{test}")), "{ran}");
    }
}

/// The module for Go (`packages/go`): servers, snapshots, forks, resets, time, faults and recorded requests; and its example.
#[tokio::test]
async fn every_test_of_the_module_has_a_fork_of_its_own() {
    let Some(_) = live().await else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packages/go/test");
    let ran = output(Command::new(script).arg(env!("CARGO_BIN_EXE_rowplane"))).await;
    assert!(ran.ends_with("go: passed\n"), "{ran}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_informers_outlive_servers_on_sqlite() {
    let Some(live) = live().await else { return };
    outlive(&live, Installation::sqlite(), |other| other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_informers_outlive_servers_on_postgres() {
    let Some(live) = live().await else { return };
    let schema = Schema::create().await;
    let datastore = format!("--datastore={}", schema.url());
    outlive(&live, Installation::sqlite().with(&datastore), |other| other.with(&datastore)).await;
}

async fn on_both(test: impl AsyncFn(&Installation)) {
    let schema = Schema::create().await;
    for installation in [Installation::sqlite(), Installation::postgres(&schema)] {
        let server = installation.start().await;
        test(&installation).await;
        server.terminate().await;
        assert_eq!(server.end().await.code(), Some(0));
    }
}

/// Informers over 10,000 objects survive that the server is killed during writes, that it is replaced by one they
/// cannot reach until the events they have missed are compacted, and that it is restarted again. In the end they have
/// the same objects as a list.
async fn outlive(live: &Path, installation: Installation, settings: impl Fn(Installation) -> Installation) {
    let history =
        |server: Installation| server.with("--compaction-interval=100ms").with("--compaction-history=100ms");
    let elsewhere = history(settings(installation.beside()));
    let installation = history(installation);
    let mut server = installation.start().await;
    let mut informers = Running::new(live, "outlive", &installation);
    informers.expect("following").await;

    informers.tell("write").await;
    informers.expect("writing").await;
    server.kill().await;
    server = installation.start().await;
    informers.expect("written").await;

    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
    let other = elsewhere.start().await;
    let client = elsewhere.client().await;
    let seen = revision(&client.get(&format!("{CONFIGMAPS}?limit=1")).await.unwrap().ok());
    for n in 0..200 {
        // Some of them were deleted before.
        client.delete(&format!("{CONFIGMAPS}/m-{n:05}"), None).await.unwrap();
        client.post(CONFIGMAPS, &configmap(&format!("missed-{n}"))).await.unwrap().ok();
    }
    compacted(&client, seen).await;
    other.terminate().await;
    assert_eq!(other.end().await.code(), Some(0));
    server = installation.start().await;

    informers.tell("write").await;
    informers.expect("writing").await;
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
    server = installation.start().await;
    informers.expect("written").await;
    informers.tell_and_end("end\n").await;
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}

fn configmap(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Returns once a watch from this revision has expired.
async fn compacted(client: &Client, revision: u64) {
    let path = format!("{CONFIGMAPS}?limit=1&resourceVersion={revision}");
    loop {
        match client.get(&path).await.unwrap().status {
            StatusCode::GONE => return,
            status => assert_eq!(status, StatusCode::OK),
        }
    }
}

/// A running `live`. Killed when it is dropped.
struct Running {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// client-go logs much while servers are unreachable.
    log: PathBuf,
}

impl Running {
    fn new(live: &Path, test: &str, installation: &Installation) -> Self {
        // The other server in this directory writes its own address into the kubeconfig.
        let kubeconfig = installation.dir().join("live.kubeconfig");
        std::fs::copy(installation.kubeconfig(), &kubeconfig).expect("copy the kubeconfig");
        let log = installation.dir().join("live.log");
        let file = std::fs::File::create(&log).expect("a log");
        let mut command = Command::new(live);
        command.arg(test).arg(kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.kill_on_drop(true).spawn().expect("start live");
        let orders = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, orders, lines, log }
    }

    async fn tell(&mut self, order: &str) {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.expect("tell");
    }

    async fn expect(&mut self, word: &str) {
        let line = self.lines.next_line().await.expect("a pipe");
        assert_eq!(line.as_deref(), Some(word), "{}", self.told());
    }

    /// Sends it a text, and waits until it has ended without finding a difference.
    async fn tell_and_end(mut self, text: &str) {
        self.orders.write_all(text.as_bytes()).await.expect("tell");
        drop(self.orders);
        let status = self.child.wait().await.expect("wait");
        let told = std::fs::read_to_string(&self.log).expect("the log");
        assert!(status.success() && told.ends_with(": 0 differences\n"), "{told}");
    }

    fn told(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

async fn output(command: &mut Command) -> String {
    let output = command.output().await.expect("run it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
