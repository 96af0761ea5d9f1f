//! Python: the `kubernetes` client, typed and dynamic (`tests/python/client.py` against servers of its own), the package with
//! servers for tests, and the parts of `tests/upstream/versus` and `suites` that need no kube-apiserver.

mod support;

use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use crate::support::database::Database;
use crate::support::optional;
use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::server::Setup;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    run(Installation::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres() {
    let schema = Schema::create().await;
    run(Installation::postgres(&schema)).await;
}

#[tokio::test]
async fn random_changes_of_versus_stay_in_their_object() {
    passes("tests/upstream/versus/mutate_test.py").await;
}

#[tokio::test]
async fn verdicts_of_suites_are_read_as_they_are_written() {
    passes("tests/upstream/suites/suites_test.py").await;
}

/// Runs a script of tests that need no server.
async fn passes(script: &str) {
    let Some(python) = optional::program("get-python", script).await else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let output = Command::new(python).arg("-B").arg(script).output().await.expect("run it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a Pod does with the token of its account, and with the certificates of its namespace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_configuration_of_a_pod() {
    let Some(python) = optional::program("get-python", "the Python client").await else { return };
    let mut setup = Setup::new(Database::sqlite());
    setup.namespace_contents = true;
    let server = setup.start().await;
    let accounts = "/api/v1/namespaces/t/serviceaccounts";
    let answer = server.post(format!("{accounts}/default/token"), &json!({})).await.expect(201);
    let authority = server.get("/api/v1/namespaces/t/configmaps/kube-root-ca.crt").await.ok();
    let files = tempfile::tempdir().expect("a directory");
    for (name, content) in [("token", &answer["status"]["token"]), ("ca.crt", &authority["data"]["ca.crt"])] {
        std::fs::write(files.path().join(name), content.as_str().expect("a text")).expect("write");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/in_cluster.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).arg(files.path()).arg("127.0.0.1").arg(server.port().to_string());
    let output = command.arg("system:serviceaccount:t:default").output().await.expect("run it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
}

/// `Server` of the package for Python (`packages/python`), which is a process: members, definitions, flags, bad input, its end.
#[tokio::test]
async fn the_package_starts_servers_that_end_with_their_process() {
    tests_of_the_package("test_server.py").await;
}

/// Snapshots, forks, resets, time, faults and recorded requests in Python, and the fixture of pytest.
#[tokio::test]
async fn every_test_of_the_package_has_a_fork_of_its_own() {
    tests_of_the_package("test_cluster.py").await;
}

async fn tests_of_the_package(file: &str) {
    let Some(python) = optional::program("get-python", "the package for Python").await else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("packages/python");
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "rowplane.pytest_plugin"]);
    command.arg(package.join("tests").join(file));
    command.env("PYTHONPATH", package.join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("ROWPLANE_PROGRAM", env!("CARGO_BIN_EXE_rowplane"));
    let output = command.output().await.expect("run it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

async fn run(installation: Installation) {
    let Some(python) = optional::program("get-python", "the Python client").await else { return };
    // The client must meet the end of history.
    let installation = installation.with("--compaction-interval=1s").with("--compaction-history=1s");
    let server = installation.start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client.py");
    let output =
        Command::new(python).arg(script).arg(installation.kubeconfig()).output().await.expect("run it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}
