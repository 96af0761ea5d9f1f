//! A connection to a hook.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::io::Read as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::HeaderName;
use hyper::{Request, Uri, Version, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::words::broken;
use crate::answers::interim::{Interim, TOO_MANY};
use crate::answers::lenient::{Lenient, LenientStream};
use crate::answers::{client, client_http2};
use crate::egress::{self, Route, words};

/// A connection with TLS, or without.
type Stream = LenientStream<Either<TlsStream<egress::Stream>, egress::Stream>>;
type Driver = Pin<Box<http1::Connection<TokioIo<Stream>, Full<Bytes>>>>;

/// The answer of a hook.
pub struct Response {
    pub status: u16,
    pub content_type: String,
    /// In seconds.
    pub retry_after: Option<u64>,
    /// The target of a redirect.
    pub location: Option<String>,
    pub body: Bytes,
}

/// A new connection, as the peer wants to speak.
pub enum Opened {
    One(Link),
    Many(Multiplexed),
}

/// A connection that serves one request at a time.
pub struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Driver>,
}

/// A connection of HTTP/2, which many requests use at once. Clones share it.
#[derive(Clone)]
pub struct Multiplexed(http2::SendRequest<Full<Bytes>>);

async fn connect(route: &Route) -> Result<egress::Stream, String> {
    let mut first = None;
    for address in &route.addresses {
        match route.egress.connect(address, &[]).await {
            Ok(stream) => return Ok(stream),
            Err(why) => first = first.or(Some(why)),
        }
    }
    Err(first.unwrap_or_else(|| "there is no address".to_owned()))
}

impl Opened {
    /// Connects to the first address of the route where something listens. The error is that of the first.
    pub async fn at(
        route: &Route,
        tls: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, String> {
        let stream = connect(route).await?;
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        let stream = stream.map_err(|error| words::handshake(&error))?;
        let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = Lenient::over(Either::Left(stream));
        if speaks_http2 {
            let handshake = client_http2().handshake(TokioIo::new(stream)).await;
            let (sender, connection) = handshake.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            return Ok(Self::Many(Multiplexed(sender)));
        }
        Self::one(stream).await
    }

    /// Connects in the same way, without TLS.
    pub async fn without_tls(route: &Route) -> Result<Self, String> {
        Self::one(Lenient::over(Either::Right(connect(route).await?))).await
    }

    async fn one(stream: Stream) -> Result<Self, String> {
        let handshake = client().handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| error.to_string())?;
        Ok(Self::One(Link { sender, connection: Some(Box::pin(connection)) }))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_open", &self.is_open()).finish()
    }
}

impl fmt::Debug for Multiplexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multiplexed").field("is_open", &self.is_open()).finish()
    }
}

impl Link {
    pub fn is_open(&self) -> bool {
        self.connection.is_some() && !self.sender.is_closed()
    }

    /// The answer, of which only so many bytes are read.
    pub async fn exchange(
        &mut self,
        mut request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response, String> {
        let interim = Interim::of(&mut request);
        let Self { sender, connection } = self;
        let answer = async {
            sender.ready().await.map_err(|error| error.to_string())?;
            let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
            read(response, limit).await
        };
        let mut answer = pin!(answer);
        poll_fn(|context| {
            let ended = connection.as_mut().is_some_and(|open| open.as_mut().poll(context).is_ready());
            if interim.are_too_many() {
                *connection = None;
                return Poll::Ready(Err(TOO_MANY.to_owned()));
            }
            if ended {
                *connection = None;
            }
            answer.as_mut().poll(context)
        })
        .await
    }
}

impl Multiplexed {
    pub fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// An exchange like [`Link::exchange`].
    pub async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response, String> {
        // HTTP/2 says in the URI what HTTP/1.1 says in a header.
        let host = request.headers_mut().remove(header::HOST);
        let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let uri = Uri::builder().scheme("https").authority(host);
        let uri = uri.path_and_query(request.uri().to_string()).build();
        *request.uri_mut() = uri.map_err(|error| error.to_string())?;
        let mut sender = self.0.clone();
        sender.ready().await.map_err(|error| broken(&error))?;
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        read(response, limit).await
    }
}

async fn read(response: hyper::Response<Incoming>, limit: usize) -> Result<Response, String> {
    let (head, body) = response.into_parts();
    // hyper would read such a body to the end of the connection.
    let mut encodings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    if let (Version::HTTP_11, Some(encoding)) = (head.version, encodings.next())
        && (encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return Err(format!(
            "net/http: HTTP/1.x transport connection broken: unsupported transfer encoding: {encoding:?}"
        ));
    }
    let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let body = Limited::new(body, limit).collect().await.map_err(|error| error.to_string())?.to_bytes();
    let is_packed =
        text(header::CONTENT_ENCODING).is_some_and(|encoding| encoding.eq_ignore_ascii_case("gzip"));
    Ok(Response {
        status: head.status.as_u16(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
        retry_after: text(header::RETRY_AFTER).and_then(|seconds| seconds.parse().ok()),
        location: text(header::LOCATION).map(str::to_owned),
        body: if is_packed && !body.is_empty() { unpacked(body, limit).await? } else { body },
    })
}

/// Unpacks gzip up to so many bytes, where nobody else waits for it.
async fn unpacked(body: Bytes, limit: usize) -> Result<Bytes, String> {
    let work = move || {
        let (mut text, bound) = (Vec::new(), limit as u64 + 1);
        let read = MultiGzDecoder::new(&body[..]).take(bound).read_to_end(&mut text);
        match read {
            Err(error) => Err(format!("gzip: {error}")),
            Ok(_) if text.len() > limit => Err("length limit exceeded".to_owned()),
            Ok(_) => Ok(text.into()),
        }
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}
