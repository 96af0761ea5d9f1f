//! A key management service: gRPC over a Unix socket, as well or unwell as a test wants it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Well,
    /// Answers nothing.
    Hangs,
    /// Answers every call with an error.
    Fails,
}

/// The service of a socket, until it is dropped.
pub struct Kms {
    pub state: Arc<State>,
    _tasks: JoinSet<()>,
}

pub struct State {
    pub mood: Mutex<Mood>,
    /// The key that wraps. Others are known, too, unless they are lost.
    pub key_id: Mutex<String>,
    pub lost: Mutex<Vec<String>>,
    pub statuses: AtomicUsize,
    pub encrypted: AtomicUsize,
    pub decrypted: AtomicUsize,
}

impl Kms {
    pub fn start(socket: &Path) -> Self {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("bind a socket");
        let state = Arc::new(State {
            mood: Mutex::new(Mood::Well),
            key_id: Mutex::new("key-1".to_owned()),
            lost: Mutex::default(),
            statuses: AtomicUsize::new(0),
            encrypted: AtomicUsize::new(0),
            decrypted: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, state.clone()));
        Self { state, _tasks: tasks }
    }

    pub fn set(&self, mood: Mood) {
        *self.state.mood.lock().expect("mood") = mood;
    }

    pub fn rotate(&self, key_id: &str) {
        *self.state.key_id.lock().expect("key") = key_id.to_owned();
    }

    /// How often it has wrapped a seed.
    pub fn encrypted(&self) -> usize {
        self.state.encrypted.load(Ordering::SeqCst)
    }

    /// How often it has unwrapped one.
    pub fn decrypted(&self) -> usize {
        self.state.decrypted.load(Ordering::SeqCst)
    }
}

async fn serve(listener: UnixListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("accept");
        let state = state.clone();
        connections.spawn(async move {
            let answer = service_fn(|request| answer(request, state.clone()));
            let _ = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

type Body = StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.expect("a request").to_bytes();
    let mood = *state.mood.lock().expect("mood");
    let answer = match mood {
        Mood::Hangs => std::future::pending().await,
        Mood::Fails => Err((14, "the%20vault%20is%20sealed")),
        Mood::Well => state.call(&path, &body[5..]),
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

impl State {
    fn call(&self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, &'static str)> {
        let key_id = self.key_id.lock().expect("key").clone();
        let mut out = Vec::new();
        match path {
            "/v2.KeyManagementService/Status" => {
                self.statuses.fetch_add(1, Ordering::SeqCst);
                for (field, text) in [(1, "v2"), (2, "ok"), (3, &*key_id)] {
                    put(&mut out, field, text.as_bytes());
                }
            }
            "/v2.KeyManagementService/Encrypt" => {
                self.encrypted.fetch_add(1, Ordering::SeqCst);
                put(&mut out, 1, &turned(&field(message, 1)));
                put(&mut out, 2, key_id.as_bytes());
                let mut annotation = Vec::new();
                put(&mut annotation, 1, b"turned.example.com");
                put(&mut annotation, 2, b"yes");
                put(&mut out, 3, &annotation);
            }
            "/v2.KeyManagementService/Decrypt" => {
                self.decrypted.fetch_add(1, Ordering::SeqCst);
                let used = String::from_utf8(field(message, 3)).expect("an id");
                if self.lost.lock().expect("lost").contains(&used) {
                    return Err((5, "no%20such%20key"));
                }
                put(&mut out, 1, &turned(&field(message, 1)));
            }
            _ => return Err((12, "unknown")),
        }
        Ok(out)
    }
}

fn turned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().copied().collect()
}

fn field(message: &[u8], number: i32) -> Vec<u8> {
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag().expect("a tag") {
        let bytes = reader.bytes().expect("bytes");
        if tag.number() == number {
            return bytes.to_vec();
        }
    }
    Vec::new()
}

/// All fields here are shorter than 128 bytes.
fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.extend_from_slice(&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")]);
    out.extend_from_slice(bytes);
}
