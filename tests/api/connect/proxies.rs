//! Proxies of Nodes, Pods and Services: 2.4.

use std::io::{Read, Write as _};
use std::net::SocketAddr;

use flate2::Compression;
use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::{DeflateEncoder, GzEncoder};
use http::Method;
use http_body_util::BodyExt as _;
use rowplane::api::kubelets::Config;
use rowplane::api::service_routes::{self, FixedAddresses, parse_fixed};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use kube::config::Kubeconfig;

use super::streams::upgrade;
use super::{POD, certificate, with_pod};
use crate::support::client::{Client, Protocol};
use crate::support::kubelet::{Head, Kubelet};
use crate::support::preloaded;
use crate::support::process::Installation;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    cluster_42_ids_and_addresses,
    cluster_43_a_slash_at_the_root,
    cluster_44_services,
    who_cannot_be_reached,
    answers_that_cannot_be_read,
    cluster_46_redirects_lead_through_the_proxy,
    cluster_46_links_of_pages_lead_through_the_proxy,
    all_methods_and_bodies_pass,
    upgrades_pass_with_their_query,
    who_may_use_a_proxy,
}

/// The proxy of the Service `s`, to which the flag `--service-address` gives the address of the kubelet's stand-in: upstream
/// proxies to no local address, which tests have alone.
pub const SERVICE: &str = "/api/v1/namespaces/t/services/https:s:443/proxy";

pub async fn with_service(setup: &mut Setup, backend: &Kubelet) -> TestServer {
    let fixed = parse_fixed(&format!("t/s={}", backend.address)).expect("an address");
    let fixed = FixedAddresses::new([fixed]);
    setup.service_routes = service_routes::Config { fixed, ..service_routes::Config::default() };
    let server = setup.start().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "web", "port": 443}]}});
    server.post("/api/v1/namespaces/t/services", &service).await.expect(201);
    server
}

async fn cluster_42_ids_and_addresses(setup: Setup) {
    let kubelet = Kubelet::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let server = with_pod(&setup, &kubelet).await;
    for (kind, plural) in
        [("pod", "namespaces/t/pods"), ("service", "namespaces/t/services"), ("node", "nodes")]
    {
        for id in ["a:b:c:d", "ftp:p:80", ":80"] {
            let refused = server.get(format!("/api/v1/{plural}/{id}/proxy/x")).await;
            refused.bad_request(&format!("invalid {kind} request \"{id}\""));
        }
    }
    for ip in [None, Some("127.0.0.1"), Some("169.254.1.1"), Some("::1")] {
        let ips = ip.map(|ip| vec![json!({"ip": ip})]).unwrap_or_default();
        let status = json!({"status": {"podIPs": ips, "podIP": ip}});
        server.patch(format!("{POD}/status"), &status).await.ok();
        for id in ["p", "p:80", "https:p:443"] {
            let refused = server.get(format!("/api/v1/namespaces/t/pods/{id}/proxy/")).await;
            refused.bad_request("address not allowed");
        }
    }
    let details = json!({"name": "q", "kind": "pods"});
    let missing = server.get("/api/v1/namespaces/t/pods/q:80/proxy/").await;
    missing.fails(404, "NotFound", "pods \"q\" not found", details);
    // A Node on this host, by its kubelet's port and by another.
    for id in ["n", "http:n:1", "https:n:10250"] {
        server.get(format!("/api/v1/nodes/{id}/proxy/")).await.bad_request("address not allowed");
    }
    let details = json!({"name": "m", "kind": "nodes"});
    server.get("/api/v1/nodes/m/proxy/").await.fails(404, "NotFound", "nodes \"m\" not found", details);
    assert_eq!(kubelet.seen().len(), 0);
}

async fn cluster_43_a_slash_at_the_root(mut setup: Setup) {
    let kubelet = Kubelet::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let server = with_service(&mut setup, &kubelet).await;
    let moved = server.get(format!("{SERVICE}?a=b")).await;
    assert_eq!((moved.status, moved.body.len()), (301, 0));
    assert_eq!(moved.header("location"), Some(&*format!("{SERVICE}/?a=b")));
    // Two slashes would make a host of what follows them.
    let moved = server.get(format!("/{SERVICE}")).await;
    assert_eq!((moved.status, moved.header("location")), (301, Some(&*format!("{SERVICE}/"))));
    assert_eq!(server.request(Method::HEAD, SERVICE).await.status, 301);
    assert_eq!(kubelet.seen().len(), 0);
    assert_eq!(server.request(Method::OPTIONS, SERVICE).await.status, 200);
    assert_eq!(kubelet.only().line, "OPTIONS /");
    assert_eq!(server.get(format!("{SERVICE}/")).await.status, 200);
    assert_eq!(kubelet.only().line, "GET /");
}

/// A server without TLS that answers with the head that it was sent.
async fn mirror() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(head) = Head::read(&mut stream).await else { continue };
            let body = format!("{}\n{}", head.line, head.header("host").unwrap_or_default());
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

async fn cluster_44_services(mut setup: Setup) {
    let address = mirror().await;
    let fixed = parse_fixed(&format!("t/fixed:web={address}")).expect("an address");
    let fixed = FixedAddresses::new([fixed]);
    setup.service_routes = service_routes::Config { fixed, ..service_routes::Config::default() };
    let server = setup.start().await;
    let services = "/api/v1/namespaces/t/services";
    for name in ["s", "fixed"] {
        let service = json!({"metadata": {"name": name}, "spec": {"ports": [{"name": "web", "port": 80}]}});
        server.post(services, &service).await.expect(201);
    }
    let message = "no service port 81 found for service \"s\"";
    server.get(format!("{services}/s:81/proxy/")).await.fails(
        503,
        "ServiceUnavailable",
        message,
        json!(null),
    );
    let details = json!({"name": "s", "kind": "endpoints"});
    let missing = server.get(format!("{services}/s:80/proxy/")).await;
    missing.fails(404, "NotFound", "endpoints \"s\" not found", details);
    let endpoints = "/api/v1/namespaces/t/endpoints";
    server.post(endpoints, &json!({"metadata": {"name": "s"}})).await.expect(201);
    let message = "no endpoints available for service \"s\"";
    server.get(format!("{services}/s:80/proxy/")).await.fails(
        503,
        "ServiceUnavailable",
        message,
        json!(null),
    );
    // An address without a Pod could be anybody's.
    let subset = json!({"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "web", "port": 8080}]});
    server.patch(format!("{endpoints}/s"), &json!({"subsets": [subset]})).await.ok();
    for id in ["s:80", "s:web", "https:s:web", "s"] {
        let refused = server.get(format!("{services}/{id}/proxy/")).await;
        let message = format!("no endpoints available for service \"{id}\"");
        refused.fails(503, "ServiceUnavailable", &message, json!(null));
    }
    let answer = server.get(format!("{services}/fixed:80/proxy/a?b=c")).header("host", "asked.example").await;
    assert_eq!(answer.text(), "GET /a?b=c\nasked.example");
}

async fn who_cannot_be_reached(mut setup: Setup) {
    let kubelet = Kubelet::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let shown = certificate(&setup, "client");
    let files = (setup.file("client.crt"), setup.file("client.key"));
    setup.kubelets = Config { client_certificate: Some(files), ..Config::default() };
    let server = with_service(&mut setup, &kubelet).await;
    assert_eq!(server.get(format!("{SERVICE}/a%20b//c/?x=%2F1&y")).await.text(), "ok");
    let head = kubelet.only();
    assert_eq!(head.line, "GET /a%20b/c/?x=%2F1&y");
    assert!(head.certificate.is_none() && !shown.is_empty(), "only kubelets are shown the certificate");
    let port = kubelet.address.port();
    drop(kubelet);
    let mut gone = server.get(format!("{SERVICE}/")).await;
    while !gone.text().contains("refused") {
        gone = server.get(format!("{SERVICE}/")).await;
    }
    let message =
        format!("error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused");
    gone.fails(503, "ServiceUnavailable", &message, json!(null));
}

/// A backend may send any number of answers before its answer, and chunks that are none.
async fn answers_that_cannot_be_read(mut setup: Setup) {
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let early = |count: usize| "HTTP/1.1 103 Early\r\n\r\n".repeat(count);
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let answer = match head.line.rsplit('/').next() {
            Some("five") => early(5) + whole,
            Some("many") => early(100_000),
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nsize\r\n".to_owned(),
        };
        // Nobody reads all of it.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_service(&mut setup, &kubelet).await;
    assert_eq!(server.get(format!("{SERVICE}/five")).await.text(), "ok");
    let many = server.get(format!("{SERVICE}/many")).await;
    let message = "error trying to reach service: net/http: too many 1xx informational responses";
    many.fails(503, "ServiceUnavailable", message, json!(null));
    let chunks = server.get(format!("{SERVICE}/chunks")).await;
    assert_eq!(chunks.status, 502, "{chunks:?}");
    assert!(chunks.text().starts_with("error trying to reach service: "), "{chunks:?}");
}

async fn cluster_46_redirects_lead_through_the_proxy(mut setup: Setup) {
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let to = head.header("x-to").expect("a target");
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nAccess-Control-Allow-Origin: *\r\nKeep-Alive: 5\r\n\
             Content-Type: application/json\r\nX-Own: 1\r\nContent-Length: 9\r\n\r\n{{\"a\":\"/\"}}"
        );
        stream.write_all(answer.as_bytes()).await.expect("written");
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_service(&mut setup, &kubelet).await;
    let backend = format!("https://{}/x", kubelet.address);
    for (to, want) in
        [("/x", format!("{SERVICE}/x")), (&backend, format!("{SERVICE}/x")), ("y", "y".to_owned())]
    {
        let answer = server.get(format!("{SERVICE}/a/b")).header("x-to", to).await;
        assert_eq!((answer.status, answer.header("location")), (302, Some(&*want)));
        assert_eq!(answer.text(), "{\"a\":\"/\"}");
        let gone = ["access-control-allow-origin", "keep-alive"].map(|name| answer.header(name));
        assert_eq!((gone, answer.header("x-own")), ([None, None], Some("1")));
        let head = kubelet.only();
        assert_eq!(head.header("x-forwarded-uri"), Some(&*format!("{SERVICE}/a/b")));
        assert_eq!(head.header("x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(head.header("authorization"), None);
    }
}

async fn cluster_46_links_of_pages_lead_through_the_proxy(mut setup: Setup) {
    const PAGE: &str = "<html><a href=\"/x?y=1&amp;z\">/x</a><img src=/y/><a href=z>";
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let headers = head.header("x-headers").expect("headers").replace('|', "\r\n");
        let mut body = PAGE.as_bytes().to_vec();
        let is = |encoding: &str| headers.contains(encoding) && !headers.contains("X-Plain");
        if is("gzip") {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&body).expect("compressed");
            body = encoder.finish().expect("compressed");
        } else if is("deflate") {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&body).expect("compressed");
            body = encoder.finish().expect("compressed");
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n\r\n", body.len());
        stream.write_all(answer.as_bytes()).await.expect("written");
        if !head.line.starts_with("HEAD") {
            stream.write_all(&body).await.expect("written");
        }
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_service(&mut setup, &kubelet).await;
    let changed = format!("<html><a href=\"{SERVICE}/x?y=1&amp;z\">/x</a><img src={SERVICE}/y/><a href=z>");
    for (headers, want) in [
        ("Content-Type: text/html", &*changed),
        ("Content-Type: text/html; charset=utf-8", &*changed),
        ("Content-Type: text/html|Content-Encoding: gzip", &*changed),
        ("Content-Type: text/html|Content-Encoding: deflate", &*changed),
        ("Content-Type: text/html|Content-Encoding: br", PAGE),
        ("Content-Type: text/plain", PAGE),
        ("Content-Type: text/html|Location: z", PAGE),
    ] {
        let answer = server.get(format!("{SERVICE}/a")).header("x-headers", headers).await;
        let mut body = String::new();
        let read = match answer.header("content-encoding") {
            Some("gzip") => GzDecoder::new(&*answer.body).read_to_string(&mut body),
            Some("deflate") => DeflateDecoder::new(&*answer.body).read_to_string(&mut body),
            _ => Read::read_to_string(&mut &*answer.body, &mut body),
        };
        assert_eq!((answer.status, read.expect("the page"), &*body), (200, want.len(), want), "{headers}");
    }
    let headers = "Content-Type: text/html";
    let head = server.request(Method::HEAD, format!("{SERVICE}/a")).header("x-headers", headers).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(&*PAGE.len().to_string()));
    // What only says that it is compressed breaks off.
    let headers = "Content-Type: text/html|Content-Encoding: gzip|X-Plain: 1";
    // The reset may overtake the head of the answer.
    let broken = server.get(format!("{SERVICE}/a")).header("x-headers", headers).try_send().await;
    let whole = async { broken.ok()?.into_body().collect().await.ok() };
    assert!(whole.await.is_none());
}

async fn all_methods_and_bodies_pass(mut setup: Setup) {
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let length = head.header("content-length").map_or(0, |length| length.parse().expect("a number"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a body");
        let answer = format!("HTTP/1.1 418 Teapot\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("written");
        stream.write_all(&body).await.expect("written");
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_service(&mut setup, &kubelet).await;
    let body = "x".repeat(300_000);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer =
            server.request(method.clone(), format!("{SERVICE}/a")).body("text/x", body.clone()).await;
        assert_eq!((answer.status, answer.body.len()), (418, body.len()), "{method}");
        let head = kubelet.only();
        assert_eq!((head.line, head.headers.len() > 3), (format!("{method} /a"), true));
    }
}

async fn upgrades_pass_with_their_query(mut setup: Setup) {
    let kubelet = Kubelet::echoing("Connection: Upgrade\r\nUpgrade: own").await;
    let server = with_service(&mut setup, &kubelet).await;
    let headers = "Connection: Upgrade\r\nUpgrade: own";
    let (mut stream, head) =
        upgrade(&server.kubeconfig, &format!("GET {SERVICE}/cri/exec/x?a=b"), headers).await;
    assert_eq!((&*head.line, head.header("upgrade")), ("HTTP/1.1 101 Switching Protocols", Some("own")));
    assert_eq!(kubelet.only().line, "GET /cri/exec/x?a=b");
    stream.write_all(b"ping").await.expect("written");
    let mut pong = [0; 4];
    stream.read_exact(&mut pong).await.expect("an echo");
    assert_eq!(&pong, b"ping");
}

async fn who_may_use_a_proxy(mut setup: Setup) {
    let kubelet = Kubelet::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let server = with_service(&mut setup, &kubelet).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let names = ["https:s:443"];
    let rule = json!({"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": names, "verbs": ["get", "patch"]});
    let role = json!({"metadata": {"name": "r"}, "rules": [rule]});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    for (method, path, status) in [
        (Method::GET, "https:s:443/proxy/x", 200),
        (Method::HEAD, "https:s:443/proxy/x", 200),
        (Method::PATCH, "https:s:443/proxy/x", 200),
        (Method::POST, "https:s:443/proxy/x", 403),
        (Method::DELETE, "https:s:443/proxy/x", 403),
        // Only who may do everything.
        (Method::OPTIONS, "https:s:443/proxy/x", 403),
        (Method::GET, "s:443/proxy/x", 403),
    ] {
        let answer = alice.request(method.clone(), format!("/api/v1/namespaces/t/services/{path}")).await;
        assert_eq!(answer.status, status, "{method} {path}");
    }
}

/// A resolver that answers differently when it is asked again (CVE-2020-8562) leads nowhere: each name is looked up once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_was_checked_is_the_one_that_is_dialled() {
    let local = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let port = local.local_addr().expect("an address").port();
    let resolver = preloaded::compile("tests/support/preloaded/resolver.c");
    let installation = Installation::sqlite().env("LD_PRELOAD", resolver);
    let _server = installation.start().await;
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    let admin = Client::of_certificate(&kubeconfig, Protocol::Any);
    let addresses = json!([{"type": "Hostname", "address": "rebind.test"}]);
    let node = json!({"metadata": {"name": "n"}, "status": {"addresses": addresses}});
    admin.post("/api/v1/nodes", &node).await.expect(201);
    let path = format!("/api/v1/nodes/http:n:{port}/proxy/secret");
    let refused = admin.get(&path).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.text().contains("connection refused"), "{refused:?}");
    admin.get(&path).await.bad_request("address not allowed");
    drop(local);
}
