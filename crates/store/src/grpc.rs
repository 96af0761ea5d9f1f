//! gRPC to services beside the server, such as those of keys, over Unix sockets, and to an etcd that is imported.
//!
//! Calls to the former are rare (a status a minute, a token for a Pod that starts), so each has a connection of its own.
//! A [`Channel`] keeps one for many calls and for streams.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::os::unix::net::{SocketAddr, UnixStream as StdStream};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapErr;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::uri::PathAndQuery;
use hyper::{Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;
use tower::util::ServiceFn;

/// The pause between two attempts to connect: a service that starts is waited for, as upstream does.
const RECONNECT: Duration = Duration::from_millis(100);

/// How often a kept connection is probed, and how long an answer may take. etcd ends connections that are probed more
/// often than every five seconds.
const PROBES: Duration = Duration::from_secs(10);
const PROBE_ANSWER: Duration = Duration::from_secs(20);
/// The longest message that is taken: Go's clients of etcd have no other limit.
const LONGEST_MESSAGE: usize = i32::MAX as usize;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {} desc = {message}", self.code_name())]
pub struct CallError {
    code: Code,
    message: String,
}

impl CallError {
    /// The code as Go's gRPC spells it.
    pub fn code_name(&self) -> String {
        match self.code {
            Code::Cancelled => "Canceled".to_owned(),
            other => format!("{other:?}"),
        }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the service could not be reached, or did not answer in time.
    pub fn is_absence(&self) -> bool {
        [Code::DeadlineExceeded, Code::Unavailable].contains(&self.code)
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self { code: status.code(), message: status.message().to_owned() }
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
    pub async fn call<Q, A>(
        &self,
        method: &str,
        message: Q,
        timeout: Duration,
    ) -> (Result<A, CallError>, Duration)
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let begun = Instant::now();
        let mut request = Request::new(message);
        request.set_timeout(timeout);
        let called = tokio::time::timeout(timeout, self.exchange(method, request)).await;
        let answer = called.unwrap_or_else(|_| Err(Status::deadline_exceeded("context deadline exceeded")));
        (answer.map_err(CallError::from), begun.elapsed())
    }

    async fn exchange<Q, A>(&self, method: &str, request: Request<Q>) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        exchange(self.connect().await, self.service, method, request).await
    }

    /// Tries until somebody listens; the caller's time bounds that.
    async fn connect(&self) -> UnixStream {
        loop {
            match connect(&self.address).await {
                Ok(stream) => return stream,
                Err(error) => tracing::debug!(%error, address = self.address, "cannot reach a service"),
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }
}

/// The answer of a service at the other end of a connection, on which nothing was sent yet.
pub async fn unary<S, Q, A>(stream: S, service: &str, method: &str, message: Q) -> Result<A, CallError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    Ok(exchange(stream, service, method, Request::new(message)).await?)
}

async fn exchange<S, Q, A>(stream: S, service: &str, method: &str, request: Request<Q>) -> Result<A, Status>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let path = path(service, method)?;
    let stream = TokioIo::new(stream);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.map_err(broken)?;
    let mut client = client(sender);
    let mut answer = pin!(client.unary(request, path, ProstCodec::default()));
    // The connection is driven by the call that uses it.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    };
    answer.map(tonic::Response::into_inner)
}

fn path(service: &str, method: &str) -> Result<PathAndQuery, Status> {
    let path = PathAndQuery::try_from(format!("/{service}/{method}"));
    path.map_err(|error| Status::internal(error.to_string()))
}

type Answered = BoxFuture<'static, Result<Response<MapErr<Incoming, fn(hyper::Error) -> Status>>, Status>>;
type Sending = ServiceFn<Box<dyn FnMut(hyper::Request<Body>) -> Answered + Send>>;

/// A client of the services at the other end of a connection.
fn client(mut sender: SendRequest<Body>) -> Grpc<Sending> {
    let send = move |request| {
        let answer = sender.send_request(request);
        let answered = async {
            let answer = answer.await.map_err(broken)?;
            Ok(answer.map(|body| body.map_err(broken as fn(hyper::Error) -> Status)))
        };
        Box::pin(answered) as Answered
    };
    Grpc::with_origin(service_fn(Box::new(send) as _), Uri::from_static("http://localhost"))
        .max_decoding_message_size(LONGEST_MESSAGE)
}

/// A connection that is kept for many calls and for streams. Drop it to end it.
pub struct Channel {
    sender: SendRequest<Body>,
    /// The reason for which the connection has ended.
    ended: Arc<OnceLock<String>>,
    _driver: AbortOnDropHandle<()>,
}

impl Channel {
    pub async fn over<S>(stream: S) -> Result<Self, CallError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut settings = http2::Builder::new(TokioExecutor::new());
        settings.timer(TokioTimer::new()).keep_alive_interval(PROBES).keep_alive_timeout(PROBE_ANSWER);
        let (sender, connection) = settings.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let ended = Arc::new(OnceLock::new());
        let told = ended.clone();
        let driver = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(error) = connection.await {
                let _ = told.set(with_causes(&error));
            }
        }));
        Ok(Self { sender, ended, _driver: driver })
    }

    pub async fn call<Q, A>(
        &self,
        (service, method): (&str, &str),
        message: Q,
        timeout: Duration,
    ) -> Result<A, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut client = client(self.sender.clone());
        let call = client.unary(Request::new(message), path(service, method)?, ProstCodec::default());
        let late = |_| Err(Status::deadline_exceeded("context deadline exceeded"));
        let answer = tokio::time::timeout(timeout, call).await.unwrap_or_else(late);
        answer.map(tonic::Response::into_inner).map_err(|status| self.failed(status))
    }

    /// Begins a call in which both sides send messages.
    pub async fn exchange<Q, A>(
        &self,
        (service, method): (&str, &str),
        messages: impl Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, CallError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut client = client(self.sender.clone());
        let call = client.streaming(Request::new(messages), path(service, method)?, ProstCodec::default());
        call.await.map(tonic::Response::into_inner).map_err(|status| self.failed(status))
    }

    /// The error of a call, which only knows that it was cancelled if its connection has ended.
    fn failed(&self, status: Status) -> CallError {
        let failed = CallError::from(status);
        match self.ended.get() {
            Some(why) => CallError { message: why.clone(), ..failed },
            None => failed,
        }
    }
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |error| (**error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Connects to a Unix socket: a path, or `@name` for an abstract one.
pub async fn connect(address: &str) -> io::Result<UnixStream> {
    #[cfg(target_os = "linux")]
    if let Some(name) = address.strip_prefix('@') {
        use std::os::linux::net::SocketAddrExt as _;
        let stream = StdStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        stream.set_nonblocking(true)?;
        return UnixStream::from_std(stream);
    }
    UnixStream::connect(address).await
}

fn broken(error: hyper::Error) -> Status {
    Status::unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_gos_grpc() {
        let names = "OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied \
                     ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss \
                     Unauthenticated";
        for (number, name) in names.split(' ').enumerate().skip(1) {
            let error = CallError { code: Code::from(number as i32), message: "why".to_owned() };
            assert_eq!(error.to_string(), format!("rpc error: code = {name} desc = why"));
        }
    }
}
