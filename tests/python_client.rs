//! Python: the `kubernetes` client, typed and dynamic (`tests/python/client.py` against servers of its own), and the
//! part of `tests/upstream/versus` that needs no kube-apiserver.

mod support;

use std::path::Path;

use tokio::process::Command;

use crate::support::optional;
use crate::support::postgres::Schema;
use crate::support::process::Installation;

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
    let Some(python) = optional::program("get-python", "the random changes of versus").await else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upstream/versus/mutate_test.py");
    let output = Command::new(python).arg("-B").arg(script).output().await.expect("run it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
