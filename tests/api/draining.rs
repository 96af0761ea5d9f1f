//! A server that goes down, as those see it who are connected: docs/spec/list-watch.md, 4.4.

use std::convert::Infallible;

use futures_util::stream;
use http::{Method, Request, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::frames::{DATA, GOAWAY, Http2};
use crate::support::client::{connect, failure, patient};
use crate::support::server::{CONFIGMAPS, Setup, config_map, names};

on_every_store! {
    who_asks_a_server_that_drains,
}

async fn who_asks_a_server_that_drains(setup: Setup) {
    let server = setup.start().await;
    let kubeconfig = server.kubeconfig.clone();
    let mut idle = http1(&kubeconfig).await;
    // In both HTTPs a write of which a part has arrived.
    let one = Begun::new(&kubeconfig, "one").await;
    let two = config_map("two", json!({})).to_string();
    let mut http2 = Http2::new(connect(&kubeconfig, "h2").await.expect("a connection")).await;
    http2.begin(1, "POST", CONFIGMAPS).await;
    http2.send(DATA, 0, 1, &two.as_bytes()[..10]).await;
    let in_flight = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 2\n";
    while !server.get("/metrics").await.text().contains(in_flight) {}

    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1")).await;
    let stopping = tokio::spawn(server.stop());
    watch.expect_end().await;
    while http2.next().await.kind != GOAWAY {}
    // It has been told to go elsewhere; these requests were on their way.
    let details = json!({"retryAfterSeconds": 1});
    let refusal = failure(503, "ServiceUnavailable", "apiserver is shutting down", details);
    let paths = [CONFIGMAPS, &format!("{CONFIGMAPS}?watch=1"), "/apis", &format!("{CONFIGMAPS}/two")];
    for (stream, path) in (3..).step_by(2).zip(paths) {
        let (headers, body) = http2.get(stream, path).await;
        assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON"), refusal, "{path}");
        // `retry-after: 1`, as HPACK has it.
        assert!(headers.windows(3).any(|window| window == [0x0f, 0x26, 0x81]), "{path}: {headers:x?}");
    }
    let (_, ready) = http2.get(21, "/readyz").await;
    let ready = String::from_utf8_lossy(&ready).into_owned();
    assert!(ready.contains("[-]shutdown failed"), "{ready}");
    assert_eq!(http2.get(23, "/livez").await.1, b"ok");
    assert!(connect(&kubeconfig, "http/1.1").await.is_err(), "nobody new gets in");
    let late = idle.send_request(request(Method::GET, CONFIGMAPS, Full::default().boxed_unsync()));
    assert!(patient("an idle connection", late).await.is_err(), "nobody waits for it");

    // What was begun before is carried out.
    assert_eq!(one.finish().await, 201);
    http2.send(DATA, 1, 1, &two.as_bytes()[10..]).await;
    let (_, created) = http2.answer(1).await;
    let created: Value = serde_json::from_slice(&created).expect("JSON");
    assert_eq!((&created["kind"], &created["metadata"]["name"]), (&json!("ConfigMap"), &json!("two")));
    http2.end().await;
    patient("stop", stopping).await.expect("no panic");
    let server = setup.start().await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["one", "two"]);
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn http1(kubeconfig: &Kubeconfig) -> http1::SendRequest<Body> {
    let stream = connect(kubeconfig, "http/1.1").await.expect("a connection");
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("no I/O yet");
    tokio::spawn(connection);
    sender
}

fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("host", "kubernetes");
    request.header("content-type", "application/json").body(body).expect("a request")
}

/// A create whose body has been sent in part.
struct Begun {
    rest: Bytes,
    body: mpsc::UnboundedSender<Frame<Bytes>>,
    answer: JoinHandle<StatusCode>,
}

impl Begun {
    async fn new(kubeconfig: &Kubeconfig, name: &str) -> Self {
        let mut sender = http1(kubeconfig).await;
        let (body, mut frames) = mpsc::unbounded_channel();
        let frames = stream::poll_fn(move |context| frames.poll_recv(context).map(|frame| frame.map(Ok)));
        let mut start = Bytes::from(config_map(name, json!({})).to_string());
        let rest = start.split_off(10);
        body.send(Frame::data(start)).expect("a body that is awaited");
        let request = request(Method::POST, CONFIGMAPS, StreamBody::new(frames).boxed_unsync());
        let answer =
            tokio::spawn(async move { sender.send_request(request).await.expect("an answer").status() });
        Self { rest, body, answer }
    }

    async fn finish(self) -> StatusCode {
        self.body.send(Frame::data(self.rest)).expect("a body that is awaited");
        drop(self.body);
        patient("a write", self.answer).await.expect("no panic")
    }
}
