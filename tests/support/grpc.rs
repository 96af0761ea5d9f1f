//! Services that a server calls by gRPC over a Unix socket, as well or unwell as a test wants them.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rowplane::protowire::Reader;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    #[default]
    Well,
    /// Answers nothing.
    Hangs,
    /// Answers every call with an error.
    Fails,
}

/// What a service answers.
pub trait Service: Send + Sync + 'static {
    fn mood(&self) -> &Mutex<Mood>;

    /// The message of the answer, or a status and its text.
    fn call(&self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, &'static str)>;
}

/// Serves on a socket until the tasks are dropped.
pub fn serve<S: Service>(socket: &Path, service: Arc<S>) -> JoinSet<()> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).expect("bind a socket");
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, service));
    tasks
}

async fn accept<S: Service>(listener: UnixListener, service: Arc<S>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("accept");
        let service = service.clone();
        connections.spawn(async move {
            let answer = service_fn(|request| answer(request, service.clone()));
            let _ = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

type Body = StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

async fn answer<S: Service>(
    request: Request<Incoming>,
    service: Arc<S>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.expect("a request").to_bytes();
    let mood = *service.mood().lock().expect("mood");
    let answer = match mood {
        Mood::Hangs => std::future::pending().await,
        Mood::Fails => Err((14, "the%20vault%20is%20sealed")),
        Mood::Well => service.call(&path, &body[5..]),
    };
    let mut trailers = HeaderMap::new();
    let mut frames = Vec::new();
    match answer {
        Ok(message) => {
            let mut framed = BytesMut::from(&[0][..]);
            framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
            framed.extend_from_slice(&message);
            frames.push(Ok(Frame::data(framed.freeze())));
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
        Err((code, message)) => {
            trailers.insert("grpc-status", HeaderValue::from(code));
            trailers.insert("grpc-message", HeaderValue::from_static(message));
        }
    }
    frames.push(Ok(Frame::trailers(trailers)));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(StreamBody::new(futures_util::stream::iter(frames))).expect("a response"))
}

/// The bytes of a field of a message.
pub fn field(message: &[u8], number: i32) -> Vec<u8> {
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag().expect("a tag") {
        let bytes = reader.bytes().expect("bytes");
        if tag.number() == number {
            return bytes.to_vec();
        }
    }
    Vec::new()
}

/// Appends a field of bytes.
pub fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field that is a number.
pub fn put_number(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(number << 3);
    put_varint(out, value);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
