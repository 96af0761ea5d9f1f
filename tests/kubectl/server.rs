//! Commands about the server itself, and the server through `proxy`.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use rowplane::http::router::Place;
use rowplane::server::Process;

use crate::tool::Kubectl;
use crate::{configmap, create_configmaps};

pub async fn discovers(kubectl: &Kubectl) {
    let resources = kubectl.run("api-resources").await;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let resources: Vec<_> = resources.lines().map(words).collect();
    for line in [
        "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
        "configmaps cm v1 true ConfigMap",
        "namespaces ns v1 false Namespace",
        "deployments deploy apps/v1 true Deployment",
        "horizontalpodautoscalers hpa autoscaling/v2 true HorizontalPodAutoscaler",
        "leases coordination.k8s.io/v1 true Lease",
        "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
    ] {
        assert!(resources.contains(&words(line)), "{line} is not in {resources:#?}");
    }
    let versions = kubectl.run("api-versions").await;
    for version in ["v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "storage.k8s.io/v1"] {
        assert!(versions.lines().any(|line| line == version), "{version} is not in {versions}");
    }
    let namespaced = kubectl.run("api-resources --namespaced=false -o name").await;
    assert!(namespaced.lines().any(|line| line == "namespaces"));
    assert!(!namespaced.lines().any(|line| line == "configmaps"));
    assert!(kubectl.run("api-resources --api-group=apps -o name").await.contains("deployments.apps\n"));

    let version = kubectl.run("version").await;
    assert!(version.lines().any(|line| line.starts_with("Server Version: v1.37.")), "{version}");
    let info = kubectl.run("cluster-info").await;
    assert!(info.contains("Kubernetes control plane") && info.contains("https://127.0.0.1:"), "{info}");
    assert_eq!(kubectl.run("get all -o name").await, "service/kubernetes\n");
    assert_eq!(kubectl.run("get --raw /livez").await, "ok");
    let missing = kubectl.fail("get --raw /nowhere").await;
    assert!(missing.contains("the server could not find the requested resource"), "{missing}");
}

pub async fn proxies(kubectl: &Kubectl) {
    create_configmaps(kubectl, &["a"]).await;
    let mut proxy = kubectl.keep_running("proxy --port=0").await;
    let line = proxy.line().await;
    let address = line.strip_prefix("Starting to serve on ").unwrap_or_else(|| panic!("{line}"));
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = "GET /api/v1/namespaces/default/configmaps/a HTTP/1.0\r\nHost: localhost\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n"), "{response}");
    assert!(response.contains(r#""color":"blue""#), "{response}");
}

/// A server's URL may have a path, which comes before all that kubectl asks.
pub async fn finds_a_cluster_below_a_path(kubectl: &Kubectl) {
    let process = Process::builder().listen(([127, 0, 0, 1], 0).into()).start().await;
    let process = process.unwrap_or_else(|error| panic!("{}", error.one_line()));
    let place = Place::Prefix("/clusters/a".to_owned());
    let server = process.add("a", place, rowplane::Server::builder().memory()).await;
    let server = server.unwrap_or_else(|error| panic!("{}", error.one_line()));
    let path = server.kubeconfig().expect("it listens");
    let flag = format!("--kubeconfig={}", path.display());
    kubectl.run_with(&format!("create -f - {flag}"), &configmap("c", "web")).await;
    kubectl
        .run_with(&format!("apply --server-side --force-conflicts -f - {flag}"), &configmap("c", "web"))
        .await;
    assert_eq!(kubectl.run(&format!("get configmap c -o name {flag}")).await, "configmap/c\n");
    assert!(kubectl.run(&format!("explain configmap.data {flag}")).await.contains("FIELD: data"));
    assert!(kubectl.run(&format!("api-resources {flag}")).await.contains("configmaps"));
    assert!(kubectl.fail("get configmap c").await.contains("NotFound"), "another server");
    server.stop().await;
    kubectl.fail(&format!("get configmap c {flag}")).await;
}
