//! exec, attach and portforward: 2.3.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::config::Kubeconfig;
use rowplane::api::kubelets::Config;
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
    cluster_33_who_may_only_get_runs_nothing,
    cluster_34_what_is_no_upgrade,
    cluster_35_spdy_passes_through,
    cluster_36_websockets_pass_through,
    cluster_36_port_forward_is_tunnelled_through_websockets,
    cluster_36_channels_are_translated_to_streams,
    cluster_37_kubelets_that_refuse,
    cluster_41_a_limit_of_bytes,
    cluster_72_a_server_that_stops_ends_streams,
    both_ends_free_each_other,
    the_record_of_a_stream_ends_with_it,
}

const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1";

/// Sends the head of a request for an upgrade, and reads the head of the answer.
pub async fn upgrade(kubeconfig: &Kubeconfig, line: &str, headers: &str) -> (TlsStream<TcpStream>, Head) {
    let stream = connect(kubeconfig, "http/1.1").await.expect("a connection");
    upgrade_on(stream, line, headers).await
}

/// The exchange of [`upgrade`] on this connection.
pub async fn upgrade_on(
    mut stream: TlsStream<TcpStream>,
    line: &str,
    headers: &str,
) -> (TlsStream<TcpStream>, Head) {
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

async fn cluster_33_who_may_only_get_runs_nothing(setup: Setup) {
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

async fn cluster_34_what_is_no_upgrade(setup: Setup) {
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

async fn cluster_35_spdy_passes_through(mut setup: Setup) {
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
    let counted = r#"apiserver_websocket_streaming_requests_total{subresource="exec",proxy_type="translated_at_apiserver"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
    let gauge = r#"apiserver_longrunning_requests{verb="CONNECT",group="",version="v1",resource="pods",subresource="exec",scope="resource",component="apiserver"}"#;
    assert!(metrics.contains(&format!("{gauge} 1")), "{metrics}");
    drop(stream);
    while !server.get("/metrics").await.text().contains(&format!("{gauge} 0")) {}
}

async fn cluster_36_websockets_pass_through(setup: Setup) {
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

/// A frame of binary data as clients send it, with a mask of zeros.
fn masked(payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("short");
    [&[0x82, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// Reads a frame: its first byte, and what it holds.
async fn framed(stream: &mut TlsStream<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    patient("a frame", stream.read_exact(&mut head)).await.expect("a frame");
    let length = match head[1] {
        126 => patient("a frame", stream.read_u16()).await.expect("a frame"),
        length => length.into(),
    };
    let mut payload = vec![0; length.into()];
    patient("a frame", stream.read_exact(&mut payload)).await.expect("a frame");
    (head[0], payload)
}

async fn cluster_36_port_forward_is_tunnelled_through_websockets(setup: Setup) {
    let spdy = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io";
    let kubelet = Kubelet::echoing(spdy).await;
    let server = with_pod(&setup, &kubelet).await;
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Protocol: v4.channel.k8s.io, SPDY/3.1+portforward.k8s.io";
    let line = format!("GET {POD}/portforward");
    let (mut stream, answer) = upgrade(&server.kubeconfig, &line, websocket).await;
    assert_eq!(answer.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(answer.header("upgrade"), Some("websocket"));
    assert_eq!(answer.header("sec-websocket-protocol"), Some("SPDY/3.1+portforward.k8s.io"));
    assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.header("x-stream-protocol-version"), None);
    let head = kubelet.only();
    assert_eq!((&*head.line, head.header("upgrade")), ("POST /portForward/t/p", Some("SPDY/3.1")));
    assert_eq!(head.all("x-stream-protocol-version"), ["portforward.k8s.io"]);
    let left = ["sec-websocket-key", "sec-websocket-protocol", "sec-websocket-version"];
    assert_eq!(left.map(|name| head.header(name)), [None; 3]);
    stream.write_all(&masked(b"ping")).await.expect("written");
    let mut found = Vec::new();
    while found.len() < 4 {
        let (kind, payload) = framed(&mut stream).await;
        assert_eq!(kind, 0x82);
        found.extend(payload);
    }
    assert_eq!(found, b"ping");
    // A ping of the WebSocket is none of the kubelet's, and a goodbye ends all.
    stream.write_all(&[0x89, 0x81, 0, 0, 0, 0, b'x']).await.expect("written");
    assert_eq!(framed(&mut stream).await, (0x8a, b"x".to_vec()));
    stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.expect("written");
    assert_eq!(framed(&mut stream).await, (0x88, vec![3, 0xe8]));
    assert_eq!(patient("the end", stream.read(&mut [0; 1])).await.unwrap_or(0), 0);

    // Without a key nobody is asked.
    let keyless = websocket.replace("Sec-WebSocket-Key", "X-Key");
    assert_eq!(upgrade(&server.kubeconfig, &line, &keyless).await.1.line, "HTTP/1.1 400 Bad Request");
    assert_eq!(kubelet.seen().len(), 0);
    // Other protocols, and kubelets that know this one, get what the client says.
    let plain = websocket.replace(", SPDY/3.1+portforward.k8s.io", "");
    upgrade(&server.kubeconfig, &line, &plain).await;
    assert_eq!(kubelet.only().line, "GET /portForward/t/p");
    let status = json!({"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}});
    server.patch("/api/v1/nodes/n/status", &status).await.ok();
    upgrade(&server.kubeconfig, &line, websocket).await;
    let head = kubelet.only();
    assert_eq!((&*head.line, head.header("upgrade")), ("GET /portForward/t/p", Some("websocket")));
    let metrics = server.get("/metrics").await.text();
    for counted in [
        "apiserver_stream_tunnel_requests_total{code=\"101\"} 1",
        "apiserver_stream_tunnel_requests_total{code=\"400\"} 1",
        "apiserver_websocket_streaming_requests_total{subresource=\"portforward\",proxy_type=\"translated_at_apiserver\"} 3",
        "apiserver_websocket_streaming_requests_total{subresource=\"portforward\",proxy_type=\"proxied_to_kubelet\"} 1",
    ] {
        assert!(metrics.contains(counted), "{counted}: {metrics}");
    }
}

/// A frame of SPDY: its first four bytes as a number, its flags, and what it holds.
async fn spdy_frame(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<(u32, u32, Vec<u8>)> {
    let (head, length) = (stream.read_u32().await.ok()?, stream.read_u32().await.ok()?);
    let mut payload = vec![0; (length & 0x00ff_ffff) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head, length >> 24, payload))
}

fn spdy_data(stream: u32, payload: &[u8], is_last: bool) -> Vec<u8> {
    let length = u32::from(is_last) << 24 | u32::try_from(payload.len()).expect("short");
    [&stream.to_be_bytes()[..], &length.to_be_bytes(), payload].concat()
}

/// A kubelet whose `cat` ends with the code 42.
async fn cat() -> Kubelet {
    Kubelet::start(|head, mut stream| async move {
        if head.header("upgrade") != Some("SPDY/3.1") {
            let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nonly";
            stream.write_all(refusal.as_bytes()).await.expect("written");
            return;
        }
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
            X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("written");
        // Errors, stdin, stdout.
        for number in [1, 3, 5] {
            let (kind, _, payload) = spdy_frame(&mut stream).await.expect("a stream");
            assert_eq!((kind, &payload[..4]), (0x8003_0001, &u32::to_be_bytes(number)[..]));
        }
        stream.write_all(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2]).await.expect("a ping");
        let mut has_pong = false;
        loop {
            match spdy_frame(&mut stream).await {
                Some((3, 0, payload)) => {
                    stream.write_all(&spdy_data(5, &payload, false)).await.expect("written");
                }
                Some((3, _, _)) => break,
                Some((0x8003_0006, _, payload)) if payload == [0, 0, 0, 2] => has_pong = true,
                Some(_) => {}
                None => return,
            }
        }
        assert!(has_pong);
        let status = json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": "m",
            "details": {"causes": [{"reason": "ExitCode", "message": "42"}]}});
        let end = [spdy_data(5, b"", true), spdy_data(1, status.to_string().as_bytes(), true)].concat();
        stream.write_all(&end).await.expect("written");
        while spdy_frame(&mut stream).await.is_some() {}
    })
    .await
}

async fn cluster_36_channels_are_translated_to_streams(setup: Setup) {
    let kubelet = cat().await;
    let server = with_pod(&setup, &kubelet).await;
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io";
    let line = format!("GET {POD}/exec?command=cat&stdin=1&stdout=1");
    let (mut stream, answer) = upgrade(&server.kubeconfig, &line, websocket).await;
    assert_eq!(answer.line, "HTTP/1.1 101 Switching Protocols");
    assert_eq!(answer.header("sec-websocket-protocol"), Some("v5.channel.k8s.io"));
    assert_eq!(framed(&mut stream).await, (0x82, vec![1]));
    stream.write_all(&masked(b"\x00hello")).await.expect("written");
    assert_eq!(framed(&mut stream).await, (0x82, b"\x01hello".to_vec()));
    let head = kubelet.only();
    assert_eq!(head.line, "POST /exec/t/p/c?command=cat&input=1&output=1");
    assert_eq!(head.all("x-stream-protocol-version"), ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    assert_eq!(head.header("sec-websocket-key"), None);
    stream.write_all(&masked(&[255, 0])).await.expect("written");
    let message = framed(&mut stream).await;
    let status: Value = serde_json::from_slice(&message.1[1..]).expect("a status");
    assert_eq!((message.1[0], &status["reason"]), (3, &json!("NonZeroExitCode")));
    assert_eq!(status["details"], json!({"causes": [{"reason": "ExitCode", "message": "42"}]}));
    assert_eq!(framed(&mut stream).await, (0x88, vec![3, 0xe8]));

    // A kubelet that cannot be reached is told of in the channel for errors.
    drop(kubelet);
    let mut told = Value::Null;
    while !told["message"].as_str().is_some_and(|text| text.contains("connection refused")) {
        let (mut stream, _) = upgrade(&server.kubeconfig, &line, websocket).await;
        assert_eq!(framed(&mut stream).await, (0x82, vec![1]));
        let (_, message) = framed(&mut stream).await;
        assert_eq!(message[0], 3);
        told = serde_json::from_slice(&message[1..]).expect("a status");
        assert_eq!((&told["reason"], &told["code"]), (&json!("InternalError"), &json!(500)));
    }
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("apiserver_stream_translator_requests_total{code=\"200\"} 1"), "{metrics}");
}

async fn cluster_37_kubelets_that_refuse(setup: Setup) {
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

async fn cluster_41_a_limit_of_bytes(mut setup: Setup) {
    let kubelet = Kubelet::echoing(SPDY).await;
    setup.kubelets = Config { most_bytes: NonZeroU64::new(4000), ..Config::default() };
    let server = with_pod(&setup, &kubelet).await;
    let (mut stream, _) = upgrade(&server.kubeconfig, &format!("POST {POD}/exec"), SPDY).await;
    let began = Instant::now();
    echoed(&mut stream, &"x".repeat(4000)).await;
    assert!(began.elapsed() > Duration::from_millis(800), "{:?}", began.elapsed());
}

async fn cluster_72_a_server_that_stops_ends_streams(setup: Setup) {
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
