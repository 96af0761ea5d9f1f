//! Watches and logs over WebSockets, read by another's client (tungstenite).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::client::{connect, connect_as_nobody, patient};
use crate::support::kubelet::{Head, Kubelet};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};

on_every_store! {
    events_are_messages,
    what_a_watch_ends_with,
    other_forms_of_events,
    handshakes_that_are_refused,
    a_token_among_the_subprotocols,
    a_log_is_messages,
    a_log_breaks_off_when_the_server_stops,
    frames_that_make_no_sense,
    a_reader_who_stops,
}

const POD: &str = "/api/v1/namespaces/t/pods/p";
const GAUGE: &str = r#"apiserver_longrunning_requests{verb="WATCH",group="",version="v1",resource="configmaps",subresource="",scope="namespace",component="apiserver"}"#;

type Tls = TlsStream<TcpStream>;
/// A connection, and the subprotocol that the server has chosen.
pub type Opened = Result<(WebSocketStream<Tls>, Option<String>), Error>;

async fn open_on(stream: Tls, path: &str, headers: &[(&'static str, &str)]) -> Opened {
    let mut request = format!("wss://rowplane.example{path}").into_client_request()?;
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a value"));
    }
    let (socket, answer) = patient(path, client_async(request, stream)).await?;
    let protocol = answer.headers().get("sec-websocket-protocol");
    Ok((socket, protocol.map(|value| value.to_str().expect("text").to_owned())))
}

/// Opens a WebSocket.
pub async fn open(server: &TestServer, path: &str, headers: &[(&'static str, &str)]) -> Opened {
    open_on(connect(&server.kubeconfig, "http/1.1").await.expect("a connection"), path, headers).await
}

/// A watch as browsers ask for it.
async fn watch(server: &TestServer, query: &str, headers: &[(&'static str, &str)]) -> WebSocketStream<Tls> {
    let all = [&[("origin", "https://example.com")], headers].concat();
    open(server, &format!("{CONFIGMAPS}?watch=1&{query}"), &all).await.expect("a watch").0
}

async fn next(socket: &mut WebSocketStream<Tls>) -> Message {
    patient("a message", socket.next()).await.expect("a message").expect("no error")
}

/// An event, which is text with a line's end.
async fn event(socket: &mut WebSocketStream<Tls>) -> Value {
    match next(socket).await {
        Message::Text(text) if text.ends_with("}\n") => serde_json::from_str(&text).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

/// The code with which the server ends, and nothing after it.
async fn end(socket: &mut WebSocketStream<Tls>) -> u16 {
    let Message::Close(Some(close)) = next(socket).await else { panic!("more") };
    assert!(patient("the end", socket.next()).await.is_none_or(|rest| rest.is_err()));
    close.code.into()
}

async fn events_are_messages(setup: Setup) {
    let server = setup.start().await;
    let first = server.create("a", json!({"k": "é"})).await;
    let mut socket = watch(&server, "resourceVersion=0", &[]).await;
    assert_eq!(event(&mut socket).await, json!({"type": "ADDED", "object": first}));
    assert!(server.get("/metrics").await.text().contains(&format!("{GAUGE} 1")));
    for number in 0..3 {
        server.create(&format!("b{number}"), json!({})).await;
    }
    for number in 0..3 {
        assert_eq!(event(&mut socket).await["object"]["metadata"]["name"], format!("b{number}"));
    }
    // One that is longer than what is sent at once.
    let long = "x".repeat(700_000);
    server.create("long", json!({"k": long})).await;
    assert_eq!(event(&mut socket).await["object"]["data"]["k"], long);
    socket.send(Message::Text("nobody listens".into())).await.expect("sent");
    socket.send(Message::Binary(vec![0; 200_000].into())).await.expect("sent");
    socket.send(Message::Ping("are you there?".into())).await.expect("sent");
    assert_eq!(next(&mut socket).await, Message::Pong("are you there?".into()));
    server.delete(format!("{CONFIGMAPS}/a")).await.ok();
    assert_eq!(event(&mut socket).await["type"], "DELETED");
    socket.close(None).await.expect("sent");
    assert_eq!(end(&mut socket).await, 1000);
    while !server.get("/metrics").await.text().contains(&format!("{GAUGE} 0")) {}
    // One that only hangs up.
    drop(watch(&server, "", &[]).await);
    while !server.get("/metrics").await.text().contains(&format!("{GAUGE} 0")) {}
}

async fn what_a_watch_ends_with(setup: Setup) {
    let server = setup.start().await;
    let mut socket = watch(&server, "timeoutSeconds=1", &[]).await;
    assert_eq!(end(&mut socket).await, 1000);
    server.create("a", json!({})).await;
    let gone = server.revision().await;
    server.create("b", json!({})).await;
    server.compact(server.revision().await).await;
    let mut socket = watch(&server, &format!("resourceVersion={gone}"), &[]).await;
    let error = event(&mut socket).await;
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(end(&mut socket).await, 1000);
    let now = server.revision().await;
    let mut socket = watch(&server, &format!("resourceVersion={now}"), &[]).await;
    let stopped = tokio::spawn(server.stop());
    assert_eq!(end(&mut socket).await, 1000);
    patient("the stop", stopped).await.expect("stopped");
}

async fn other_forms_of_events(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut socket = watch(&server, list, &[("accept-encoding", "gzip")]).await;
    assert_eq!(event(&mut socket).await["type"], "ADDED");
    let bookmark = event(&mut socket).await;
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let mut socket = watch(&server, "resourceVersion=0", &table).await;
    assert_eq!(event(&mut socket).await["object"]["rows"][0]["cells"][0], "a");
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf;stream=watch")];
    let mut socket = watch(&server, "resourceVersion=0", &protobuf).await;
    let Message::Binary(message) = next(&mut socket).await else { panic!("text") };
    assert!(message.starts_with(b"\x0a\x05ADDED\x12"), "no length stands before it: {message:?}");
    // By the old path, and of one object.
    let path = "/api/v1/watch/namespaces/t/configmaps/a?resourceVersion=0";
    let (mut socket, _) = open(&server, path, &[("origin", "/")]).await.expect("a watch");
    assert_eq!(event(&mut socket).await["object"]["metadata"]["name"], "a");
}

async fn handshakes_that_are_refused(setup: Setup) {
    let server = setup.start().await;
    let path = format!("{CONFIGMAPS}?watch=1");
    let origin = ("origin", "https://example.com");
    for (headers, status, body) in [
        (&[][..], 403, ""),
        (&[("origin", "null")], 403, ""),
        (&[origin, ("sec-websocket-protocol", "a, b")], 400, ""),
        (&[origin, ("sec-websocket-version", "8")], 400, "missing or bad WebSocket Version"),
        (&[origin, ("sec-websocket-key", "")], 400, "mismatch challenge/response"),
    ] {
        let Err(Error::Http(answer)) = open(&server, &path, headers).await else { panic!("{headers:?}") };
        assert_eq!(answer.status(), status, "{headers:?}");
        assert_eq!(String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()), body);
        let version = answer.headers().get("sec-websocket-version");
        assert_eq!(version.is_some_and(|version| version == "13"), body.contains("Version"));
    }
    // What is wrong with the request comes first, as a Status.
    let wrong = open(&server, &format!("{path}&resourceVersion=x"), &[]).await;
    let Err(Error::Http(answer)) = wrong else { panic!("an answer") };
    let status: Value = serde_json::from_slice(answer.body().as_deref().expect("a body")).expect("JSON");
    assert_eq!((answer.status().as_u16(), &status["kind"]), (400, &json!("Status")));
    // A list is none, and not all that is upgraded is a WebSocket.
    let Err(Error::Http(answer)) = open(&server, CONFIGMAPS, &[origin]).await else { panic!("an answer") };
    assert_eq!(answer.status(), 200);
    let mut stream = connect(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let head = format!(
        "GET {path}&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    assert_eq!(patient("an answer", Head::read(&mut stream)).await.expect("a head").line, "HTTP/1.1 200 OK");
}

async fn a_token_among_the_subprotocols(setup: Setup) {
    let server = setup.start().await;
    let nobody = async || connect_as_nobody(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let path = format!("{CONFIGMAPS}?watch=1&resourceVersion=0");
    server.create("a", json!({})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/t";
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]});
    server
        .post(format!("{rbac}/roles"), &json!({"metadata": {"name": "r"}, "rules": [rule]}))
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/rolebindings"), &binding).await.expect(201);
    let token = URL_SAFE_NO_PAD.encode("alice-token");
    let offered = format!("base64url.bearer.authorization.k8s.io.{token}, mine");
    let headers = [("origin", "https://example.com"), ("sec-websocket-protocol", &*offered)];
    let (mut socket, protocol) = open_on(nobody().await, &path, &headers).await.expect("a watch");
    assert_eq!(protocol.as_deref(), Some("mine"), "the token is not said again");
    assert_eq!(event(&mut socket).await["type"], "ADDED");
    let Err(Error::Http(refused)) = open_on(nobody().await, &path, &headers[..1]).await else {
        panic!("a watch")
    };
    assert_eq!(refused.status(), 403);
}

async fn a_log_is_messages(setup: Setup) {
    let go = Arc::new(Notify::new());
    let gone = go.clone();
    let kubelet = Kubelet::start(move |_, mut stream| {
        let go = go.clone();
        async move {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await.expect("written");
            for line in [&b"6\r\nfirst\n\r\n"[..], b"3\r\n\x00\xff\n\r\n", b"0\r\n\r\n"] {
                go.notified().await;
                stream.write_all(line).await.expect("written");
            }
        }
    })
    .await;
    let server = setup.start().await;
    kubelet.join(&server, &["c"]).await;
    let path = format!("{POD}/log?follow=true");
    for (offered, chosen, is_text) in [
        (None, None, false),
        (Some("binary.k8s.io"), Some("binary.k8s.io"), false),
        (Some("x, base64.binary.k8s.io, binary.k8s.io"), Some("base64.binary.k8s.io"), true),
    ] {
        let headers: Vec<_> =
            offered.map(|offered| ("sec-websocket-protocol", offered)).into_iter().collect();
        let (mut socket, protocol) = open(&server, &path, &headers).await.expect("a log");
        assert_eq!(protocol.as_deref(), chosen);
        let message = |text: &'static str, bytes: &'static [u8]| match is_text {
            true => Message::Text(text.into()),
            false => Message::Binary(bytes.into()),
        };
        assert_eq!(next(&mut socket).await, message("", b""), "something comes at once");
        gone.notify_one();
        assert_eq!(next(&mut socket).await, message("Zmlyc3QK", b"first\n"));
        gone.notify_one();
        assert_eq!(next(&mut socket).await, message("AP8K", b"\x00\xff\n"));
        gone.notify_one();
        assert_eq!(end(&mut socket).await, 1000);
    }
    let Err(Error::Http(refused)) = open(&server, &path, &[("sec-websocket-protocol", "x")]).await else {
        panic!("a log")
    };
    assert_eq!(refused.status(), 403);
    // What is no log is no WebSocket either.
    let missing = open(&server, "/api/v1/namespaces/t/pods/q/log", &[]).await;
    assert!(matches!(missing, Err(Error::Http(answer)) if answer.status() == 404));
}

async fn a_log_breaks_off_when_the_server_stops(setup: Setup) {
    let kubelet = Kubelet::start(|_, mut stream| async move {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
        stream.write_all(head.as_bytes()).await.expect("written");
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let server = setup.start().await;
    kubelet.join(&server, &["c"]).await;
    let (mut socket, _) = open(&server, &format!("{POD}/log?follow=true"), &[]).await.expect("a log");
    assert_eq!(next(&mut socket).await, Message::Binary("".into()));
    assert_eq!(next(&mut socket).await, Message::Binary("hi".into()));
    let stopped = tokio::spawn(server.stop());
    assert_eq!(end(&mut socket).await, 1001, "it is not at its end");
    patient("the stop", stopped).await.expect("stopped");
}

async fn frames_that_make_no_sense(setup: Setup) {
    let server = setup.start().await;
    for (sent, told) in [
        // Not masked.
        (&b"\x81\x01a"[..], &b"\x88\x02\x03\xea"[..]),
        // A length of which the client sends nothing, before it hangs up.
        (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", b""),
        // A ping of two parts of the same length as the greatest, and more.
        (b"\x89\xfe\x00\x7e\x00\x00\x00\x00", b""),
    ] {
        let mut stream = connect(&server.kubeconfig, "http/1.1").await.expect("a connection");
        let head = format!(
            "GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
             Origin: /\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("written");
        let answer = patient("an answer", Head::read(&mut stream)).await.expect("an answer");
        assert_eq!(answer.line, "HTTP/1.1 101 Switching Protocols");
        assert_eq!(answer.header("sec-websocket-protocol"), None);
        stream.write_all(sent).await.expect("written");
        if told.is_empty() {
            stream.shutdown().await.expect("written");
        }
        let mut rest = Vec::new();
        let _ = patient("the end", stream.read_to_end(&mut rest)).await;
        assert_eq!(rest, told);
    }
    while !server.get("/metrics").await.text().contains(&format!("{GAUGE} 0")) {}
}

async fn a_reader_who_stops(mut setup: Setup) {
    setup.connections.response_progress = Duration::from_millis(500);
    let server = setup.start().await;
    let unread = watch(&server, "", &[]).await;
    let data = json!({"k": "x".repeat(900_000)});
    let mut number = 0;
    // Until the client's socket is full and its patience over.
    while server.get("/metrics").await.text().contains(&format!("{GAUGE} 1")) {
        if number < 30 {
            server.post(CONFIGMAPS, &config_map(&format!("n{number}"), data.clone())).await.expect(201);
        }
        number += 1;
    }
    drop(unread);
}
