//! One connection from its first byte to its last.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use futures_util::FutureExt as _;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection_state::{Connection, Stage};
use super::connections::ConnectionEntry;
use super::delivery::deliver;
use super::first_reads::FirstReads;
use super::gather::Gathered;
use super::heads::{self, Heads};
use super::leaving::{Protocol, given_up, run_protocol};
use super::requests::Requests;
use super::sliced::Sliced;
use super::streams::Streams;
use super::takeover::{self, Slot};
use super::turns::Turn;
use super::unsent::Outgoing;
use super::{ConnectionInfo, Responder, Server};
use crate::layered::Layered;

/// Upstream's `ReadHeaderTimeout`: a peer whose handshake takes longer is not a client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(32);
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Go's `DefaultMaxHeaderBytes`, and what its server of HTTP/2 adds.
const MAX_HEADER_LIST: u32 = (1 << 20) + 320;
/// The read buffer: more than the longest head that [`heads`] passes on. Also limits the buffer for an HTTP/1.1 client that
/// does not read.
const MAX_BUFFER: usize = 512 * 1024;
const MAX_SEND_BUFFER: usize = 256 * 1024;
/// The window of a connection: large enough for a request body of the default limit without waiting for a window update.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
const STREAM_WINDOW: u32 = 1024 * 1024;

/// One full TLS record of small frames, which are sent together. The frames of a list are longer, and are written
/// without a copy (measured: copying them costs a third of a list's speed).
const GATHERED_BYTES: usize = 16 * 1024;

/// The answer of Go's server to a client that speaks plain HTTP.
const PLAIN_HTTP_ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n\
    Client sent an HTTP request to an HTTPS server.\n";
/// The first byte of every TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

fn tuned_http1(idle: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // hyper includes the wait for the next request in the time for reading its head.
        .header_read_timeout(idle)
        .max_buf_size(MAX_BUFFER);
    builder
}

fn tuned_http2(streams: Streams, limit: u32) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(limit)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW);
    builder
}

fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

impl Server {
    pub(super) async fn run(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: ConnectionEntry) {
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.handshake(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            () = given_up(place.connection(), &self.connections) => return,
        };
        match shaken {
            Ok(Some(stream)) => self.serve_http(stream, remote, place).await,
            Ok(None) => self.connections.count_handshake_error(),
            Err(error) => {
                self.connections.count_handshake_error();
                tracing::debug!(%error, "TLS handshake failed");
            }
        }
    }

    /// `None` if the peer does not speak TLS; it has been told so.
    async fn handshake(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        stream.set_nodelay(true)?;
        let mut first = [0; 1];
        let peeked = stream.peek(&mut first).await?;
        if peeked == 1 && first[0] != TLS_HANDSHAKE && first[0].is_ascii_uppercase() {
            refuse_plain_http(stream).await?;
            return Ok(None);
        }
        let local = stream.local_addr().ok().map(|address| address.ip());
        TlsAcceptor::from(self.tls.config(local)).accept(stream).await.map(Some)
    }

    async fn serve_http(&self, stream: TlsStream<TcpStream>, remote: SocketAddr, place: ConnectionEntry) {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = self.tls.client(chain);
        let connection = place.connection().clone();
        let draining = connection.draining.clone();
        let client = crate::audit::address(remote.ip());
        let trust = self.tls.trust().clone();
        let info = Arc::new(ConnectionInfo { client, certificates, trust, draining, place });
        if info.certified().is_some_and(|certified| matches!(certified.user, Ok(Some(_)))) {
            // If there are too many connections, its requests are refused later.
            info.authenticate(None);
        }
        let requests = Requests::of(connection.clone(), self.connections.clone());
        let clusters = self.clusters.clone();
        let (slot, held) = (Slot::default(), info.clone());
        let next = slot.clone();
        let answer = move |mut request| {
            requests.connection.note_request(requests.connections.now());
            let cluster = clusters.find(&mut request);
            respond(cluster, info.clone(), requests.clone(), next.clone(), request)
        };
        let limits = self.connections.limits();
        let http2 = is_http2(&stream);
        let stream = Sliced(stream);
        let ended = if http2 {
            let places = self.connections.first_reads.clone();
            let stream = Layered { stream, layer: FirstReads::new(connection.clone(), places) };
            let stream = Gathered::new(stream, GATHERED_BYTES);
            let sender = stream.handle();
            let streams = Streams::of(connection.clone());
            let announced = streams.clone();
            let builder = tuned_http2(streams.clone(), limits.streams);
            let service = service_fn(move |request: Request<Incoming>| {
                announced.announce(&request);
                answer(request.map(Body::new))
            });
            let protocol = pin!(builder.serve_connection(TokioIo::new(stream), service));
            let go_away = |protocol: Pin<&mut http2::Connection<_, _, _>>| protocol.graceful_shutdown();
            let run = run_protocol(protocol, Protocol::Http2, &connection, &self.connections, go_away);
            let mut run = pin!(run);
            let run = poll_fn(|context| {
                streams.begin();
                run.as_mut().poll(context)
            });
            let ended =
                in_turn(sender.drive(run, |is_alone| connection.goes_first(is_alone)), &connection).await;
            connection.draining.cancel();
            ended
        } else {
            let builder = tuned_http1(limits.idle);
            let (layer, read) = Heads::new(connection.clone(), self.connections.places_for_heads());
            let stream = Layered { stream, layer };
            let service = service_fn(move |request| heads::serve(read.clone(), request, answer.clone()));
            let protocol = builder.serve_connection(TokioIo::new(stream), service);
            let protocol = pin!(protocol.with_upgrades());
            let go_away =
                |protocol: Pin<&mut http1::UpgradeableConnection<_, _>>| protocol.graceful_shutdown();
            let run = run_protocol(protocol, Protocol::Http1, &connection, &self.connections, go_away);
            in_turn(run, &connection).await
        };
        match ended {
            Ok(()) => takeover::run(&slot, &connection).await,
            Err(error) => tracing::debug!(%error, "connection ended"),
        }
        drop(held);
    }
}

/// Polls the protocol of a connection when it is its turn.
async fn in_turn<F: Future>(protocol: F, connection: &Connection) -> F::Output {
    let (mut protocol, mut turn) = (pin!(protocol), Turn::default());
    poll_fn(|context| connection.poll_in_turn(&mut turn, context, |context| protocol.as_mut().poll(context)))
        .await
}

async fn refuse_plain_http(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP_ANSWER).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes resets the connection, and the peer may not see the answer.
    let mut request = stream.take(MAX_BUFFER as u64);
    tokio::io::copy(&mut request, &mut tokio::io::sink()).await.map(drop)
}

async fn respond(
    responder: Arc<dyn Responder>,
    info: Arc<ConnectionInfo>,
    under_way: Arc<Requests>,
    slot: Slot,
    mut request: Request<Body>,
) -> Result<Response<Outgoing>, Infallible> {
    request.extensions_mut().insert(info);
    let is_head = request.method() == Method::HEAD;
    let is_http1 = request.version() <= Version::HTTP_11;
    // Without this, a bug in one request would end all streams of its connection.
    let answered = AssertUnwindSafe(responder.respond(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| panicked());
    let connection = &under_way.connection;
    connection.note_request(under_way.connections.now());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let response = deliver(response, under_way.clone()).await;
        return Ok(takeover::note(response.map(Body::new), under_way, &slot).map(Outgoing::from));
    }
    if is_http1 && connection.stage() == Stage::Leaving {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    match is_head {
        true => Ok(without_body(response).map(Outgoing::from)),
        false => Ok(deliver(response, under_way).await),
    }
}

/// The answer to HEAD. hyper omits its body in HTTP/1.1 only; clients of HTTP/2 take any byte for an error.
fn without_body(response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let (mut head, _) = response.into_parts();
    if let Some(length) = length {
        head.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    Response::from_parts(head, Body::empty())
}

/// Upstream's `WithPanicRecovery`.
pub(in crate::http) fn panicked() -> Response<Body> {
    tracing::error!("a request handler panicked");
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
