//! `#[rowplane::test]`, and the members of a server that it has in every language.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, CustomResourceExt as _, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config, CustomResource};
use rowplane::Server;
use rowplane::server::Builder;
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
