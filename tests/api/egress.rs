//! Connections that go through the proxies of `--egress-selector-config-file`. The store does not matter to them, so the
//! tests run in memory.

use rowplane::auth::oidc::Mapping;
use rowplane::egress::Network as Egress;
use rowplane::egress::config::{self, Configuration};
use serde_json::{Value, json};

use crate::oidc::{issuer, known};
use crate::support::client::Client;
use crate::support::database::Database;
use crate::support::egress::{EgressProxy, Network};
use crate::support::kubelet::Kubelet;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};
use crate::support::site::{Site, key, token};
use crate::webhooks::{VALIDATING, allowing, configure, hook};

const LINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nline";

fn configuration(selections: Value) -> Configuration {
    let file = json!({"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
        "egressSelections": selections});
    config::parse(file.to_string().as_bytes()).expect("a configuration")
}

fn selection(name: &str, protocol: &str, transport: Value) -> Value {
    json!({"name": name, "connection": {"proxyProtocol": protocol, "transport": transport}})
}

/// Makes the Node `n`, whose kubelet is at 10.9.8.7, and on it the Pod `p`.
async fn pod_elsewhere(server: &TestServer) {
    let node = json!({"metadata": {"name": "n"}, "status": {
        "addresses": [{"type": "InternalIP", "address": "10.9.8.7"}]}});
    server.post("/api/v1/nodes", &node).await.expect(201);
    crate::support::kubelet::pod(server, "p", Some("n"), &["c"]).await;
}

/// The values of the metrics about a protocol and a transport: attempts, connections, failures at a stage.
async fn dials(client: &Client, labels: &str, stage: &str) -> [Option<u64>; 3] {
    let text = client.get("/metrics").await.text();
    let value = |name: &str| {
        let name = format!("apiserver_egress_dialer_{name}}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
    };
    [
        value(&format!("dial_start_total{{{labels}")),
        value(&format!("dial_duration_seconds_count{{{labels}")),
        value(&format!("dial_failure_count{{{labels},stage=\"{stage}\"")),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_and_the_control_plane_are_reached_through_their_proxies() {
    let (kubelet, web) = (Kubelet::answering(LINE).await, allowing().await);
    let mut setup = Setup::new(Database::memory());
    let socket = setup.file("egress.sock");
    let servers = [("10.9.8.7:10250", kubelet.address), ("10.0.0.77:443", web.address)];
    let cluster = EgressProxy::at_socket(&socket, Network::of(servers));
    let url = web.url("/by-url");
    let authority = url.trim_start_matches("https://").trim_end_matches("/by-url");
    let (control_plane, address) = EgressProxy::at_port(Network::of([(authority, web.address)])).await;
    setup.egress = Some(configuration(json!([
        selection("cluster", "HTTPConnect", json!({"uds": {"udsName": socket}})),
        selection("master", "HTTPConnect", json!({"tcp": {"url": format!("http://{address}")}})),
    ])));
    let server = setup.start().await;
    pod_elsewhere(&server).await;
    assert_eq!(server.get("/api/v1/namespaces/t/pods/p/log").await.text(), "line");
    // The address of this path is looked up and checked, and no other one is connected to.
    assert_eq!(server.get("/api/v1/nodes/n/proxy/healthz").await.text(), "line");
    assert_eq!(cluster.asked(), ["10.9.8.7:10250"]);
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 443}]}});
    server.post("/api/v1/namespaces/t/services", &service).await.expect(201);
    let of_service = json!({"caBundle": web.ca_bundle, "service": {"namespace": "t", "name": "hook"}});
    let by_url = hook("by-url", web.client_config("/by-url"), json!({}), json!({}));
    configure(&server, VALIDATING, "by-url", json!([by_url])).await;
    server.create("a", json!({})).await;
    assert_eq!(control_plane.asked(), [authority]);
    assert_eq!(cluster.asked(), ["10.9.8.7:10250"]);
    let of_service = hook("of-service", of_service, json!({}), json!({}));
    configure(&server, VALIDATING, "of-service", json!([of_service])).await;
    server.create("b", json!({})).await;
    assert_eq!(cluster.asked(), ["10.0.0.77:443", "10.9.8.7:10250"]);
    let of_cluster = "protocol=\"http_connect\",transport=\"uds\"";
    assert_eq!(dials(&server, of_cluster, "connect").await, [Some(3), Some(3), None]);
    let of_control_plane = "protocol=\"http_connect\",transport=\"tcp\"";
    assert_eq!(dials(&server, of_control_plane, "connect").await, [Some(1), Some(1), None]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_that_refuse_and_that_are_not_there() {
    let mut setup = Setup::new(Database::memory());
    let (proxy, address) = EgressProxy::at_port(Network::of([])).await;
    let socket = setup.file("egress.sock");
    setup.egress = Some(configuration(json!([
        selection("controlplane", "HTTPConnect", json!({"tcp": {"url": format!("http://{address}")}})),
        selection("cluster", "HTTPConnect", json!({"uds": {"udsName": socket}})),
    ])));
    let server = setup.start().await;
    pod_elsewhere(&server).await;
    let failure = server.get("/api/v1/namespaces/t/pods/p/log").await.expect(500);
    let shown = socket.display();
    let why = format!(
        "Get \"https://10.9.8.7:10250/containerLogs/t/p/c\": dial unix {shown}: connect: no such file or directory"
    );
    assert_eq!(failure["message"], why);
    let away = json!({"url": "https://hook.example/"});
    configure(&server, VALIDATING, "away", json!([hook("away", away, json!({}), json!({}))])).await;
    let failure = server.post(CONFIGMAPS, &config_map("a", json!({}))).await.expect(500);
    let why = format!(
        "Internal error occurred: failed calling webhook \"away.ex.io\": failed to call webhook: Post \
         \"https://hook.example/?timeout=10s\": proxy error from {address} while dialing hook.example:443, code 502: \
         502 Bad Gateway"
    );
    assert_eq!(failure["message"], why);
    assert_eq!(proxy.asked(), ["hook.example:443"]);
    let of_cluster = "protocol=\"http_connect\",transport=\"uds\"";
    assert_eq!(dials(&server, of_cluster, "connect").await, [Some(1), None, Some(1)]);
    let of_control_plane = "protocol=\"http_connect\",transport=\"tcp\"";
    assert_eq!(dials(&server, of_control_plane, "proxy").await, [Some(1), None, Some(1)]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn konnectivity_carries_what_its_server_connects() {
    let kubelet = Kubelet::answering(LINE).await;
    let mut setup = Setup::new(Database::memory());
    let socket = setup.file("egress.sock");
    let proxy = EgressProxy::konnectivity(&socket, Network::of([("10.9.8.7:10250", kubelet.address)]));
    setup.egress =
        Some(configuration(json!([selection("cluster", "GRPC", json!({"uds": {"udsName": socket}})),])));
    let server = setup.start().await;
    pod_elsewhere(&server).await;
    assert_eq!(server.get("/api/v1/namespaces/t/pods/p/log").await.text(), "line");
    let elsewhere = server.get("/api/v1/nodes/n:81/proxy/").await.expect(503);
    assert_eq!(elsewhere["message"], "error trying to reach service: no route to host");
    assert_eq!(proxy.asked(), ["10.9.8.7:10250", "10.9.8.7:81"]);
    let labels = "protocol=\"grpc\",transport=\"uds\"";
    assert_eq!(dials(&server, labels, "proxy").await, [Some(2), Some(1), Some(1)]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn issuers_are_reached_by_the_network_that_they_name() {
    let (site, good) = (Site::start().await, key());
    site.publish(&[&good]);
    let url = site.url();
    let authority = url.trim_start_matches("https://");
    let network = Network::of([(authority, authority.parse().expect("an address"))]);
    let (proxy, address) = EgressProxy::with_tls("egress.example", network).await;
    let mut setup = Setup::new(Database::memory());
    let client = rcgen::KeyPair::generate().expect("a key");
    let shown =
        rcgen::CertificateParams::new(Vec::new()).expect("no name").self_signed(&client).expect("signed");
    setup.replace("ca.crt", &proxy.certificate);
    setup.replace("client.crt", &shown.pem());
    setup.replace("client.key", &client.serialize_pem());
    let tls = json!({"caBundle": setup.file("ca.crt"), "clientCert": setup.file("client.crt"),
        "clientKey": setup.file("client.key"), "tlsServerName": "egress.example"});
    let mapping = Mapping { username_claim: "sub".to_owned(), ..Mapping::default() };
    let mut issuer = issuer(&site, mapping);
    issuer.network = Some(Egress::Cluster);
    setup.authentication.oidc = vec![issuer];
    let refused = async |setup: &Setup| setup.builder().start().await.err().expect("refused").one_line();
    let why = "cannot start: oidc: egress lookup required with egress selector type \"cluster\"";
    assert_eq!(refused(&setup).await, why);
    setup.egress =
        Some(configuration(json!([{"name": "controlplane", "connection": {"proxyProtocol": "Direct"}}])));
    let why = "cannot start: oidc: egress lookup for \"cluster\" is not configured";
    assert_eq!(refused(&setup).await, why);
    let of = |tls: &Value| {
        let transport = json!({"tcp": {"url": format!("https://{address}"), "tlsConfig": tls}});
        Some(configuration(json!([selection("cluster", "HTTPConnect", transport)])))
    };
    let mut wrong = tls.clone();
    wrong["clientKey"] = json!(setup.file("ca.crt"));
    setup.egress = of(&wrong);
    assert!(
        refused(&setup)
            .await
            .contains("failed to create dialer for egressSelection \"cluster\": failed to read key pair")
    );
    setup.egress = of(&tls);
    let server = setup.start().await;
    let right = token(&good, &site, json!({}));
    assert_eq!(known(&server, &right).await["user"]["username"], "jane");
    assert_eq!(proxy.asked(), [authority]);
    server.stop().await;
}
