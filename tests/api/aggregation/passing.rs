//! Requests that an extension server answers: 1.4 and 1.5.

use futures_util::{SinkExt as _, StreamExt as _};
use http::Method;
use http_body_util::BodyExt as _;
use rowplane::server::config::ProxyClient;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

use super::{beside, with_extension};
use crate::connect::certificate;
use crate::connect::streams::upgrade;
use crate::support::client::patient;
use crate::support::extension::{API_SERVICES, Behavior, ExtensionServer, NAME, THINGS, available};
use crate::support::server::{ALICE, Setup, TestServer};
use crate::websockets::open;

on_every_store! {
    cluster_10_who_asks,
    cluster_11_in_whose_name,
    cluster_12_who_cannot_be_reached,
    cluster_13_redirects,
    cluster_13_redirects_that_are_allowed,
    cluster_14_the_server_itself,
    cluster_19_watches,
    cluster_19_upgrades,
    cluster_19_websockets,
    cluster_19_spdy,
    cluster_19_discovery_of_a_server_that_hangs,
    cluster_20_who_is_believed,
    cluster_21_another_certificate,
    connections_are_kept,
    nobody_pays_for_a_server_that_hangs_or_floods,
    a_path_is_taken_over_and_given_back,
    who_may_not,
}

const THING: &str = "/apis/ext.example.io/v1/namespaces/t/things/a";

/// Lets alice do everything with things.
async fn allow(server: &TestServer) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": ["ext.example.io"], "resources": ["*"], "verbs": ["*"]});
    let role = json!({"metadata": {"name": "things"}, "rules": [rule]});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "things"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
}

async fn cluster_10_who_asks(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    allow(&server).await;
    let alice = server.token("alice-token");
    let answer = alice
        .post(format!("{THING}?b=2&a=1"), &json!({"a": 1}))
        .header("x-remote-user", "root")
        .header("x-remote-extra-scopes", "all")
        .header("audit-id", "own-id")
        .await;
    assert_eq!(answer.ok()["path"], THING);
    let asked = extension.asked(THING);
    assert_eq!(asked.method, "POST");
    assert_eq!(asked.path, format!("{THING}?a=1&b=2"));
    assert_eq!(asked.body, "{\"a\":1}");
    assert_eq!(asked.all("x-remote-user"), ["alice"]);
    assert_eq!(asked.all("x-remote-uid"), ["u-1"]);
    assert_eq!(asked.all("x-remote-group"), ["developers", "system:authenticated"]);
    assert_eq!(asked.all("x-remote-extra-scopes"), [""; 0]);
    assert_eq!(asked.all("authorization"), [""; 0]);
    assert_eq!(asked.all("audit-id"), ["own-id"]);
    assert_eq!(asked.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(asked.all("x-forwarded-uri"), [THING]);
    assert_eq!(asked.all("x-forwarded-host"), [extension.address.to_string()]);
    assert_eq!(asked.all("x-forwarded-proto"), ["https"]);
    assert!(asked.certificate.is_some() && asked.server_name == "ext.t.svc" && asked.is_http2);
    let answer = alice.get(THING).await;
    let audit_id = answer.header("audit-id").expect("an id").to_owned();
    assert_eq!(extension.asked(THING).all("audit-id"), [audit_id]);
}

async fn cluster_11_in_whose_name(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let answer = server
        .get(THING)
        .header("impersonate-user", "bob")
        .header("impersonate-group", "system:masters")
        .header("impersonate-extra-example.org%2ffoo%25", "1");
    answer.await.ok();
    let asked = extension.asked(THING);
    assert_eq!(asked.all("x-remote-user"), ["bob"]);
    assert_eq!(asked.all("x-remote-group"), ["system:masters", "system:authenticated"]);
    assert_eq!(asked.all("x-remote-extra-example.org%2ffoo%25"), ["1"]);
    assert!(asked.headers.keys().all(|name| !name.as_str().starts_with("impersonate-")), "{asked:?}");
}

async fn cluster_12_who_cannot_be_reached(mut setup: Setup) {
    let mut extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    extension.behave(Behavior::Answers(500, vec![]));
    server.post(API_SERVICES, &extension.api_service()).await.expect(201);
    available(&server, "False").await;
    let refused = server.get(THING).await;
    assert_eq!(refused.status, 503);
    let text = refused.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "service unavailable");
    assert!(lines[1].starts_with("APIService v1.ext.example.io: FailedDiscoveryCheck: "), "{text}");
    assert_eq!(refused.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
    extension.behave(Behavior::Serves);
    available(&server, "True").await;
    // A bundle that cannot be read: nobody can check either, so it stays available.
    let bundle = |text: &str| json!({"spec": {"caBundle": text}});
    server.patch(format!("{API_SERVICES}/{NAME}"), &bundle("YWJj")).await.ok();
    let refused = server.get(THING).await;
    assert_eq!(refused.status, 500);
    assert!(refused.text().starts_with("unable to load root certificates: "), "{refused:?}");
    server.patch(format!("{API_SERVICES}/{NAME}"), &bundle(&extension.ca_bundle)).await.ok();
    server.get(THING).await.ok();
    extension.stop().await;
    let refused = server.get(THING).await;
    assert_eq!(refused.status, 503);
    assert!(refused.text().starts_with("error trying to reach service: "), "{refused:?}");
}

const REDIRECT: Behavior = Behavior::Answers(302, Vec::new());

fn redirecting(to: &'static str) -> Behavior {
    Behavior::Answers(302, vec![("location", to)])
}

async fn cluster_13_redirects(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    extension.behave(redirecting("/evil"));
    let refused = server.get(THING).await;
    assert_eq!(refused.status, 502);
    let want = "the backend attempted to redirect this request, which is not permitted";
    assert_eq!(refused.text(), want);
    assert_eq!(refused.header("location"), None);
    extension.behave(REDIRECT);
    assert_eq!(server.get(THING).await.status, 302, "without Location it passes");
}

async fn cluster_13_redirects_that_are_allowed(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    setup.aggregation.rejects_redirects = false;
    let server = with_extension(&mut setup, &extension).await;
    extension.behave(redirecting("/there"));
    let passed = server.get(THING).await;
    assert_eq!(passed.status, 302);
    let want = format!("https://{}/there", extension.address);
    assert_eq!(passed.header("location"), Some(&*want));
}

async fn cluster_14_the_server_itself(setup: Setup) {
    let server = setup.start().await;
    let service = json!({"metadata": {"name": "v1.loop.example.io"}, "spec": {
        "group": "loop.example.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "service": {"namespace": "default", "name": "kubernetes"}, "insecureSkipTLSVerify": true}});
    server.post(API_SERVICES, &service).await.expect(201);
    // It asks itself for a group that it does not have, so it is never available, and nothing goes round in circles.
    let path = format!("{API_SERVICES}/v1.loop.example.io");
    loop {
        let found = server.get(&path).await.ok();
        let condition = &found["status"]["conditions"][0];
        if condition["reason"] == "FailedDiscoveryCheck" || condition["reason"] == "EndpointsNotFound" {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/apis/loop.example.io/v1/things").await.status, 503);
    server.get("/api/v1/namespaces").await.ok();
}

async fn cluster_19_watches(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    setup.limits.request_timeout = std::time::Duration::from_millis(200);
    let server = with_extension(&mut setup, &extension).await;
    let mut watch = server.watch(format!("{THINGS}?watch=1")).await;
    watch.expect_named("ADDED", "first").await;
    // Other requests end by their time meanwhile, and the watch goes on.
    extension.behave(Behavior::Hangs);
    server.get(THING).await.timed_out();
    extension.behave(Behavior::Serves);
    server.get(THING).await.ok();
    let still = tokio::time::timeout(std::time::Duration::from_millis(300), watch.next()).await;
    assert!(still.is_err(), "{still:?}");
}

async fn cluster_19_upgrades(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let headers = "Connection: Upgrade\r\nUpgrade: echo\r\nX-Remote-User: evil";
    let (mut stream, head) = upgrade(&server.kubeconfig, &format!("GET {THING}/exec?b=1&a=2"), headers).await;
    assert!(head.line.contains("101 Switching Protocols"), "{head:?}");
    stream.write_all(b"hello").await.expect("written");
    let mut buffer = [0; 5];
    patient("an echo", stream.read_exact(&mut buffer)).await.expect("an echo");
    assert_eq!(&buffer, b"hello");
    let asked = extension.asked(&format!("{THING}/exec"));
    assert_eq!(asked.all("x-remote-user"), ["kubernetes-admin"]);
    assert_eq!(asked.path, format!("{THING}/exec?a=2&b=1"));
    assert!(!asked.is_http2 && asked.certificate.is_some());
}

async fn cluster_19_websockets(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let offered = [("sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io")];
    let (mut socket, chosen) = open(&server, &format!("{THING}/exec"), &offered).await.expect("a handshake");
    assert_eq!(chosen.as_deref(), Some("v5.channel.k8s.io"));
    for message in [Message::binary(vec![0, 255]), Message::text("é"), Message::binary(vec![7; 1 << 20])] {
        socket.send(message.clone()).await.expect("sent");
        assert_eq!(patient("a message", socket.next()).await.expect("a message").expect("no error"), message);
    }
    socket.close(None).await.expect("closed");
    let asked = extension.asked(&format!("{THING}/exec"));
    assert_eq!(asked.all("sec-websocket-protocol"), ["v5.channel.k8s.io, v4.channel.k8s.io"]);
    assert_eq!(asked.all("x-remote-user"), ["kubernetes-admin"]);
}

async fn cluster_19_spdy(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    let headers = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\
        X-Stream-Protocol-Version: channel.k8s.io";
    let (mut stream, head) = upgrade(&server.kubeconfig, &format!("POST {THING}/exec"), headers).await;
    assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(head.all("upgrade"), ["SPDY/3.1"]);
    assert_eq!(head.all("x-stream-protocol-version"), ["v4.channel.k8s.io"]);
    // A ping of SPDY is answered by the same frame.
    let ping = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
    stream.write_all(&ping).await.expect("written");
    let mut pong = [0; 12];
    patient("a pong", stream.read_exact(&mut pong)).await.expect("a pong");
    assert_eq!(pong, ping);
    let asked = extension.asked(&format!("{THING}/exec"));
    assert_eq!(asked.method, "POST");
    assert_eq!(asked.all("x-stream-protocol-version"), ["v4.channel.k8s.io", "channel.k8s.io"]);
}

async fn cluster_19_discovery_of_a_server_that_hangs(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    extension.behave(Behavior::Hangs);
    let began = std::time::Instant::now();
    let refused = server.get("/apis/ext.example.io/v1").await;
    assert!(began.elapsed().as_secs() >= 5, "{:?}", began.elapsed());
    assert_eq!(refused.status, 503);
    assert_eq!(refused.text(), "error trying to reach service: context deadline exceeded\n");
}

async fn cluster_20_who_is_believed(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    setup.cluster_authentication = true;
    let server = with_extension(&mut setup, &extension).await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let data = server.get(path).await.ok()["data"].clone();
    for (key, value) in [
        ("username-headers", "[\"X-Remote-User\"]"),
        ("uid-headers", "[\"X-Remote-Uid\"]"),
        ("group-headers", "[\"X-Remote-Group\"]"),
        ("extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
        ("allowed-names", "[\"front-proxy-client\"]"),
    ] {
        assert_eq!(data[format!("requestheader-{key}")], value, "{data}");
    }
    let authority = data["requestheader-client-ca-file"].as_str().expect("PEM");
    let (_, authority) = x509_parser::pem::parse_x509_pem(authority.as_bytes()).expect("PEM");
    let authority = authority.parse_x509().expect("a certificate");
    let shown = extension.asked("/apis/ext.example.io/v1").certificate.expect("a certificate");
    let (_, shown) = x509_parser::parse_x509_certificate(&shown).expect("a certificate");
    assert_eq!(shown.issuer(), authority.subject());
    // This server believes no front proxy: it was told of none.
    let users = data["client-ca-file"].as_str().expect("PEM");
    assert!(!users.contains(data["requestheader-client-ca-file"].as_str().expect("PEM").trim()));
}

async fn cluster_21_another_certificate(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let first = certificate(&setup, "proxy");
    let (certificate_file, key) = (setup.file("proxy.crt"), setup.file("proxy.key"));
    setup.aggregation.client = ProxyClient::Files { certificate: certificate_file, key };
    let server = with_extension(&mut setup, &extension).await;
    server.get(THING).await.ok();
    assert_eq!(extension.asked(THING).certificate, Some(first));
    let second = certificate(&setup, "proxy");
    server.reload_credentials().await;
    server.get(THING).await.ok();
    assert_eq!(extension.asked(THING).certificate, Some(second));
}

async fn connections_are_kept(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    server.get(THING).await.ok();
    let before = extension.connections();
    for _ in 0..50 {
        server.get(THING).await.ok();
    }
    // The checks and documents of the start may still make some of their own.
    let made = extension.connections() - before;
    assert!(made < 10, "{made}");
}

async fn nobody_pays_for_a_server_that_hangs_or_floods(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    extension.behave(Behavior::Hangs);
    let hanging: Vec<_> = (0..20)
        .map(|_| {
            let request = server.get(THING);
            tokio::spawn(async move { request.send().await.status().as_u16() })
        })
        .collect();
    server.get("/api/v1/namespaces").await.ok();
    server.get("/apis").await.ok();
    extension.behave(Behavior::Floods);
    for one in hanging {
        assert_eq!(one.await.expect("an answer"), 503);
    }
    // A reader that stops holds up nobody: its answer waits at the extension server.
    let mut flood = server.request(Method::GET, THING).send().await;
    let first = flood.frame().await.expect("a piece").expect("a piece");
    assert!(first.is_data());
    server.get("/api/v1/namespaces").await.ok();
    extension.behave(Behavior::Serves);
    server.get(THING).await.ok();
}

async fn a_path_is_taken_over_and_given_back(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = beside(&mut setup, &extension).await;
    let definition = json!({"metadata": {"name": "things.ext.example.io"}, "spec": {"group": "ext.example.io",
        "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    let own = json!({"kind": "Thing", "apiVersion": "ext.example.io/v1", "metadata": {"name": "a"}});
    while server.get(THINGS).await.status != 200 {
        tokio::task::yield_now().await;
    }
    server.post(THINGS, &own).await.expect(201);
    // Whoever takes the label off takes it over.
    let path = format!("{API_SERVICES}/{NAME}");
    while server.get(&path).await.status != 200 {
        tokio::task::yield_now().await;
    }
    let mut service = server.get(&path).await.ok();
    service["metadata"]["labels"] = json!({});
    service["spec"] = extension.api_service()["spec"].clone();
    server.put(&path, &service).await.ok();
    available(&server, "True").await;
    assert_eq!(server.get(THING).await.ok()["path"], THING);
    server.delete(&path).await.ok();
    assert_eq!(server.get(THING).await.ok()["metadata"]["name"], "a");
}

async fn who_may_not(mut setup: Setup) {
    let extension = ExtensionServer::start().await;
    let server = with_extension(&mut setup, &extension).await;
    extension.seen();
    let alice = server.token("alice-token");
    assert!(ALICE.starts_with("alice-token"));
    let details = json!({"name": "a", "group": "ext.example.io", "kind": "things"});
    let message = "things.ext.example.io \"a\" is forbidden: User \"alice\" cannot get resource \"things\" in API group \"ext.example.io\" in the namespace \"t\"";
    alice.get(THING).await.fails(403, "Forbidden", message, details);
    assert_eq!(server.anonymous().get(THING).await.status, 403);
    assert!(extension.seen().iter().all(|asked| asked.path != THING));
    // A right that was just taken away counts for what no commit confirms.
    allow(&server).await;
    alice.delete(THING).await.ok();
    server.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/things").await.ok();
    assert_eq!(alice.delete(THING).await.status, 403);
}
