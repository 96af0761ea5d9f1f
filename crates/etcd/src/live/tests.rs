//! A server of etcd's API whose answers are written down is read and followed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderValue;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use super::*;
use crate::wire::messages::{RangeRequest, RangeResponse, ResponseHeader, WatchRequest, WatchRequestKind};

/// An etcd in the process of the test.
#[derive(Default)]
struct Etcd {
    revision: i64,
    keys: Vec<messages::KeyValue>,
    /// The answers of the next watches. A watch without `true` beside its answers ends behind them.
    watches: Mutex<VecDeque<(Vec<WatchResponse>, bool)>>,
    /// The requests that came: limits of pages, and revisions from which watches begin.
    limits: Mutex<Vec<i64>>,
    starts: Mutex<Vec<i64>>,
}

impl Etcd {
    fn range(&self, request: &RangeRequest) -> RangeResponse {
        let header = header(self.revision);
        let inside: Vec<_> =
            self.keys.iter().filter(|kv| request.key <= kv.key && kv.key < request.range_end).collect();
        let count = inside.len() as i64;
        if request.count_only {
            return RangeResponse { header, count, ..Default::default() };
        }
        assert_eq!(request.revision, self.revision);
        self.limits.lock().expect("limits").push(request.limit);
        let kvs: Vec<_> = inside.into_iter().take(request.limit as usize).cloned().collect();
        let more = (kvs.len() as i64) < count;
        RangeResponse { header, kvs, more, count }
    }

    fn watch(&self, request: WatchRequest) -> (Vec<WatchResponse>, bool) {
        let Some(WatchRequestKind::Create(create)) = request.request else {
            panic!("a watch begins with its range")
        };
        self.starts.lock().expect("starts").push(create.start_revision);
        self.watches.lock().expect("watches").pop_front().expect("a watch that is expected")
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The message of a frame that has come completely, behind its head of five bytes.
async fn first_message<M: Message + Default>(body: &mut Incoming) -> M {
    let mut bytes = BytesMut::new();
    loop {
        if let Some((head, rest)) = bytes.split_at_checked(5)
            && let Some(message) =
                rest.get(..u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize)
        {
            return M::decode(message).expect("a message");
        }
        let frame = body.frame().await.expect("a frame").expect("a frame");
        bytes.extend_from_slice(&frame.into_data().expect("data"));
    }
}

fn frame(message: &impl Message) -> Result<Frame<Bytes>, Infallible> {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    bytes.put_slice(&message.encode_to_vec());
    Ok(Frame::data(bytes.freeze()))
}

async fn answer(etcd: Arc<Etcd>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (path, mut body) = (request.uri().path().to_owned(), request.into_body());
    let (mut frames, stays): (Vec<_>, bool) = match path.as_str() {
        "/etcdserverpb.KV/Range" => (vec![frame(&etcd.range(&first_message(&mut body).await))], false),
        "/etcdserverpb.Watch/Watch" => {
            let (responses, stays) = etcd.watch(first_message(&mut body).await);
            (responses.iter().map(frame).collect(), stays)
        }
        _ => panic!("{path}"),
    };
    let trailers =
        HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from_static("0"))]);
    if !stays {
        frames.push(Ok(Frame::trailers(trailers)));
    }
    let rest = futures_util::stream::once(std::future::pending()).take(usize::from(stays));
    // The other half of the stream is kept, or the client would be told that nobody reads it.
    let frames = futures_util::stream::iter(frames).chain(rest).map(move |frame| (frame, &body).0);
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(BodyExt::boxed_unsync(StreamBody::new(frames))).expect("a response"))
}

/// Serves until the tasks are dropped.
fn serve(etcd: &Arc<Etcd>) -> (TempDir, Vec<Endpoint>, JoinSet<()>) {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("etcd.sock");
    let listener = UnixListener::bind(&socket).expect("bind");
    let (mut tasks, etcd) = (JoinSet::new(), etcd.clone());
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("accept");
            let etcd = etcd.clone();
            connections.spawn(async move {
                let answer = service_fn(move |request| answer(etcd.clone(), request));
                let _ = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    });
    // The first of two servers is not there.
    let missing = Endpoint::Unix("/nonexistent/etcd.sock".to_owned());
    (dir, vec![missing, Endpoint::Unix(socket.display().to_string())], tasks)
}

fn kv(key: &str, mod_revision: i64) -> messages::KeyValue {
    let key = key.as_bytes().to_vec().into();
    messages::KeyValue { key, mod_revision, value: Bytes::from_static(b"v"), ..Default::default() }
}

fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..Default::default() })
}

fn event(kind: i32, key: &str, revision: i64) -> Event {
    Event { kind, kv: Some(kv(key, revision)), prev_kv: None }
}

/// A response with a header of the newest revision, as etcd sends it.
fn response(revision: i64, events: Vec<Event>) -> WatchResponse {
    WatchResponse { header: header(revision), events, ..Default::default() }
}

fn created() -> WatchResponse {
    WatchResponse { created: true, ..response(99, Vec::new()) }
}

async fn read(etcd: &Arc<Etcd>, cut_over: Option<CutOver>) -> (Vec<Change>, Option<Error>) {
    let (_dir, endpoints, _tasks) = serve(etcd);
    let live = Live::open(endpoints, "/registry/").await.expect("open");
    assert_eq!(live.revision(), etcd.revision as u64);
    let (mut changes, mut batches) = (Vec::new(), live.changes(cut_over));
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(batch) => changes.extend(batch),
            Err(error) => return (changes, Some(error)),
        }
    }
    (changes, None)
}

fn never() -> io::Result<BoxFuture<'static, ()>> {
    Ok(Box::pin(std::future::pending()))
}

fn put(key: &str, revision: i64) -> Change {
    Change::Put(kv(key, revision).into())
}

#[tokio::test]
async fn keys_come_in_pages() {
    let mut keys: Vec<_> = (0..1200).map(|at| kv(&format!("/registry/pods/ns/{at:05}"), 1 + at)).collect();
    keys.push(kv("/registry0", 5));
    let etcd = Arc::new(Etcd { revision: 2000, keys, ..Default::default() });
    let (changes, error) = read(&etcd, None).await;
    assert!(error.is_none(), "{error:?}");
    let expected: Vec<_> = (0..1200).map(|at| put(&format!("/registry/pods/ns/{at:05}"), 1 + at)).collect();
    assert_eq!(changes, expected);
    assert_eq!(*etcd.limits.lock().expect("limits"), [500, 1000]);
}

#[tokio::test]
async fn changes_are_followed_over_lost_connections_until_nothing_is_missing() {
    let (a, b) = ("/registry/a", "/registry/b");
    let part = WatchResponse { fragment: true, ..response(13, vec![event(0, a, 12)]) };
    let watches = [
        // The header of an event is ahead of it. A connection that ends within a revision sends all of it again.
        (vec![created(), response(13, vec![event(0, a, 11)]), part], false),
        (
            vec![created(), response(13, vec![event(0, a, 12), event(1, b, 12)]), response(13, Vec::new())],
            true,
        ),
    ];
    let etcd = Etcd {
        revision: 13,
        keys: vec![kv(a, 9), kv(b, 10)],
        watches: Mutex::new(watches.into()),
        ..Default::default()
    };
    let etcd = Arc::new(etcd);
    // The state that was read first is older.
    let (_dir, endpoints, _tasks) = serve(&etcd);
    let mut live = Live::open(endpoints, "/registry/").await.expect("open");
    live.revision = 10;
    let (sender, mut receiver) = mpsc::channel(100);
    live.follow((Box::pin(async {}), None), &sender).await.expect("followed");
    drop(sender);
    let mut changes = Vec::new();
    while let Some(batch) = receiver.recv().await {
        changes.extend(batch.expect("a batch"));
    }
    let deleted = Change::Delete { key: b.as_bytes().to_vec(), revision: 12 };
    assert_eq!(changes, [put(a, 11), put(a, 12), put(a, 12), deleted, Change::Reached(13)]);
    assert_eq!(*etcd.starts.lock().expect("starts"), [11, 12]);
}

#[tokio::test]
async fn compacted_history_ends_it() {
    let canceled = WatchResponse { canceled: true, compact_revision: 8, ..response(13, Vec::new()) };
    let watches = Mutex::new([(vec![created(), canceled], true)].into());
    let etcd = Arc::new(Etcd { revision: 5, watches, ..Default::default() });
    let asked = CutOver { asked: Box::new(never), quiet: None };
    let (changes, error) = read(&etcd, Some(asked)).await;
    assert!(matches!(error, Some(Error::Compacted)), "{error:?}");
    assert_eq!(changes, [Change::Following]);
}

#[tokio::test]
async fn a_source_that_stands_still_is_complete_at_once() {
    let etcd = Arc::new(Etcd { revision: 5, keys: vec![kv("/registry/a", 4)], ..Default::default() });
    etcd.watches.lock().expect("watches").push_back((vec![created()], true));
    let quiet = CutOver { asked: Box::new(never), quiet: Some(Duration::ZERO) };
    let (changes, error) = read(&etcd, Some(quiet)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(changes, [put("/registry/a", 4), Change::Following, Change::Reached(5)]);
}
