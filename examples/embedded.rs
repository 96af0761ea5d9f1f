//! A small controller, and its test against a server in the same process: no cluster, no port, no certificates.
//!
//! `cargo run --example embedded`

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::wait::await_condition;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use rowplane::Server;
use serde_json::json;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Keeps a copy of every ConfigMap with the label `mirror`.
async fn mirror(original: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let api = Api::<ConfigMap>::namespaced((*client).clone(), &original.namespace().unwrap_or_default());
    let name = format!("{}-mirror", original.name_any());
    let copy = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [original.controller_owner_ref(&())]},
        "data": original.data,
    });
    api.patch(&name, &PatchParams::apply("mirror").force(), &Patch::Apply(copy)).await?;
    Ok(Action::await_change())
}

/// The controller that is tested.
async fn run_controller(client: Client) {
    let all: Api<ConfigMap> = Api::all(client.clone());
    Controller::new(all.clone(), watcher::Config::default().labels("mirror"))
        .owns(all, watcher::Config::default())
        .run(mirror, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(client))
        .for_each(|_| async {})
        .await;
}

/// The test.
pub async fn run() -> Result<(), Error> {
    let server = Server::builder().memory().start().await?;
    let client = Client::new(server.service(), "default");
    let controller = tokio::spawn(run_controller(client.clone()));

    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    let original = json!({"metadata": {"name": "a", "labels": {"mirror": ""}}, "data": {"colour": "green"}});
    config_maps.create(&PostParams::default(), &serde_json::from_value(original)?).await?;
    let is = |colour: &'static str| {
        move |copy: Option<&ConfigMap>| {
            let data = copy.and_then(|copy| copy.data.as_ref());
            data.is_some_and(|data| data["colour"] == colour)
        }
    };
    await_condition(config_maps.clone(), "a-mirror", is("green")).await?;

    let change = Patch::Merge(json!({"data": {"colour": "blue"}}));
    config_maps.patch("a", &PatchParams::default(), &change).await?;
    await_condition(config_maps.clone(), "a-mirror", is("blue")).await?;

    // The copy's owner is the original, so the server's garbage collector deletes it.
    config_maps.delete("a", &DeleteParams::default()).await?;
    await_condition(config_maps, "a-mirror", |copy: Option<&ConfigMap>| copy.is_none()).await?;

    controller.abort();
    server.stop().await;
    Ok(())
}

#[tokio::main]
#[allow(dead_code, reason = "a test of the project calls `run`")]
async fn main() -> Result<(), Error> {
    run().await?;
    println!("the controller does what it should");
    Ok(())
}
