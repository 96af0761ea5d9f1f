//! Calls of services beside the server, such as those of keys: gRPC over a Unix socket.
//!
//! Calls are rare (a status a minute, a token for a Pod that starts), so each has a connection of its own.

use std::future::{Future as _, poll_fn};
use std::io;
use std::os::unix::net::{SocketAddr, UnixStream as StdStream};
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::header::{CONTENT_TYPE, HeaderMap, TE};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode_str;
use tokio::net::UnixStream;

use crate::protowire;

/// gRPC's bound of a message.
const LARGEST_ANSWER: usize = 4 << 20;
/// The pause between two attempts to connect: a service that starts is waited for, as upstream does.
const RECONNECT: Duration = Duration::from_millis(100);
/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {} desc = {message}", code.name())]
pub struct CallError {
    pub code: Code,
    pub message: String,
}

/// The status of a call, as gRPC numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    const UNKNOWN: Self = Self(2);
    const DEADLINE_EXCEEDED: Self = Self(4);
    const INTERNAL: Self = Self(13);
    const UNAVAILABLE: Self = Self(14);

    pub fn name(self) -> &'static str {
        const NAMES: [&str; 17] = [
            "OK",
            "Canceled",
            "Unknown",
            "InvalidArgument",
            "DeadlineExceeded",
            "NotFound",
            "AlreadyExists",
            "PermissionDenied",
            "ResourceExhausted",
            "FailedPrecondition",
            "Aborted",
            "OutOfRange",
            "Unimplemented",
            "Internal",
            "Unavailable",
            "DataLoss",
            "Unauthenticated",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("Unknown")
    }
}

impl CallError {
    fn new(code: Code, message: impl ToString) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Whether the service could not be reached, or did not answer in time.
    pub fn is_absence(&self) -> bool {
        [Code::DEADLINE_EXCEEDED, Code::UNAVAILABLE].contains(&self.code)
    }
}

/// A service at an address.
#[derive(Debug)]
pub struct Client {
    address: String,
    /// The name of the service, with its package.
    service: &'static str,
}

impl Client {
    /// `address` is a path, or `@name` for an abstract socket.
    pub fn new(address: impl Into<String>, service: &'static str) -> Self {
        Self { address: address.into(), service }
    }

    /// The answer, and how long it took. A service that is not there is waited for until the time is over.
    pub async fn call(
        &self,
        method: &str,
        message: Vec<u8>,
        timeout: Duration,
    ) -> (Result<Bytes, CallError>, Duration) {
        let begun = Instant::now();
        let called = tokio::time::timeout(timeout, self.exchange(method, message, timeout)).await;
        let answer = called
            .unwrap_or_else(|_| Err(CallError::new(Code::DEADLINE_EXCEEDED, "context deadline exceeded")));
        (answer, begun.elapsed())
    }

    async fn exchange(&self, method: &str, message: Vec<u8>, timeout: Duration) -> Result<Bytes, CallError> {
        let broken = |error: hyper::Error| CallError::new(Code::UNAVAILABLE, error);
        let stream = self.connect().await;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(broken)?;
        let answer = async {
            let response =
                sender.send_request(self.request(method, message, timeout)?).await.map_err(broken)?;
            read(response).await
        };
        let (mut answer, mut connection) = (pin!(answer), pin!(connection));
        let mut is_open = true;
        // The connection is driven by the call that uses it.
        poll_fn(|context| {
            if is_open && connection.as_mut().poll(context).is_ready() {
                is_open = false;
            }
            answer.as_mut().poll(context)
        })
        .await
    }

    /// Tries until somebody listens; the caller's time bounds that.
    async fn connect(&self) -> UnixStream {
        loop {
            match self.try_connect().await {
                Ok(stream) => return stream,
                Err(error) => tracing::debug!(%error, address = self.address, "cannot reach a service"),
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    async fn try_connect(&self) -> io::Result<UnixStream> {
        #[cfg(target_os = "linux")]
        if let Some(name) = self.address.strip_prefix('@') {
            use std::os::linux::net::SocketAddrExt as _;
            let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
            stream.set_nonblocking(true)?;
            return UnixStream::from_std(stream);
        }
        UnixStream::connect(&self.address).await
    }

    fn request(
        &self,
        method: &str,
        message: Vec<u8>,
        timeout: Duration,
    ) -> Result<Request<Full<Bytes>>, CallError> {
        let mut body = BytesMut::with_capacity(PREFIX + message.len());
        body.put_u8(0);
        body.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
        body.put_slice(&message);
        Request::builder()
            .method(Method::POST)
            .uri(format!("http://localhost/{}/{method}", self.service))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header("grpc-timeout", format!("{}m", timeout.as_millis().clamp(1, 99_999_999)))
            .body(Full::new(body.freeze()))
            .map_err(|error| CallError::new(Code::INTERNAL, error))
    }
}

/// A message, or that the service has sent none.
pub fn decoded<T>(message: Result<T, protowire::Error>) -> Result<T, CallError> {
    message.map_err(|error| CallError::new(Code::INTERNAL, error))
}

/// The message of an answer, if its status is good.
async fn read(response: Response<Incoming>) -> Result<Bytes, CallError> {
    let (head, body) = response.into_parts();
    if head.status != 200 {
        let why = format!("unexpected HTTP status code received from server: {}", head.status);
        return Err(CallError::new(Code::UNKNOWN, why));
    }
    check(&head.headers)?;
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| CallError::new(Code::UNAVAILABLE, error))?;
    match body.trailers() {
        Some(trailers) => check(trailers)?,
        // A server that breaks off sends no status.
        None if !head.headers.contains_key("grpc-status") => {
            return Err(CallError::new(Code::INTERNAL, "server closed the stream without sending trailers"));
        }
        None => {}
    }
    let mut message = body.to_bytes();
    let is_whole = message.len() >= PREFIX
        && message[0] == 0
        && u32::from_be_bytes([message[1], message[2], message[3], message[4]]) as usize
            == message.len() - PREFIX;
    match is_whole {
        true => Ok(message.split_off(PREFIX)),
        false => Err(CallError::new(Code::INTERNAL, "the answer is no single uncompressed message")),
    }
}

/// Fails if these headers or trailers hold a status other than good.
fn check(headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(status) = text("grpc-status") else { return Ok(()) };
    let code = status.parse().unwrap_or(Code::UNKNOWN.0);
    if code == 0 {
        return Ok(());
    }
    let message =
        percent_decode_str(text("grpc-message").unwrap_or_default()).decode_utf8_lossy().into_owned();
    Err(CallError { code: Code(code), message })
}
