//! A server that goes down, as those see it who are connected: docs/spec/list-watch.md, 4.4.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http::{Method, Request, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::connect::proxies::{SERVICE, with_service};
use super::frames::{DATA, END_STREAM, GOAWAY, HEADERS, Http2};
use crate::support::client::{connect, patient};
use crate::support::kubelet::Kubelet;
use crate::support::server::{CONFIGMAPS, Setup, config_map, names, rv};

on_every_store! {
    who_asks_a_server_that_drains,
    connections_in_use_get_one_more_answer,
    for_the_delay_everything_goes_on,
    what_passes_through_comes_whole,
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases\
    ?labelSelector=apiserver.kubernetes.io/identity";

async fn who_asks_a_server_that_drains(mut setup: Setup) {
    setup.register("draining");
    let server = setup.start().await;
    let kubeconfig = server.kubeconfig.clone();
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
    for (stream, path, kind) in [
        (3, CONFIGMAPS, "ConfigMapList"),
        (5, "/apis", "APIGroupList"),
        (7, &*format!("{CONFIGMAPS}/two"), "Status"),
        (9, LEASES, "LeaseList"),
    ] {
        let answered: Value = serde_json::from_slice(&http2.get(stream, path).await.1).expect("JSON");
        assert_eq!(answered["kind"], kind, "{answered}");
        if kind == "LeaseList" {
            assert_eq!(names(&answered).len(), 1, "it writes, so it is registered: {answered}");
        }
    }
    http2.begin(11, "POST", CONFIGMAPS).await;
    http2.send(DATA, 1, 11, config_map("three", json!({})).to_string().as_bytes()).await;
    let created: Value = serde_json::from_slice(&http2.answer(11).await.1).expect("JSON");
    assert_eq!(created["metadata"]["name"], "three", "{created}");
    // A watch tells what there is, or where it stands, before it ends: without that, clients would list anew.
    let seen = created["metadata"]["resourceVersion"].as_str().expect("a revision");
    for (stream, from, told) in
        [(13, "0", "ADDED"), (15, &*format!("{seen}&allowWatchBookmarks=true"), "BOOKMARK")]
    {
        let path = format!("{CONFIGMAPS}?watch=1&resourceVersion={from}");
        let (_, events) = http2.get(stream, &path).await;
        let text = String::from_utf8(events).expect("UTF-8");
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let told_of: Vec<_> = events.iter().map(|event| (&event["type"], rv(&event["object"]))).collect();
        assert_eq!(told_of, [(&json!(told), rv(&created))], "{text}");
    }
    let (_, ready) = http2.get(21, "/readyz").await;
    let ready = String::from_utf8_lossy(&ready).into_owned();
    assert!(ready.contains("[-]shutdown failed"), "{ready}");
    assert_eq!(http2.get(23, "/livez").await.1, b"ok");
    assert!(connect(&kubeconfig, "http/1.1").await.is_err(), "nobody new gets in");

    // What was begun before is carried out.
    assert_eq!(one.finish().await, 201);
    http2.send(DATA, 1, 1, &two.as_bytes()[10..]).await;
    let (_, created) = http2.answer(1).await;
    let created: Value = serde_json::from_slice(&created).expect("JSON");
    assert_eq!((&created["kind"], &created["metadata"]["name"]), (&json!("ConfigMap"), &json!("two")));
    http2.end().await;
    patient("stop", stopping).await.expect("no panic");
    let server = setup.start().await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["one", "three", "two"]);
}

/// Whoever has just asked, or has just connected, may ask once more, and is told that this was the last time.
async fn connections_in_use_get_one_more_answer(setup: Setup) {
    let server = setup.start().await;
    let kubeconfig = server.kubeconfig.clone();
    let (mut used, mut fresh, mut watching) =
        (http1(&kubeconfig).await, http1(&kubeconfig).await, http1(&kubeconfig).await);
    let first = used.send_request(create("first")).await.expect("an answer");
    assert_eq!((first.status(), first.headers().get("connection")), (StatusCode::CREATED, None));
    first.into_body().collect().await.expect("a body");
    let path = format!("{CONFIGMAPS}?watch=1");
    let watch = watching.send_request(request(Method::GET, &path, Full::default().boxed_unsync())).await;
    let watch = watch.expect("a watch");
    assert_eq!((watch.status(), watch.headers().get("connection")), (StatusCode::OK, None));

    let stopping = tokio::spawn(server.stop());
    watch.into_body().collect().await.expect("a clean end");
    assert!(connect(&kubeconfig, "http/1.1").await.is_err(), "nobody new gets in");
    for (client, name) in [(&mut used, "second"), (&mut fresh, "third"), (&mut watching, "fourth")] {
        client.ready().await.expect("a connection that stands");
        let answer = client.send_request(create(name)).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(answer.headers()["connection"], "close");
        answer.into_body().collect().await.expect("a body");
    }
    patient("stop", stopping).await.expect("no panic");
    for client in [&mut used, &mut fresh, &mut watching] {
        assert!(client.ready().await.is_err(), "it has been closed");
    }
    let server = setup.start().await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["first", "fourth", "second", "third"]);
}

/// For the delay, a server that is stopped is not ready, and all else as ever.
async fn for_the_delay_everything_goes_on(mut setup: Setup) {
    // Nobody waits for its end.
    setup.shutdown_delay = Duration::from_secs(60 * 60);
    let server = setup.start().await;
    let kubeconfig = server.kubeconfig.clone();
    let (client, mut watch) = (server.admin.clone(), server.watch(format!("{CONFIGMAPS}?watch=1")).await);
    let stopping = tokio::spawn(server.stop());
    while !client.get("/readyz").await.text().contains("[-]shutdown failed") {}
    let mut new = http1(&kubeconfig).await;
    let created = new.send_request(create("one")).await.expect("an answer");
    assert_eq!((created.status(), created.headers().get("connection")), (StatusCode::CREATED, None));
    watch.expect_named("ADDED", "one").await;
    stopping.abort();
}

/// An answer of somebody else's that is awaited is passed on, and so is one that is asked for while the server drains, however
/// long it is: only what follows something without an end, and began before, ends.
async fn what_passes_through_comes_whole(mut setup: Setup) {
    let go = Arc::new(Semaphore::new(0));
    let gone = go.clone();
    let kubelet = Kubelet::start(move |head, mut stream| {
        let go = go.clone();
        async move {
            let follows = head.line.contains("follow=true");
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
            if follows {
                stream.write_all(head.as_bytes()).await.expect("written");
            }
            go.acquire().await.expect("open").forget();
            if !follows {
                stream.write_all(head.as_bytes()).await.expect("written");
            }
            let _ = stream.write_all(b"4\r\n all\r\n0\r\n\r\n").await;
        }
    })
    .await;
    let server = with_service(&mut setup, &kubelet).await;
    kubelet.join(&server, &["c"]).await;
    let mut http2 = Http2::new(connect(&server.kubeconfig, "h2").await.expect("a connection")).await;
    let (log, proxy) = ("/api/v1/namespaces/t/pods/p/log", &*format!("{SERVICE}/some"));
    http2.ask(1, log).await;
    http2.ask(3, proxy).await;
    patient("two questions", kubelet.asked(2)).await;
    let stopping = tokio::spawn(server.stop());
    while http2.next().await.kind != GOAWAY {}
    http2.ask(5, &format!("{log}?follow=true")).await;
    http2.ask(7, proxy).await;
    patient("two more questions", kubelet.asked(4)).await;
    gone.add_permits(4);
    let mut bodies = [(1, Vec::new()), (3, Vec::new()), (5, Vec::new()), (7, Vec::new())];
    let mut open = bodies.len();
    while open > 0 {
        let frame = http2.next().await;
        assert!([HEADERS, DATA].contains(&frame.kind), "reset: {}", frame.kind);
        if frame.kind == DATA {
            let (_, body) = bodies.iter_mut().find(|(id, _)| *id == frame.stream).expect("a stream");
            body.extend(frame.payload);
        }
        open -= usize::from(frame.flags & END_STREAM != 0);
    }
    for (stream, body) in bodies {
        assert_eq!(String::from_utf8_lossy(&body), "hi all", "{stream}");
    }
    http2.end().await;
    patient("stop", stopping).await.expect("no panic");
}

fn create(name: &str) -> Request<Body> {
    request(Method::POST, CONFIGMAPS, Full::from(config_map(name, json!({})).to_string()).boxed_unsync())
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
