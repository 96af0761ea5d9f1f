//! kube-rs as an independent client: its reflector contains the same objects as the server, whatever happens meanwhile.

mod attribute;
mod custom;
mod embedded;
mod pod;
#[path = "../support/mod.rs"]
mod support;

use std::pin::pin;

use futures_util::{Stream, StreamExt as _};
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, Config, Error, ResourceExt as _};
use serde_json::json;

use crate::support::postgres::Schema;
use crate::support::process::Installation;

const OBJECTS: usize = 300;

async fn configmaps(installation: &Installation) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Api::namespaced(Client::try_from(config).unwrap(), "default")
}

fn configmap(name: &str, value: usize) -> ConfigMap {
    let object = json!({"metadata": {"name": name}, "data": {"value": value.to_string()}});
    serde_json::from_value(object).unwrap()
}

fn value(object: &ConfigMap) -> &str {
    &object.data.as_ref().unwrap()["value"]
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> u16 {
    match result {
        Err(Error::Api(status)) => status.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_created_read_changed_and_deleted() {
    let installation = Installation::sqlite();
    let _server = installation.start().await;
    let api = configmaps(&installation).await;
    let post = PostParams::default();

    let created = api.create(&post, &configmap("a", 1)).await.unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    assert_eq!(code(api.create(&post, &configmap("a", 1)).await), 409);
    assert_eq!(api.get("a").await.unwrap(), created);
    assert_eq!(api.get_metadata("a").await.unwrap().metadata, created.metadata);
    assert!(api.get_opt("b").await.unwrap().is_none());

    let mut changed = configmap("a", 2);
    changed.metadata.resource_version = created.resource_version();
    let replaced = api.replace("a", &post, &changed).await.unwrap();
    assert_eq!((value(&replaced), replaced.uid()), ("2", created.uid()));
    assert_eq!(code(api.replace("a", &post, &changed).await), 409);

    let merge = Patch::Merge(json!({"data": {"value": "3"}, "metadata": {"labels": {"odd": "yes"}}}));
    let patched = api.patch("a", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(value(&patched), "3");
    let json =
        serde_json::from_value(json!([{"op": "replace", "path": "/data/value", "value": "4"}])).unwrap();
    let patched = api.patch("a", &PatchParams::default(), &Patch::<()>::Json(json)).await.unwrap();
    assert_eq!(value(&patched), "4");

    for n in 0..7 {
        api.create(&post, &configmap(&format!("c-{n}"), n)).await.unwrap();
    }
    let page = ListParams::default().limit(5);
    let first = api.list(&page).await.unwrap();
    assert_eq!((first.items.len(), first.metadata.remaining_item_count), (5, Some(3)));
    let second = api.list(&page.clone().continue_token(&first.metadata.continue_.unwrap())).await.unwrap();
    assert_eq!(second.items.len(), 3);
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    let odd = api.list(&ListParams::default().labels("odd=yes")).await.unwrap();
    assert_eq!(odd.items, std::slice::from_ref(&patched));

    let deleted = api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        deleted.right().and_then(|status| status.details).map(|details| details.name).as_deref(),
        Some("a")
    );
    assert_eq!(code(api.get("a").await), 404);
    let rest = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert_eq!(rest.left().map(|list| list.items.len()), Some(7));
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_resumes_on_sqlite() {
    resumes(Installation::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_resumes_on_postgres() {
    let schema = Schema::create().await;
    resumes(Installation::postgres(&schema)).await;
}

/// While history is kept, a watcher lists only once, and gets each change once, in order, across restarts.
async fn resumes(installation: Installation) {
    let mut server = installation.start().await;
    let api = configmaps(&installation).await;
    let mut events = pin!(watch(api.clone(), watcher::Config::default()).default_backoff());
    let mut next = async || loop {
        match events.next().await.expect("the stream goes on") {
            Ok(Event::Apply(object)) => return format!("{} {}", object.name_any(), value(&object)),
            Ok(Event::Delete(object)) => return format!("{} gone", object.name_any()),
            Ok(Event::InitDone) => return "a list".to_owned(),
            Ok(Event::InitApply(object)) => panic!("listed: {object:?}"),
            // A restart causes errors.
            Ok(Event::Init) | Err(_) => {}
        }
    };
    assert_eq!(next().await, "a list");
    for round in 0..4 {
        let name = format!("c-{round}");
        api.create(&PostParams::default(), &configmap(&name, 1)).await.unwrap();
        assert_eq!(next().await, format!("{name} 1"));
        api.replace(&name, &PostParams::default(), &configmap(&name, 2)).await.unwrap();
        match round % 2 {
            0 => server.kill().await,
            _ => {
                server.terminate().await;
                assert_eq!(server.end().await.code(), Some(0));
            }
        }
        server = installation.start().await;
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        assert_eq!(next().await, format!("{name} 2"));
        assert_eq!(next().await, format!("{name} gone"));
    }
}

/// LIST, then WATCH.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_a_reflector_that_lists_and_watches_on_sqlite() {
    reflector(Installation::sqlite(), watcher::Config::default().page_size(50)).await;
}

/// A streaming list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_a_reflector_that_streams_on_sqlite() {
    reflector(Installation::sqlite(), watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_a_reflector_that_lists_and_watches_on_postgres() {
    let schema = Schema::create().await;
    reflector(Installation::postgres(&schema), watcher::Config::default().page_size(50)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_watch_96_a_reflector_that_streams_on_postgres() {
    let schema = Schema::create().await;
    reflector(Installation::postgres(&schema), watcher::Config::default().streaming_lists()).await;
}

/// Follows the objects through writes, through a restart, and through one during which it reads nothing until the
/// missed events are compacted.
async fn reflector(installation: Installation, config: watcher::Config) {
    let installation = installation.with("--compaction-interval=100ms").with("--compaction-history=100ms");
    let mut server = installation.start().await;
    let api = configmaps(&installation).await;
    for n in 0..OBJECTS {
        api.create(&PostParams::default(), &configmap(&format!("c-{n:03}"), 0)).await.unwrap();
    }
    let (store, writer) = reflector::store();
    let mut lists = 0;
    let events = watch(api.clone(), config).default_backoff().reflect(writer).inspect(|event| {
        lists += usize::from(matches!(event, Ok(Event::InitDone)));
    });
    {
        let mut events = pin!(events);
        let writes = write(&api, 1);
        tokio::join!(writes, follow(&mut events, &store, 1));
        assert_holds(&api, &store).await;

        server.terminate().await;
        server.end().await;
        server = installation.start().await;
        tokio::join!(write(&api, 2), follow(&mut events, &store, 2));
        assert_holds(&api, &store).await;

        // The stream is not read for now.
        let seen = newest(&store);
        server.kill().await;
        server = installation.start().await;
        write(&api, 3).await;
        compacted(&installation, seen).await;
        follow(&mut events, &store, 3).await;
        assert_holds(&api, &store).await;
    }
    assert!(lists > 1, "it has been told that what it missed is gone");
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}

/// Changes a third of the objects, replaces some, and marks the end with an object of its own.
async fn write(api: &Api<ConfigMap>, round: usize) {
    for n in (0..OBJECTS).filter(|n| n % 3 == round % 3) {
        let name = format!("c-{n:03}");
        match n % 4 {
            0 => {
                api.delete(&name, &DeleteParams::default()).await.unwrap();
            }
            1 => {
                api.delete(&name, &DeleteParams::default()).await.unwrap();
                api.create(&PostParams::default(), &configmap(&name, round)).await.unwrap();
            }
            _ => {
                api.replace(&name, &PostParams::default(), &configmap(&name, round)).await.unwrap();
            }
        }
    }
    api.create(&PostParams::default(), &configmap(&mark(round), round)).await.unwrap();
}

fn mark(round: usize) -> String {
    format!("mark-{round}")
}

/// Reads the stream until the store contains the mark of this round.
async fn follow<S>(events: &mut S, store: &Store<ConfigMap>, round: usize)
where
    S: Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin,
{
    let mark = reflector::ObjectRef::new(&mark(round)).within("default");
    while store.get(&mark).is_none() {
        // A restart causes errors.
        let _ = events.next().await.expect("the stream goes on");
    }
}

async fn assert_holds(api: &Api<ConfigMap>, store: &Store<ConfigMap>) {
    let mut held: Vec<ConfigMap> = store.state().iter().map(|object| (**object).clone()).collect();
    held.sort_by_key(|object| object.name_any());
    let listed = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(held, listed);
}

fn newest(store: &Store<ConfigMap>) -> u64 {
    store.state().iter().map(|object| object.resource_version().unwrap().parse().unwrap()).max().unwrap()
}

/// Returns once a watch from this revision has expired.
async fn compacted(installation: &Installation, revision: u64) {
    let client = installation.client().await;
    let path = format!("/api/v1/configmaps?limit=1&resourceVersion={revision}");
    loop {
        match client.get(&path).await.unwrap().status {
            StatusCode::GONE => return,
            status => assert_eq!(status, StatusCode::OK),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_applied() {
    let installation = Installation::sqlite();
    let _server = installation.start().await;
    let api = configmaps(&installation).await;
    let params = PatchParams::apply("operator");
    let apply = |value: usize| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"value": value.to_string()}
        }))
    };
    let created = api.patch("a", &params, &apply(1)).await.unwrap();
    assert_eq!(api.patch("a", &params, &apply(1)).await.unwrap(), created);
    let managers = created.metadata.managed_fields.as_ref().unwrap();
    assert_eq!((managers.len(), managers[0].manager.as_deref()), (1, Some("operator")));
    let other = PatchParams::apply("other");
    assert_eq!(code(api.patch("a", &other, &apply(2)).await), 409);
    let forced = api.patch("a", &other.force(), &apply(2)).await.unwrap();
    assert_eq!(value(&forced), "2");
    let strategic = Patch::Strategic(json!({"data": {"more": "1"}}));
    let patched = api.patch("a", &PatchParams::default(), &strategic).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
}
