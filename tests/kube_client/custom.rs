//! A custom resource whose type and definition are made of one Rust struct.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::CustomResourceExt as _;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, Resource as _, ResourceExt as _};
use rowplane::Server;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::code;

#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Document",
    namespaced,
    shortname = "doc",
    status = "DocumentStatus",
    derive = "PartialEq",
    selectable = ".spec.title",
    printcolumn(name = "Title", type_ = "string", json_path = ".spec.title"),
    validation = Rule::new("self.spec.title != 'none'").message("a title is needed")
)]
#[serde(rename_all = "camelCase")]
struct DocumentSpec {
    title: String,
    #[serde(default = "one")]
    page_count: u32,
    author: Option<String>,
    #[serde(default)]
    state: State,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
enum State {
    #[default]
    Draft,
    Published,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
struct DocumentStatus {
    read: bool,
}

fn document(name: &str, title: &str) -> Document {
    let spec = DocumentSpec { title: title.to_owned(), page_count: 1, author: None, state: State::Draft };
    Document::new(name, spec)
}

async fn defined() -> (Server, Client) {
    let server = Server::builder().memory().start().await.unwrap();
    let client = Client::new(server.service(), "default");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let apply = PatchParams::apply("kube-rs").force();
    definitions.patch(Document::crd_name(), &apply, &Patch::Apply(Document::crd())).await.unwrap();
    await_condition(definitions, Document::crd_name(), conditions::is_crd_established()).await.unwrap();
    (server, client)
}

#[tokio::test]
async fn objects_of_a_derived_kind_are_written_and_read() {
    let (server, client) = defined().await;
    let api: Api<Document> = Api::default_namespaced(client);
    let post = PostParams::default();

    let short = json!({"apiVersion": "example.com/v1", "kind": "Document", "metadata": {"name": "a"},
        "spec": {"title": "first"}});
    let patch = Patch::Apply(short);
    let applied = api.patch("a", &PatchParams::apply("author"), &patch).await.unwrap();
    assert_eq!(applied.spec, document("a", "first").spec);
    assert_eq!(applied.status, None);
    assert_eq!(code(api.create(&post, &document("a", "first")).await), 409);
    assert_eq!(code(api.create(&post, &document("b", "none")).await), 422);

    let mut changed = applied.clone();
    changed.spec.state = State::Published;
    changed.status = Some(DocumentStatus { read: true });
    let replaced = api.replace("a", &post, &changed).await.unwrap();
    assert_eq!((replaced.spec.state, &replaced.status), (State::Published, &None));
    assert_eq!(replaced.metadata.generation, Some(2));
    let status = Patch::Merge(json!({"status": {"read": true}}));
    let read = api.patch_status("a", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(read.status, Some(DocumentStatus { read: true }));
    assert_eq!(read.metadata.generation, Some(2));

    api.create(&post, &document("b", "second")).await.unwrap();
    let titled = ListParams::default().fields("spec.title=second");
    assert_eq!(api.list(&titled).await.unwrap().items.len(), 1);
    assert_eq!(api.get_status("a").await.unwrap(), read);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(api.get("a").await), 404);
    server.stop().await;
}

/// For every Document the controller makes a ConfigMap of its name, which it owns.
async fn reconcile(document: Arc<Document>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let documents: Api<Document> = Api::default_namespaced(client.as_ref().clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.as_ref().clone());
    let done = finalizer(&documents, "example.com/pages", document, async |event| match event {
        Event::Apply(document) => {
            let owner = document.controller_owner_ref(&());
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": document.name_any(), "ownerReferences": [owner]},
                "data": {"title": document.spec.title}});
            maps.patch(&document.name_any(), &PatchParams::apply("pages").force(), &Patch::Apply(map))
                .await?;
            let status = Patch::Merge(json!({"status": {"read": true}}));
            documents.patch_status(&document.name_any(), &PatchParams::default(), &status).await?;
            Ok(Action::await_change())
        }
        Event::Cleanup(_) => Ok(Action::await_change()),
    });
    done.await.map_err(|error| match error {
        kube::runtime::finalizer::Error::ApplyFailed(error) => error,
        kube::runtime::finalizer::Error::CleanupFailed(error) => error,
        kube::runtime::finalizer::Error::AddFinalizer(error) => error,
        kube::runtime::finalizer::Error::RemoveFinalizer(error) => error,
        other => panic!("{other}"),
    })
}

#[tokio::test]
async fn a_controller_of_a_derived_kind_reconciles() {
    let (server, client) = defined().await;
    let documents: Api<Document> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(documents.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(client));
    let running = tokio::spawn(controller.for_each(|_| async {}));

    for n in 0..10 {
        let made = document(&format!("d-{n}"), "first");
        documents.create(&PostParams::default(), &made).await.unwrap();
    }
    let mut events = pin!(watcher(documents.clone(), watcher::Config::default()));
    let mut read = std::collections::HashSet::new();
    while read.len() < 10 {
        match events.next().await.expect("the stream goes on").unwrap() {
            watcher::Event::InitApply(found) | watcher::Event::Apply(found) if found.status.is_some() => {
                read.insert(found.name_any());
            }
            _ => {}
        }
    }
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 10);
    documents.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    let mut gone = pin!(watcher(maps, watcher::Config::default()));
    let mut left = 10;
    let mut listed = 0;
    while left > 0 {
        match gone.next().await.expect("the stream goes on").unwrap() {
            watcher::Event::InitApply(_) => listed += 1,
            watcher::Event::InitDone => left = listed,
            watcher::Event::Delete(_) => left -= 1,
            watcher::Event::Init | watcher::Event::Apply(_) => {}
        }
    }
    assert!(documents.list(&ListParams::default()).await.unwrap().items.is_empty());
    running.abort();
    server.stop().await;
}
