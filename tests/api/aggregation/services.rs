//! The types of Services that lead to an extension server: 1.4. The cluster's network is behind a proxy.

use rowplane::api::service_routes::{self, Routing};
use rowplane::egress::config;
use serde_json::{Value, json};

use crate::support::egress::{EgressProxy, Network};
use crate::support::extension::{API_SERVICES, ExtensionServer, THINGS, available, reason};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    cluster_14_external_names_at_cluster_addresses,
    cluster_14_external_names_at_endpoints,
    cluster_14_headless_services_at_cluster_addresses,
    cluster_14_headless_services_at_endpoints,
}

/// A server that goes these ways to an extension server behind a Service with this spec.
async fn behind(
    setup: &mut Setup,
    routing: Routing,
    extension: &ExtensionServer,
    spec: Value,
) -> (TestServer, EgressProxy) {
    let ways = [("ext.elsewhere.example:443", extension.address), ("10.1.1.1:6443", extension.address)];
    let (proxy, address) = EgressProxy::at_port(Network::of(ways)).await;
    let connection =
        json!({"proxyProtocol": "HTTPConnect", "transport": {"tcp": {"url": format!("http://{address}")}}});
    let file = json!({"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}]});
    setup.egress = Some(config::parse(file.to_string().as_bytes()).expect("a configuration"));
    setup.service_routes = service_routes::Config { routing, ..service_routes::Config::default() };
    let server = setup.start().await;
    let service = json!({"metadata": {"name": "ext"}, "spec": spec});
    server.post("/api/v1/namespaces/t/services", &service).await.expect(201);
    let slice = json!({"metadata": {"name": "ext-1", "labels": {"kubernetes.io/service-name": "ext"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443}]});
    server.post("/apis/discovery.k8s.io/v1/namespaces/t/endpointslices", &slice).await.expect(201);
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    (server, proxy)
}

fn external() -> Value {
    json!({"type": "ExternalName", "externalName": "ext.elsewhere.example"})
}

fn headless() -> Value {
    json!({"clusterIP": "None", "ports": [{"name": "https", "port": 443}]})
}

async fn is_reached(server: &TestServer, proxy: &EgressProxy, address: &str) {
    available(server, "True").await;
    assert_eq!(server.get(THINGS).await.ok()["kind"], "ThingList");
    assert!(proxy.asked().iter().all(|asked| asked == address), "{:?}", proxy.asked());
}

async fn is_not_reached(server: &TestServer, proxy: &EgressProxy, why: &str) {
    let condition = reason(server, "FailedDiscoveryCheck").await;
    let message = condition["message"].as_str().expect("a message");
    assert!(message.contains(why), "{message}");
    let refused = server.get(THINGS).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.text().lines().next(), Some("service unavailable"));
    assert_eq!(proxy.asked(), [""; 0]);
}

async fn cluster_14_external_names_at_cluster_addresses(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let (server, proxy) = behind(&mut setup, Routing::ClusterIp, &extension, external()).await;
    is_reached(&server, &proxy, "ext.elsewhere.example:443").await;
}

async fn cluster_14_external_names_at_endpoints(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let (server, proxy) = behind(&mut setup, Routing::Endpoints, &extension, external()).await;
    is_not_reached(&server, &proxy, "unsupported service type \"ExternalName\"").await;
}

async fn cluster_14_headless_services_at_cluster_addresses(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let (server, proxy) = behind(&mut setup, Routing::ClusterIp, &extension, headless()).await;
    is_not_reached(&server, &proxy, "cannot route to service with ClusterIP \"None\"").await;
}

async fn cluster_14_headless_services_at_endpoints(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let (server, proxy) = behind(&mut setup, Routing::Endpoints, &extension, headless()).await;
    is_reached(&server, &proxy, "10.1.1.1:6443").await;
}
