//! `#[rowplane::test]`, and the members of a server that it has in every language.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, CustomResourceExt as _, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config, CustomResource};
use rowplane::Server;
use rowplane::server::Builder;
use rowplane::testing::{Answer, Base, Fault, Filter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::configmap;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

fn listening() -> Builder {
    Server::builder().listen(([127, 0, 0, 1], 0).into())
}

/// Creates an object, whose name is taken if two tests share a server.
async fn create(client: Client) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &configmap("only", 1)).await.unwrap();
}

#[rowplane::test]
async fn a_test_has_a_cluster_of_its_own(client: Client) {
    create(client).await;
}

#[rowplane::test]
async fn another_test_has_another_one(client: kube::Client) -> Result<(), kube::Error> {
    create(client.clone()).await;
    assert_eq!(Api::<Namespace>::all(client).get("default").await?.metadata.name.as_deref(), Some("default"));
    Ok(())
}

#[rowplane::test(flavor = "multi_thread")]
#[should_panic(expected = "the test's own words")]
async fn a_panic_is_the_tests(_client: Client, server: &Server) {
    assert!(server.url().is_some(), "the test's own words");
}

#[rowplane::test(crds = ["/nonexistent"])]
#[should_panic(expected = "the definition in /nonexistent cannot be used: No such file")]
async fn a_server_that_does_not_start_fails_the_test(_client: Client) {}

#[rowplane::test(crds = "docs/examples/backups.yaml", builder = Server::builder().crd(&Widget::crd()))]
async fn definitions_are_served_from_the_start_on(client: Client, server: &Server) {
    let widgets: Api<Widget> = Api::default_namespaced(client);
    widgets.create(&PostParams::default(), &Widget::new("a", WidgetSpec { size: 1 })).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Backup"));
    let backups: Api<DynamicObject> =
        Api::default_namespaced_with(Client::new(server.service(), "default"), &kind);
    assert!(backups.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[rowplane::test(builder = listening())]
async fn a_server_has_the_members_that_it_has_in_other_languages(server: &Server, client: Client) {
    let (kubeconfig, ca) = (server.kubeconfig().unwrap(), server.ca().unwrap());
    assert!(std::fs::read_to_string(&ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let read = Kubeconfig::read_from(&kubeconfig).unwrap();
    assert_eq!(read.clusters[0].cluster.as_ref().unwrap().server, server.url());
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    api.create(&PostParams::default(), &configmap("a", 1)).await.unwrap();
    Api::<ConfigMap>::default_namespaced(client).get("a").await.unwrap();
}

static BASE: Base = Base::new(|| {
    Box::pin(async {
        let server = Server::builder().memory().for_tests().start().await?;
        server.seed([configmap("seeded", 1)]).await?;
        Ok(server)
    })
});

#[rowplane::test(base = BASE)]
async fn a_test_has_a_fork_of_the_base(client: Client) {
    create(client.clone()).await;
    Api::<ConfigMap>::default_namespaced(client).get("seeded").await.unwrap();
}

#[rowplane::test(base = BASE)]
async fn another_test_has_another_fork(client: Client, server: &Server) {
    create(client.clone()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mine = server.snapshot().await.unwrap();
    maps.delete("seeded", &Default::default()).await.unwrap();
    server.reset(&mine).await.unwrap();
    maps.get("seeded").await.unwrap();
}

#[rowplane::test]
async fn what_a_test_does_with_its_server(client: Client, server: &Server) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let base = server.snapshot().await.unwrap();
    server.record_requests().unwrap();
    server.fault(Fault::on("create", "configmaps").answer(Answer::TooManyRequests).times(1)).unwrap();
    let create = async || maps.create(&PostParams::default(), &configmap("a", 1)).await;
    assert!(matches!(create().await, Err(kube::Error::Api(status)) if status.code == 429));
    let made = create().await.unwrap();
    let filter = Filter { verb: Some("create".to_owned()), ..Filter::default() };
    let requests = server.requests(&filter).unwrap();
    assert_eq!(requests.iter().map(|one| one.code).collect::<Vec<_>>(), [429, 201]);
    assert_eq!(requests[1].name, "a");
    assert!(requests[1].response_object().is_some_and(|map| map.contains_key("metadata")));
    let frozen = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_900_000_000);
    server.freeze(frozen).unwrap();
    server.advance(std::time::Duration::from_secs(60)).unwrap();
    let later = maps.create(&PostParams::default(), &configmap("b", 1)).await.unwrap();
    let stamp = later.metadata.creation_timestamp.unwrap().0.to_string();
    assert_eq!(stamp, "2030-03-17T17:47:40Z");
    server.unfreeze().unwrap();
    assert!(server.quiet().await.unwrap());
    server.reset(&base).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    let fork = base.fork().await.unwrap();
    fork.seed([made]).await.unwrap();
    let there: Api<ConfigMap> = Api::default_namespaced(Client::new(fork.service(), "default"));
    assert_eq!(there.list(&ListParams::default()).await.unwrap().items.len(), 1);
    server.expire_watches().await.unwrap();
}

#[tokio::test]
async fn another_server_is_not_for_tests() {
    let server = Server::builder().start().await.unwrap();
    assert!(server.expire_watches().await.is_err());
}

#[tokio::test]
async fn the_files_of_a_server_end_with_it_unless_it_has_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    for (builder, stays) in [(listening(), false), (listening().data_dir(directory.path()), true)] {
        let server = builder.start().await.unwrap();
        let files = [server.kubeconfig().unwrap(), server.ca().unwrap()];
        assert!(files.iter().all(|file| file.exists() && file.starts_with(directory.path()) == stays));
        server.stop().await;
        assert!(files.iter().all(|file| file.exists() == stays));
    }
    let server = Server::builder().start().await.unwrap();
    assert_eq!((server.url(), server.kubeconfig(), server.ca()), (None, None, None));
}

#[tokio::test]
async fn a_value_that_is_no_definition_is_one_error() {
    let broken = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "a.example.com"}, "spec": {"group": "example.com"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
    let cases = [
        (Server::builder().crd(&broken), "the definition a.example.com cannot be used: "),
        (
            Server::builder().crd(&pod),
            "the definition of a value cannot be used: it is no CustomResourceDefinition",
        ),
        (
            Server::builder().crd(&unwritable),
            "the definition of a value cannot be used: key must be a string",
        ),
    ];
    for (builder, why) in cases {
        let error = builder.start().await.err().expect("it is refused").one_line();
        assert!(error.starts_with(why), "{error}");
    }
}
