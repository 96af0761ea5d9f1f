//! The objects that stand for the server itself: the Service `kubernetes`, its endpoints, its network.

use serde_json::{Value, json};

use crate::support::server::Setup;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

on_every_store! {
    the_service_of_the_server,
    addresses_from_added_networks,
    objects_of_the_system_survive_a_restart,
}

async fn the_service_of_the_server(setup: Setup) {
    let server = setup.start_empty().await;
    let service = server.get(format!("{SERVICES}/kubernetes")).await.ok();
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    let port = &service["spec"]["ports"][0];
    assert_eq!(
        (&port["name"], &port["port"], &port["protocol"]),
        (&json!("https"), &json!(443), &json!("TCP"))
    );
    let own = port["targetPort"].clone();
    let endpoints = server.get("/api/v1/namespaces/default/endpoints/kubernetes").await.ok();
    let ports = json!([{"name": "https", "port": own, "protocol": "TCP"}]);
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": ports}]));
    assert_eq!(endpoints["metadata"]["labels"], json!({"endpointslice.kubernetes.io/skip-mirror": "true"}));
    let slice =
        server.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").await.ok();
    assert_eq!(slice["endpoints"], json!([{"addresses": ["192.0.2.7"], "conditions": {"ready": true}}]));
    assert_eq!((&slice["ports"], &slice["addressType"]), (&ports, &json!("IPv4")));
    let network = server.get(format!("{NETWORKS}/kubernetes")).await.ok();
    assert_eq!(network["spec"]["cidrs"], json!(["10.0.0.0/24"]));
    let ready = &network["status"]["conditions"][0];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("True")));
    let address = server.get(format!("{ADDRESSES}/10.0.0.1")).await.ok();
    assert_eq!(address["spec"]["parentRef"]["name"], "kubernetes");
    let classes = server.get("/apis/scheduling.k8s.io/v1/priorityclasses").await.ok();
    assert_eq!(crate::support::server::names(&classes), ["system-cluster-critical", "system-node-critical"]);
}

async fn addresses_from_added_networks(setup: Setup) {
    let server = setup.start_empty().await;
    let service = |name: &str, address: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "clusterIP": address}});
    let refused = server.post(SERVICES, &service("s", "10.1.0.5")).await.failure();
    assert_eq!(refused["code"], 422);
    let text = refused["message"].as_str().expect("text");
    assert!(text.ends_with("the provided network does not match the current range"), "{text}");
    let network = json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.1.0.0/28"]}});
    server.post(NETWORKS, &network).await.expect(201);
    let made = server.post(SERVICES, &service("s", "10.1.0.5")).await.expect(201);
    assert_eq!(made["spec"]["clusterIPs"], json!(["10.1.0.5"]));
    // One that is not ready, or goes, is closed.
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Terminating",
        "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}});
    server.patch(format!("{NETWORKS}/more/status"), &status).await.ok();
    assert_eq!(server.post(SERVICES, &service("q", "10.1.0.6")).await.failure()["code"], 422);
    assert_eq!(server.get(format!("{SERVICES}/s")).await.ok()["spec"]["clusterIP"], "10.1.0.5");
}

async fn objects_of_the_system_survive_a_restart(setup: Setup) {
    let server = setup.start_empty().await;
    let before = server.get(format!("{SERVICES}/kubernetes")).await.ok();
    let revision = |list: Value| list["items"][0]["metadata"]["resourceVersion"].clone();
    let networks = revision(server.get(NETWORKS).await.ok());
    server.stop().await;
    let server = setup.start_empty().await;
    assert_eq!(server.get(format!("{SERVICES}/kubernetes")).await.ok(), before);
    assert_eq!(revision(server.get(NETWORKS).await.ok()), networks);
}
