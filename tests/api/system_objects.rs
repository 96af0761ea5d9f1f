//! The objects that stand for the server itself: the Service `kubernetes`, its endpoints, its network.

use rowplane::api::services::Network;
use rowplane::controllers::create_system_objects;
use rowplane::controllers::servers::kubernetes_service::{Advertised, Endpoints};
use serde_json::{Value, json};

use crate::support::server::Setup;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

on_every_store! {
    the_service_of_the_server,
    cluster_50_the_next_start_changes_nothing,
    cluster_51_what_is_deleted_comes_back,
    cluster_53_endpoints_are_left_to_others,
    cluster_55_networks_that_the_flags_change,
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
    let classes = server.get(CLASSES).await.ok();
    assert_eq!(crate::support::server::names(&classes), ["system-cluster-critical", "system-node-critical"]);
}

/// Objects of 3.1, all of which are there before the first answer. Endpoints and slices, whose ports the next server of a
/// test changes, are not among them.
const LISTS: [(&str, usize); 13] = [
    ("/api/v1/namespaces", 4),
    ("/api/v1/services", 1),
    (NETWORKS, 1),
    (ADDRESSES, 1),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", 75),
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", 55),
    ("/apis/rbac.authorization.k8s.io/v1/roles", 7),
    ("/apis/rbac.authorization.k8s.io/v1/rolebindings", 7),
    (CLASSES, 2),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", 11),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", 8),
    ("/apis/apiregistration.k8s.io/v1/apiservices", 23),
    ("/api/v1/secrets", 0),
];

async fn cluster_50_the_next_start_changes_nothing(setup: Setup) {
    let mut versions = Vec::new();
    for _ in 0..2 {
        let server = setup.start_empty().await;
        assert_eq!(server.get("/readyz").await.text(), "ok");
        let mut found = Vec::new();
        for (path, count) in LISTS {
            let list = server.get(path).await.ok();
            let items = list["items"].as_array().expect("items");
            assert_eq!(items.len(), count, "{path}");
            let version = |item: &Value| {
                (path, item["metadata"]["name"].clone(), item["metadata"]["resourceVersion"].clone())
            };
            found.extend(items.iter().map(version));
        }
        versions.push(found);
        server.stop().await;
    }
    assert_eq!(versions[0], versions[1]);
}

async fn cluster_51_what_is_deleted_comes_back(setup: Setup) {
    let server = setup.start_empty().await;
    let class = server.delete(format!("{CLASSES}/system-node-critical")).await;
    assert_eq!(class.status, 403, "{class:?}");
    let query = "watch=1&fieldSelector=metadata.name%3Dkubernetes";
    let mut watch = server.watch(format!("{SERVICES}?{query}")).await;
    let before = watch.expect_named("ADDED", "kubernetes").await;
    server.delete(format!("{SERVICES}/kubernetes")).await.ok();
    watch.expect_named("DELETED", "kubernetes").await;
    let after = watch.expect_named("ADDED", "kubernetes").await;
    assert_eq!(after["spec"]["clusterIP"], before["spec"]["clusterIP"]);
    let ports = json!({"spec": {"ports": [{"name": "https", "port": 443, "targetPort": 1}]}});
    let edited = server.patch(format!("{SERVICES}/kubernetes"), &ports).await.ok();
    assert_eq!(edited["spec"]["ports"][0]["targetPort"], 1);
    let (api, advertised) =
        (server.api.clone(), Advertised { address: None, port: 6443, endpoints: Endpoints::Servers });
    create_system_objects(&api, &advertised).await.expect("what the next round does, too");
    assert_eq!(
        server.get(format!("{SERVICES}/kubernetes")).await.ok()["spec"],
        edited["spec"],
        "ports are not corrected"
    );
}

async fn cluster_53_endpoints_are_left_to_others(mut setup: Setup) {
    setup.endpoints = Endpoints::Others;
    let server = setup.start_empty().await;
    server.get(format!("{SERVICES}/kubernetes")).await.ok();
    for path in [
        "/api/v1/namespaces/default/endpoints",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    ] {
        assert_eq!(server.get(format!("{path}/kubernetes")).await.status, 404, "{path}");
    }
}

async fn cluster_55_networks_that_the_flags_change(mut setup: Setup) {
    let network = |text: &str| Network::parse(text).expect("a network");
    setup.start_empty().await.stop().await;
    setup.networks = vec![network("10.0.0.0/24"), network("fd00::/112")];
    let server = setup.start_empty().await;
    let cidrs = server.get(format!("{NETWORKS}/kubernetes")).await.ok();
    assert_eq!(cidrs["spec"]["cidrs"], json!(["10.0.0.0/24", "fd00::/112"]));
    server.stop().await;

    setup.networks = vec![network("10.1.0.0/24")];
    let server = setup.start_empty().await;
    let query = "watch=1&fieldSelector=reason%3DKubernetesDefaultServiceCIDRInconsistent";
    let mut watch = server.watch(format!("/api/v1/namespaces/default/events?{query}")).await;
    let event = watch.expect("ADDED").await;
    let message = "The default ServiceCIDR [10.0.0.0/24 fd00::/112] does not match the controller flag configurations \
                   [10.1.0.0/24]";
    assert_eq!((&event["type"], &event["message"]), (&json!("Warning"), &json!(message)));
    assert_eq!(event["involvedObject"]["name"], "kubernetes");
    assert_eq!(server.get(format!("{NETWORKS}/kubernetes")).await.ok()["spec"], cidrs["spec"]);
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
