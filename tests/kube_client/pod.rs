//! Clients in a Pod, which find the server by themselves: those of Go, Rust and Python.

use std::path::Path;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use tokio::process::Command;

use crate::code;
use crate::support::database::Database;
use crate::support::optional;
use crate::support::pod::{NAMESPACE, Pod, USER};
use crate::support::server::Setup;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_find_the_server_from_within_a_pod() {
    let mut setup = Setup::new(Database::memory());
    setup.namespace_contents = true;
    let server = setup.start().await;
    let Some(pod) = Pod::of(&server).await else { return };
    let mut rust = pod.command(std::env::current_exe().expect("this program"));
    rust.args(["--exact", "pod::asks_who_it_is", "--ignored", "--nocapture"]);
    let said = succeeds(rust).await;
    assert!(said.contains("1 passed"), "{said}");
    if let Some(live) = optional::program("get-live", "client-go in a Pod").await {
        let mut go = pod.command(live);
        go.args(["pod", USER]);
        succeeds(go).await;
    }
    if let Some(python) = optional::program("get-python", "the Python client in a Pod").await {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/in_pod.py");
        let mut python = pod.command(python);
        python.arg("-B").arg(script).arg(USER);
        assert_eq!(succeeds(python).await, "done\n");
    }
}

#[tokio::test]
#[ignore = "runs in the Pod of clients_find_the_server_from_within_a_pod"]
async fn asks_who_it_is() {
    let config = Config::incluster().expect("the configuration of a Pod");
    assert_eq!(config.default_namespace, NAMESPACE);
    let client = Client::try_from(config).expect("a client");
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let review =
        reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.expect("a review");
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    assert_eq!(user.as_deref(), Some(USER));
    let configmaps = Api::<ConfigMap>::default_namespaced(client);
    assert_eq!(code(configmaps.get("kube-root-ca.crt").await), 403, "it has no rights");
}

async fn succeeds(mut command: Command) -> String {
    let output = command.output().await.expect("run it");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
