//! One connection, from the first byte to the last.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::gather::Gathered;
use super::sliced::Sliced;
use super::{ConnectionInfo, Server};

/// Upstream's `ReadHeaderTimeout`: a peer that takes longer to shake hands is not a client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(32);
/// Upstream's `IdleTimeout`; hyper counts the wait for the next request into the time to read its head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Clients such as kube-rs put all their watches on one connection and wait silently at the limit.
const MAX_STREAMS: u32 = 1000;
/// More than the longest URI that the `http` crate takes (64 KiB). Also bounds what is buffered for a
/// reader of HTTP/1.1 that does not read.
const MAX_HEADERS: u32 = 256 * 1024;
const MAX_SEND_BUFFER: usize = 256 * 1024;
/// One request body at its default limit fits without waiting for a window update.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
const STREAM_WINDOW: u32 = 1024 * 1024;

/// One full TLS record of small frames, sent at once. The full frames of a list are longer and pass uncopied
/// (measured: copying them as well costs a list a third of its speed).
const GATHERED_BYTES: usize = 16 * 1024;

/// What Go's server tells a client that forgot the `s`.
const PLAIN_HTTP_ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n\
    Client sent an HTTP request to an HTTPS server.\n";
/// The first byte of every TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// One tuned builder per protocol: ALPN has chosen, so nobody waits for a first byte to guess by.
pub(super) struct Protocols {
    http1: auto::Builder<TokioExecutor>,
    http2: auto::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn tuned() -> Self {
        let mut http1 = auto::Builder::new(TokioExecutor::new()).http1_only();
        http1
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_buf_size(MAX_HEADERS as usize);
        let mut http2 = auto::Builder::new(TokioExecutor::new()).http2_only();
        http2
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADERS)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW);
        Self { http1, http2 }
    }

    fn negotiated(&self, stream: &TlsStream<TcpStream>) -> &auto::Builder<TokioExecutor> {
        if is_http2(stream) { &self.http2 } else { &self.http1 }
    }
}

fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

impl Server {
    pub(super) async fn run(self: Arc<Self>, stream: TcpStream, remote: SocketAddr) {
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.handshake(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            () = self.shutdown.cancelled() => return,
        };
        match shaken {
            Ok(Some(stream)) => self.serve_http(stream, remote).await,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "TLS handshake failed"),
        }
    }

    /// `None`: the peer does not speak TLS and has been told so.
    async fn handshake(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        stream.set_nodelay(true)?;
        let mut first = [0; 1];
        let peeked = stream.peek(&mut first).await?;
        if peeked == 1 && first[0] != TLS_HANDSHAKE && first[0].is_ascii_uppercase() {
            refuse_plain_http(stream).await?;
            return Ok(None);
        }
        TlsAcceptor::from(self.tls.config()).accept(stream).await.map(Some)
    }

    async fn serve_http(&self, stream: TlsStream<TcpStream>, remote: SocketAddr) {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = self.tls.client(chain);
        // A child each: polling the shared token would put all connections in line for its lock.
        let draining = self.shutdown.child_token();
        let info = Arc::new(ConnectionInfo { remote, certificates, draining: draining.clone() });
        let router = self.router.clone();
        let service = service_fn(move |request| respond(router.clone(), info.clone(), request));
        let builder = self.protocols.negotiated(&stream);
        let http2 = is_http2(&stream);
        let stream = Sliced(stream);
        let ended = if http2 {
            let stream = Gathered::new(stream, GATHERED_BYTES);
            let sender = stream.handle();
            sender.drive(self.run_protocol(builder, stream, service, draining)).await
        } else {
            self.run_protocol(builder, stream, service, draining).await
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }

    /// Serves until the peer leaves or, once the server is draining, until nothing is under way.
    async fn run_protocol<I, S>(
        &self,
        builder: &auto::Builder<TokioExecutor>,
        stream: I,
        service: S,
        draining: CancellationToken,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: hyper::service::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = draining.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = self.abort.cancelled() => Ok(()),
                }
            }
        }
    }
}

async fn refuse_plain_http(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP_ANSWER).await?;
    stream.shutdown().await?;
    // Closing with unread bytes resets the connection, and the peer may never see the answer.
    let mut request = stream.take(u64::from(MAX_HEADERS));
    tokio::io::copy(&mut request, &mut tokio::io::sink()).await.map(drop)
}

async fn respond(
    router: Router,
    info: Arc<ConnectionInfo>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    request.extensions_mut().insert(info);
    // The last resort: without it a bug in one request would take down the other streams of its connection.
    match AssertUnwindSafe(router.oneshot(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Ok(panicked()),
    }
}

/// Upstream's `WithPanicRecovery`.
fn panicked() -> Response<Body> {
    tracing::error!("a request handler panicked");
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
