//! Real kubectls, one older than the server and one of the same version, with commands as users type them.

#[path = "../support/mod.rs"]
mod support;

mod apply;
mod cluster;
mod credentials;
mod custom;
mod delete;
mod helm;
mod imperative;
mod read;
mod server;
mod testing_page;
mod tool;
mod wait;
mod write;

use crate::tool::Kubectl;

/// Makes a test of every case for each version: `v1_32::case` and `v1_37::case`.
macro_rules! with_each_kubectl {
    ($($module:ident: $($case:ident),*;)*) => {
        mod v1_32 {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(&crate::tool::Kubectl::start(32).await).await
            })*)*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn shows_tokens_of_an_issuer() {
                crate::credentials::shows_tokens_of_an_issuer(32).await
            }
        }
        mod v1_37 {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$module::$case(&crate::tool::Kubectl::start(37).await).await
            })*)*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn shows_tokens_of_an_issuer() {
                crate::credentials::shows_tokens_of_an_issuer(37).await
            }
        }
    };
}

with_each_kubectl! {
    read: reads_in_every_format, selects_and_pages, describes;
    write: creates_and_deletes_many_kinds, creates_from_json, replaces, labels_and_annotates, patches,
        is_told_what_is_wrong;
    apply: applies, refuses_typos, applies_on_the_server, moves_to_the_server, edits, changes_deployments;
    delete: deletes, deletes_with_dependents;
    wait: watches, waits;
    server: discovers, proxies, finds_a_cluster_below_a_path;
    cluster: drains, taints, debugs, decides_on_certificates, scales_by_itself, explains_and_gets_every_kind;
    custom: defines_and_uses_custom_resources, the_examples_are_right;
    credentials: runs_plugins, shows_tokens_of_accounts;
    imperative: creates_imperatively, asks_who_it_is_and_what_it_may, grants;
}

/// ConfigMap `name` with one label and one entry.
fn configmap(name: &str, app: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, labels: {{app: {app}}}}}
data: {{color: blue}}
"
    )
}

async fn create_configmaps(kubectl: &Kubectl, names: &[&str]) {
    for name in names {
        let printed = kubectl.run_with("create -f -", &configmap(name, "web")).await;
        assert_eq!(printed, format!("configmap/{name} created\n"));
    }
}
