//! Servers in this process, used without a socket.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use rowplane::Server;
use rowplane::random::Random;
use rowplane::server::Builder;
use rowplane::server::application::build_on;
use rowplane::storage::{Backend, memory};
use rowplane::user::User;
use rowplane::wall_clock::WallClock;
use tempfile::TempDir;

use super::configmap;

#[path = "../../examples/embedded.rs"]
mod example;

fn on_sqlite(directory: &TempDir) -> Builder {
    Server::builder().sqlite(directory.path().join("state.db"))
}

fn config_maps(server: &Server) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(server.service(), "default"))
}

#[tokio::test]
async fn the_example_does_what_it_says() {
    example::run().await.unwrap();
}

#[tokio::test]
async fn servers_of_a_process_know_nothing_of_each_other() {
    let servers = join_all((0..4).map(|_| Server::builder().memory().start())).await;
    let servers: Vec<Server> = servers.into_iter().map(|server| server.unwrap()).collect();
    for (n, server) in servers.iter().enumerate() {
        let name = format!("of-{n}");
        config_maps(server).create(&PostParams::default(), &configmap(&name, n)).await.unwrap();
    }
    for (n, server) in servers.into_iter().enumerate() {
        let found = config_maps(&server).list(&ListParams::default()).await.unwrap();
        let names: Vec<String> = found.iter().map(|object| object.name_any()).collect();
        assert_eq!(names, [format!("of-{n}")]);
        let created = server.metrics().render();
        let created = created.lines().filter(|line| {
            line.starts_with("apiserver_request_total{") && line.contains("\"POST\"") && line.ends_with(" 1")
        });
        assert_eq!(created.count(), 1);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_user_may_what_the_authorizer_says() {
    let server = Server::builder().memory().start().await.unwrap();
    let alice = User { name: "alice".to_owned(), ..User::default() };
    let client = Client::new(server.service_as(alice), "default");
    let refused = Api::<Namespace>::all(client).get("default").await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    let text = "namespaces \"default\" is forbidden: User \"alice\" cannot get resource \"namespaces\" in API group \"\" \
                in the namespace \"default\"";
    assert_eq!((status.code, status.message.as_str()), (403, text));
}

/// Stopping a server ends watches; the next server has its objects.
#[tokio::test]
async fn a_stop_ends_watches_and_keeps_objects() {
    let directory = tempfile::tempdir().unwrap();
    let server = on_sqlite(&directory).start().await.unwrap();
    let api = config_maps(&server);
    let created = api.create(&PostParams::default(), &configmap("a", 1)).await.unwrap();
    let version = created.resource_version().unwrap();
    let mut watch = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    let (told, ()) = tokio::join!(watch.next(), server.stop());
    // It was told of nothing else.
    let Some(Ok(WatchEvent::Bookmark(stands))) = told else { panic!("{told:?}") };
    assert_eq!(stands.metadata.resource_version, version);
    assert!(watch.next().await.is_none());
    let kube::Error::Api(status) = api.get("a").await.unwrap_err() else { panic!("a status") };
    assert_eq!(status.code, 503);
    let server = on_sqlite(&directory).start().await.unwrap();
    assert_eq!(config_maps(&server).get("a").await.unwrap().uid(), created.uid());
}

/// Dropping a server releases its database and its port, even if requests are running.
#[tokio::test]
async fn a_drop_stops_everything() {
    let directory = tempfile::tempdir().unwrap();
    let builder = on_sqlite(&directory).listen(([127, 0, 0, 1], 0).into());
    let server = builder.clone().start().await.unwrap();
    let address = server.address().unwrap();
    let api = config_maps(&server);
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    drop(server);
    let ended = tokio::time::timeout(Duration::from_secs(60), watch.boxed().collect::<Vec<_>>()).await;
    assert!(ended.is_ok(), "the watch goes on");
    while tokio::net::TcpListener::bind(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    // The database is refused as long as the first server has it.
    let server = loop {
        match builder.clone().start().await {
            Ok(server) => break server,
            Err(error) => assert!(error.one_line().contains("in use"), "{}", error.one_line()),
        }
        tokio::task::yield_now().await;
    };
    // The namespace brings one of its own.
    let found = config_maps(&server).list(&ListParams::default()).await.unwrap();
    assert!(found.iter().all(|object| object.name_any() == "kube-root-ca.crt"), "{found:?}");
}

/// A server in memory, and its store.
async fn observed() -> (Server, Weak<dyn Backend>) {
    let store = memory::open();
    let observer = Arc::downgrade(&store);
    let start = Server::builder().start_with(async move |environment| build_on(store, environment).await);
    (start.await.unwrap(), observer)
}

/// Even if a client of it still exists.
#[tokio::test]
async fn nothing_of_a_server_stays_in_memory() {
    let (server, store) = observed().await;
    let api = config_maps(&server);
    api.create(&PostParams::default(), &configmap("a", 1)).await.unwrap();
    server.stop().await;
    assert_eq!(store.strong_count(), 0);

    let (server, store) = observed().await;
    let api = config_maps(&server);
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    drop(server);
    // The client owns the answer itself.
    drop(watch);
    while store.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_kubeconfig_leads_to_the_port() {
    let server = Server::builder().listen(([127, 0, 0, 1], 0).into()).start().await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&server.kubeconfig_yaml().unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    assert_eq!(client.apiserver_version().await.unwrap().minor, "37");
}

#[tokio::test]
async fn objects_bear_the_time_of_their_server() {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    let server =
        Server::builder().without_controllers().clock(WallClock::new(move || then)).start().await.unwrap();
    let created = config_maps(&server).create(&PostParams::default(), &configmap("a", 1)).await.unwrap();
    assert_eq!(created.creation_timestamp().unwrap().0.as_second(), 2_000_000_000);
    let managers = created.metadata.managed_fields.unwrap();
    assert_eq!(managers[0].time.as_ref().unwrap().0.as_second(), 2_000_000_000);
}

#[tokio::test]
async fn a_seed_makes_names_again() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let server = Server::builder().without_controllers().random(Random::seeded(7)).start().await.unwrap();
        let mut object = configmap("", 1);
        object.metadata.name = None;
        object.metadata.generate_name = Some("a-".to_owned());
        let created = config_maps(&server).create(&PostParams::default(), &object).await.unwrap();
        names.push(created.name_any());
    }
    assert_eq!(names[0], names[1]);
}
