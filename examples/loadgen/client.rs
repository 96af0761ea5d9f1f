//! A cheap HTTP client: hyper on one TLS connection, without pools, retries or redirects.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::Mutex;

use crate::Result;
use crate::target::Target;

/// Flow-control windows as large as those of Go's client, so that the generator is never the bottleneck.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

pub const JSON: &str = "application/json";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

pub struct Connection {
    sender: Sender,
    authority: String,
    authorization: Option<http::HeaderValue>,
    accept: &'static str,
}

enum Sender {
    /// Handles one request at a time; other users of the connection wait.
    Http1(Mutex<http1::SendRequest<Full<Bytes>>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A complete answer.
#[derive(Default)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Answer {
    /// The answer if it is a success, otherwise an error.
    pub fn success(self) -> Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(500)]).into_owned();
        Err(format!("{}: {body}", self.status).into())
    }

    /// The first `metadata.resourceVersion`, found without parsing the object.
    pub fn resource_version(&self) -> Result<String> {
        resource_version(&self.body).ok_or("an answer without resourceVersion".into())
    }
}

pub fn resource_version(json: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\"resourceVersion\":";
    let after = &json[memchr::memmem::find(json, NAME)? + NAME.len()..];
    let text = after.trim_ascii_start().strip_prefix(b"\"")?;
    String::from_utf8(text[..memchr::memchr(b'"', text)?].to_vec()).ok()
}

impl Connection {
    pub async fn open(target: &Target, protocol: Protocol) -> Result<Self> {
        let io = TokioIo::new(target.connect(protocol).await?);
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::Builder::new().handshake(io).await?;
                tokio::spawn(connection);
                Sender::Http1(Mutex::new(sender))
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(io)
                    .await?;
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        };
        let (authority, authorization) = (target.authority().to_owned(), target.authorization.clone());
        Ok(Self { sender, authority, authorization, accept: JSON })
    }

    /// Requests this media type instead of JSON.
    pub fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    /// Sends a request, and returns as soon as the response headers have arrived.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<Response<Incoming>> {
        let request = Request::builder().method(method).header(ACCEPT, self.accept);
        let mut request = match &self.sender {
            Sender::Http1(_) => request.uri(path).header(HOST, &self.authority),
            Sender::Http2(_) => request.uri(format!("https://{}{path}", self.authority)),
        };
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let body = match body {
            Some((content_type, body)) => {
                request = request.header(CONTENT_TYPE, content_type);
                body
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body))?;
        Ok(match &self.sender {
            Sender::Http1(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => sender.clone().send_request(request).await?,
        })
    }

    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<Answer> {
        let (head, body) = self.send(method, path, body).await?.into_parts();
        Ok(Answer { status: head.status, body: body.collect().await?.to_bytes() })
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.call(Method::GET, path, None).await?.success()
    }
}
