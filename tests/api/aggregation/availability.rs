//! The condition `Available`: 1.3.

use serde_json::json;

use super::{beside, with_extension};
use crate::support::extension::{API_SERVICES, Behavior, ExtensionServer, NAME, available, reason};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    cluster_7_what_a_service_lacks,
    cluster_7_what_a_server_answers,
    cluster_8_nothing_is_written_twice,
    cluster_9_who_checks,
    cluster_23_the_gauge,
}

async fn message(server: &TestServer, wanted: &str) -> String {
    let condition = reason(server, wanted).await;
    assert_eq!(condition["status"], if wanted == "Passed" { "True" } else { "False" });
    condition["message"].as_str().expect("a message").to_owned()
}

async fn cluster_7_what_a_service_lacks(setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = setup.start().await;
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    assert_eq!(message(&server, "ServiceNotFound").await, "service/ext in \"t\" is not present");
    let service = |port: u16| json!({"metadata": {"name": "ext"}, "spec": {"ports": [{"name": "https", "port": port}]}});
    let services = "/api/v1/namespaces/t/services";
    server.post(services, &service(80)).await.expect(201);
    let want = "service/ext in \"t\" is not listening on port 443";
    assert_eq!(message(&server, "ServicePortError").await, want);
    server
        .patch(format!("{services}/ext"), &json!({"spec": {"ports": [{"name": "https", "port": 443}]}}))
        .await
        .ok();
    let want = "cannot find endpointslices for service/ext in \"t\"";
    assert_eq!(message(&server, "EndpointsNotFound").await, want);
    let slice = |ready: bool| {
        json!({"metadata": {"name": "ext-1", "labels": {"kubernetes.io/service-name": "ext"}}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": ready}}],
            "ports": [{"name": "https", "port": 6443}]})
    };
    let slices = "/apis/discovery.k8s.io/v1/namespaces/t/endpointslices";
    server.post(slices, &slice(false)).await.expect(201);
    let want = "endpointslices for service/ext in \"t\" have no addresses with port name \"https\"";
    assert_eq!(message(&server, "MissingEndpoints").await, want);
}

async fn cluster_7_what_a_server_answers(mut setup: Setup) {
    let mut extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    let url = format!("https://{}/apis/ext.example.io/v1", extension.address);
    for status in [500, 302] {
        extension.behave(Behavior::Answers(status, vec![("location", "/x")]));
        server.post(API_SERVICES, &extension.api_service()).await.expect(201);
        let want = format!("failing or missing response from {url}: bad status from {url}: {status}");
        assert_eq!(message(&server, "FailedDiscoveryCheck").await, want);
        server.delete(format!("{API_SERVICES}/{NAME}")).await.ok();
    }
    extension.behave(Behavior::Serves);
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    assert_eq!(message(&server, "Passed").await, "all checks passed");
    extension.stop().await;
    server.delete(format!("{API_SERVICES}/{NAME}")).await.ok();
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    let found = message(&server, "FailedDiscoveryCheck").await;
    let want = format!("failing or missing response from {url}: Get \"{url}\": dial tcp");
    assert!(found.starts_with(&want) && found.ends_with("connect: connection refused"), "{found}");
}

async fn cluster_8_nothing_is_written_twice(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let path = format!("{API_SERVICES}/{NAME}");
    let before = server.get(&path).await.ok();
    // A change that is none to the condition is a reason to look again.
    let spec = |priority: i64| json!({"spec": {"versionPriority": priority}});
    let changed = server.patch(&path, &spec(11)).await.ok();
    extension.seen();
    extension.behave(Behavior::Answers(500, vec![]));
    let patch = json!({"spec": {"insecureSkipTLSVerify": true, "caBundle": null}});
    server.patch(&path, &patch).await.ok();
    let failed = available(&server, "False").await;
    extension.behave(Behavior::Serves);
    let passed = available(&server, "True").await;
    let object = server.get(&path).await.ok();
    assert_eq!(object["status"]["conditions"].as_array().map(Vec::len), Some(1));
    assert_eq!(changed["status"], before["status"]);
    assert_ne!(failed["reason"], passed["reason"]);
    // The next check has the same result.
    let patch = json!({"spec": {"insecureSkipTLSVerify": false, "caBundle": extension.ca_bundle}});
    let changed = server.patch(&path, &patch).await.ok();
    extension.seen();
    while !extension.seen().iter().any(|asked| asked.path == "/apis/ext.example.io/v1") {
        tokio::task::yield_now().await;
    }
    let object = server.get(&path).await.ok();
    assert_eq!(object["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
    assert_eq!(object["status"]["conditions"][0], passed);
}

async fn cluster_9_who_checks(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let _server = with_extension(&mut setup, &extension).await;
    let asked = extension.asked("/apis/ext.example.io/v1");
    assert_eq!(asked.all("x-remote-user"), ["system:kube-aggregator"]);
    assert_eq!(asked.all("x-remote-group"), ["system:masters"]);
    assert_eq!(asked.server_name, "ext.t.svc");
    let certificate = asked.certificate.expect("the client certificate of the proxy");
    let (_, certificate) = x509_parser::parse_x509_certificate(&certificate).expect("a certificate");
    assert_eq!(certificate.subject().to_string(), "CN=front-proxy-client");
}

fn gauge(metrics: &str) -> Option<&str> {
    let name = format!("aggregator_unavailable_apiservice{{name=\"{NAME}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name))
}

async fn cluster_23_the_gauge(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    extension.behave(Behavior::Answers(500, vec![]));
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    available(&server, "False").await;
    assert_eq!(gauge(&server.get("/metrics").await.text()), Some("1"));
    extension.behave(Behavior::Serves);
    available(&server, "True").await;
    assert_eq!(gauge(&server.get("/metrics").await.text()), Some("0"));
    server.delete(format!("{API_SERVICES}/{NAME}")).await.ok();
    assert_eq!(gauge(&server.get("/metrics").await.text()), None);
}
