//! exec, attach and portforward: 2.3.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::config::Kubeconfig;
use rowplane::api::subresource::connect::kubelets::Config;
use rowplane::audit::config::{
    self as audit, Batching, Delivery, LogConfig, LogFormat, LogTarget, Mode, Rotation,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::client::TlsStream;

use super::{POD, certificate, with_pod};
use crate::support::client::{connect, patient};
use crate::support::kubelet::{Head, Kubelet, node, pod};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    c33_who_may_only_get_runs_nothing,
    c34_what_is_no_upgrade,
    c35_spdy_passes_through,
    c36_websockets_pass_through,
    c37_kubelets_that_refuse,
    c41_a_limit_of_bytes,
    c72_a_server_that_stops_ends_streams,
    both_ends_free_each_other,
    the_record_of_a_stream_ends_with_it,
}

const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1";

/// Sends the head of a request for an upgrade, and reads the head of the answer.
pub async fn upgrade(kubeconfig: &Kubeconfig, line: &str, headers: &str) -> (TlsStream<TcpStream>, Head) {
    let mut stream = connect(kubeconfig, "http/1.1").await.expect("a connection");
    let request = format!("{line} HTTP/1.1\r\nHost: rowplane.example\r\n{headers}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let head = patient(line, Head::read(&mut stream)).await.expect("an answer");
    (stream, head)
}

async fn body(stream: &mut TlsStream<TcpStream>) -> String {
    let mut body = Vec::new();
    let _ = patient("the end", stream.read_to_end(&mut body)).await;
    String::from_utf8(body).expect("UTF-8")
}

async fn echoed(stream: &mut TlsStream<TcpStream>, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut buffer = vec![0; text.len()];
    patient("an echo", stream.read_exact(&mut buffer)).await.expect("an echo");
    assert_eq!(buffer, text.as_bytes());
}

async fn c33_who_may_only_get_runs_nothing(setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/t";
    let allow = async |server: &TestServer, verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs});
        server.put(format!("{rbac}/roles/r"), &json!({"metadata": {"name": "r"}, "rules": [rule]})).await
    };
    allow(&server, &["get"]).await;
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/rolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    let details = json!({"name": "p", "kind": "pods"});
    let refused = alice.get(format!("{POD}/exec?command=ls")).await;
    refused.fails(403, "Forbidden", "pods \"p\" is forbidden: ", details.clone());
    let text = "pods \"p\" is forbidden: User \"alice\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"t\"";
    alice.post(format!("{POD}/exec"), &json!(null)).await.fails(403, "Forbidden", text, details);
    allow(&server, &["get", "create"]).await;
    alice.get(format!("{POD}/exec?command=ls")).await.bad_request("Upgrade request required");
    allow(&server, &["create"]).await;
    alice.post(format!("{POD}/exec"), &json!(null)).await.bad_request("Upgrade request required");
    assert_eq!(alice.get(format!("{POD}/exec")).await.status, 403);
    assert_eq!(kubelet.seen().len(), 0);
}

async fn c34_what_is_no_upgrade(setup: Setup) {
    let server = setup.start().await;
    node(&server, 1).await;
    pod(&server, "p", Some("n"), &["c"]).await;
    for part in ["exec", "attach", "portforward"] {
        for answer in [
            server.get(format!("{POD}/{part}")).await,
            server.post(format!("{POD}/{part}"), &json!(null)).await,
        ] {
            answer.bad_request("Upgrade request required");
        }
        let dry = server.post(format!("{POD}/{part}?dryRun=All"), &json!(null)).await;
        dry.bad_request("dryRun is not supported");
        assert_eq!(server.put(format!("{POD}/{part}"), &json!(null)).await.status, 405);
    }
    let text = "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax";
    server.get(format!("{POD}/portforward?ports=x")).await.bad_request(text);
    // Connections of HTTP/2 have no upgrades.
    let answer = server.get(format!("{POD}/exec")).header("x-later", "connection").await;
    assert_eq!(answer.status, 400);
}

async fn c35_spdy_passes_through(mut setup: Setup) {
    let shown = certificate(&setup, "client");
    let files = (setup.file("client.crt"), setup.file("client.key"));
    setup.kubelets = Config { client_certificate: Some(files), ..Config::default() };
    let kubelet = Kubelet::echoing(
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io",
    )
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let query = "command=ls&command=-l&stdout=true&tty=1&stdin=0&container=c";
    let headers = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Forwarded-For: 192.0.2.1\r\n\
        X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: channel.k8s.io";
    let line = format!("POST {POD}/exec?{query}");
    let (mut stream, answer) = upgrade(&server.kubeconfig, &line, headers).await;
    assert_eq!(answer.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(answer.header("upgrade"), Some("SPDY/3.1"));
    assert_eq!(answer.header("x-stream-protocol-version"), Some("v4.channel.k8s.io"));
    let head = kubelet.only();
    assert_eq!(head.line, "POST /exec/t/p/c?command=ls&command=-l&output=1&tty=1");
    assert_eq!(head.all("x-stream-protocol-version"), ["v4.channel.k8s.io", "channel.k8s.io"]);
    assert_eq!((head.header("host"), head.header("connection")), (Some("rowplane.example"), Some("Upgrade")));
    assert_eq!(head.header("x-forwarded-for"), Some("192.0.2.1, 127.0.0.1"));
    assert_eq!(head.certificate, Some(shown));
    for text in ["a", &"b".repeat(1000), "\0\u{1}"] {
        echoed(&mut stream, text).await;
    }
    let (_stream, answer) =
        upgrade(&server.kubeconfig, &format!("POST {POD}/attach?stderr=1"), headers).await;
    assert_eq!(answer.header("upgrade"), Some("SPDY/3.1"));
    assert_eq!(kubelet.only().line, "POST /attach/t/p/c?error=1");
    let metrics = server.get("/metrics").await.text();
    let counted = r#"apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="proxied_to_kubelet"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    let gauge = r#"apiserver_longrunning_requests{verb="CONNECT",group="",version="v1",resource="pods",subresource="exec",scope="resource",component="apiserver"}"#;
    assert!(metrics.contains(&format!("{gauge} 1")), "{metrics}");
    drop(stream);
    while !server.get("/metrics").await.text().contains(&format!("{gauge} 0")) {}
}

async fn c36_websockets_pass_through(setup: Setup) {
    let kubelet = Kubelet::echoing(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x=\r\nSec-WebSocket-Protocol: v4.channel.k8s.io",
    )
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let headers = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v4.channel.k8s.io";
    let line = format!("GET {POD}/portforward?ports=80&ports=443");
    let (mut stream, answer) = upgrade(&server.kubeconfig, &line, headers).await;
    assert_eq!(answer.header("sec-websocket-accept"), Some("x="));
    assert_eq!(answer.all("sec-websocket-protocol"), ["v4.channel.k8s.io"]);
    let head = kubelet.only();
    assert_eq!(head.line, "GET /portForward/t/p?port=80%2C443");
    assert_eq!(head.header("sec-websocket-key"), Some("eA=="));
    echoed(&mut stream, "frame").await;
}

async fn c37_kubelets_that_refuse(setup: Setup) {
    let kubelet = Kubelet::start(|head, mut stream| async move {
        let status = if head.line.contains("output=1") { "200 OK" } else { "403 Forbidden" };
        let answer = format!("HTTP/1.1 {status}\r\nX-Why: because\r\nContent-Length: 3\r\n\r\nno!");
        stream.write_all(answer.as_bytes()).await.expect("written");
        let _ = stream.shutdown().await;
    })
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, head) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec?command=x"), SPDY).await;
    assert_eq!((&*head.line, head.header("x-why")), ("HTTP/1.1 403 Forbidden", Some("because")));
    assert_eq!(body(&mut stream).await, "no!", "and then the connection is closed");
    let (mut stream, head) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec?stdout=1"), SPDY).await;
    let length: usize = head.header("content-length").expect("a length").parse().expect("a number");
    let mut status = vec![0; length];
    stream.read_exact(&mut status).await.expect("a body");
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    assert_eq!(
        (&status["code"], &status["message"]),
        (&json!(500), &json!("invalid upgrade response: status code 200"))
    );
    // The connection is still one for requests.
    stream.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
    let head = patient("an answer", Head::read(&mut stream)).await.expect("an answer");
    assert_eq!(head.line, "HTTP/1.1 200 OK");

    let port = kubelet.address.port();
    drop(kubelet);
    let text = format!("error dialing backend: dial tcp 127.0.0.1:{port}: connect: connection refused");
    loop {
        let (mut stream, head) =
            upgrade(&server.kubeconfig, &format!("POST {POD}/exec"), &format!("{SPDY}\r\nX-Close: 1")).await;
        let length: usize = head.header("content-length").expect("a length").parse().expect("a number");
        let mut status = vec![0; length];
        stream.read_exact(&mut status).await.expect("a body");
        let status: Value = serde_json::from_slice(&status).expect("JSON");
        assert_eq!(status["code"], 500);
        if status["message"] == text {
            break;
        }
    }
}

async fn c41_a_limit_of_bytes(mut setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    setup.kubelets = Config { most_bytes: NonZeroU64::new(4000), ..Config::default() };
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec"), SPDY).await;
    let began = Instant::now();
    echoed(&mut stream, &"x".repeat(4000)).await;
    assert!(began.elapsed() > Duration::from_millis(800), "{:?}", began.elapsed());
}

async fn c72_a_server_that_stops_ends_streams(setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec"), SPDY).await;
    echoed(&mut stream, "before").await;
    let began = Instant::now();
    let stopped = tokio::spawn(server.stop());
    assert_eq!(body(&mut stream).await, "");
    patient("the stop", stopped).await.expect("stopped");
    assert!(began.elapsed() < Duration::from_secs(10), "nobody waits for the grace period");
}

async fn both_ends_free_each_other(setup: Setup) {
    let (freed, close) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (on_end, on_close) = (freed.clone(), close.clone());
    let kubelet = Kubelet::start(move |head, mut stream| {
        let (freed, close) = (freed.clone(), close.clone());
        async move {
            let answer = format!("HTTP/1.1 101 Switching Protocols\r\n{SPDY}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("written");
            if head.line.contains("output") {
                close.notified().await;
                stream.write_all(b"last words").await.expect("written");
                return stream.shutdown().await.expect("closed");
            }
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            assert_eq!(rest, b"typed");
            freed.notify_one();
        }
    })
    .await;
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec"), SPDY).await;
    stream.write_all(b"typed").await.expect("written");
    drop(stream);
    patient("the kubelet is free", on_end.notified()).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec?stdout=1"), SPDY).await;
    on_close.notify_one();
    assert_eq!(body(&mut stream).await, "last words");
}

async fn the_record_of_a_stream_ends_with_it(mut setup: Setup) {
    let (policy, path) = (setup.file("policy.yaml"), setup.file("audit.log"));
    let rules = "[{level: Metadata, resources: [{resources: [pods/exec]}]}, {level: None}]";
    let text = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: {rules}}}");
    std::fs::write(&policy, text).expect("written");
    let rotation = Rotation { largest: 0, days: 0, backups: 0, compress: false };
    let batches = Batching { buffer: 100, largest: 1, wait: Duration::ZERO, throttle: None, overlap: false };
    setup.audit = audit::Config {
        policy_file: Some(policy),
        log: Some(LogConfig {
            target: LogTarget::File { path: path.clone(), rotation },
            format: LogFormat::Json,
            delivery: Delivery { mode: Mode::Blocking, batches, truncation: None },
        }),
        ..audit::Config::default()
    };
    let kubelet = Kubelet::echoing(SPDY).await;
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec?command=ls"), SPDY).await;
    echoed(&mut stream, "a").await;
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(&path).expect("a log");
        text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    };
    let stages = || events().iter().map(|event| event["stage"].clone()).collect::<Vec<_>>();
    while stages().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    drop(stream);
    while stages().len() < 3 {
        tokio::task::yield_now().await;
    }
    let last = &events()[2];
    assert_eq!((&last["stage"], &last["verb"]), (&json!("ResponseComplete"), &json!("create")));
    assert_eq!(
        (&last["responseStatus"]["code"], &last["objectRef"]["subresource"]),
        (&json!(101), &json!("exec"))
    );
}
