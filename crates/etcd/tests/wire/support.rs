//! A server without a socket, and calls of it.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use rowplane_etcd::engine::{Config, Etcd};
use rowplane_etcd::wire::{Options, Peer, Server};
use rowplane_store::random::Random;
use rowplane_store::runtime::Runtime;
use rowplane_store::storage::{HighWaterMark, memory};
use rowplane_store::wall_clock::WallClock;
use serde_json::Value;
use tonic::body::Body;

/// A server whose store is opened when it is called first.
pub fn server() -> Server {
    server_with(None)
}

pub fn server_with(quota: Option<u64>) -> Server {
    let open = || {
        async {
            let (runtime, mark) = (Runtime::default(), Arc::new(HighWaterMark::default()));
            Etcd::open(memory::open(), mark, &runtime, Config::default())
                .await
                .map_err(|error| error.to_string())
        }
        .boxed()
    };
    let options = Options {
        name: "one".to_owned(),
        advertised: Vec::new(),
        version: "3.7.1".to_owned(),
        longest_request: 1536 << 10,
        quota,
        scratch: std::env::temp_dir(),
        clock: WallClock::default(),
        random: Random::default(),
    };
    Server::new(options, Box::new(open))
}

fn peer() -> Peer {
    Peer { scheme: "http", certificate: None }
}

/// The answer of the gateway, which may go on.
pub async fn begin(server: &Server, path: &str, body: &str, token: &str) -> Response<Body> {
    let request = Request::post(format!("http://one:2379/v3/{path}")).header("host", "one:2379");
    let request = if token.is_empty() { request } else { request.header("authorization", token) };
    server.answer(request.body(Full::from(body.to_owned())).expect("a request"), peer()).await
}

/// The status and the answer of the gateway.
pub async fn post_as(server: &Server, path: &str, body: Value, token: &str) -> (u16, Value) {
    let response = begin(server, path, &body.to_string(), token).await;
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&text).expect("JSON"))
}

pub async fn post(server: &Server, path: &str, body: Value) -> Value {
    let (status, answer) = post_as(server, path, body, "").await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// The text of a refusal, with gRPC's number of its code.
pub async fn refusal(server: &Server, path: &str, body: Value, token: &str) -> (i64, String) {
    let (status, answer) = post_as(server, path, body, token).await;
    assert_ne!(status, 200, "{answer}");
    let text = answer["message"].as_str().unwrap_or_default().to_owned();
    (answer["code"].as_i64().unwrap_or_default(), text)
}

/// The answers to a call by gRPC, and its status: number and text.
pub async fn call<Q: Message, A: Message + Default>(
    server: &Server,
    method: &str,
    message: &Q,
) -> (Vec<A>, (i32, String)) {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.encoded_len() as u32);
    message.encode(&mut frame).expect("room");
    let request =
        Request::post(format!("http://one:2379/{method}")).header("content-type", "application/grpc");
    let response = server.answer(request.body(Full::from(frame.freeze())).expect("a request"), peer()).await;
    let mut headers = response.headers().clone();
    let collected = response.into_body().collect().await.expect("a body");
    headers.extend(collected.trailers().cloned().unwrap_or_default());
    let text = |name: &str| headers.get(name).map_or("", |value| value.to_str().expect("text")).to_owned();
    let status = (text("grpc-status").parse().expect("a status"), text("grpc-message").replace("%20", " "));
    (messages(collected.to_bytes()), status)
}

fn messages<A: Message + Default>(mut bytes: Bytes) -> Vec<A> {
    let mut found = Vec::new();
    while bytes.len() >= 5 {
        let head = bytes.split_to(5);
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        found.push(A::decode(bytes.split_to(length as usize)).expect("a message"));
    }
    found
}
