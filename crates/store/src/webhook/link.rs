//! A connection to a hook.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::words;

type Driver = Pin<Box<Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>>>>;

/// What a hook has answered.
pub struct Response {
    pub status: u16,
    pub content_type: String,
    /// In seconds.
    pub retry_after: Option<u64>,
    pub body: Bytes,
}

pub struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Driver>,
}

async fn connect(addresses: &[String]) -> Result<TcpStream, String> {
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => first = first.or_else(|| Some(words::dial(address, &error))),
        }
    }
    Err(first.unwrap_or_else(|| "there is no address".to_owned()))
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_open", &self.is_open()).finish()
    }
}

impl Link {
    /// Connects to the first of these addresses where something listens. The error is that of the first.
    pub async fn open(
        addresses: &[String],
        tls: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, String> {
        let stream = connect(addresses).await?;
        // A review is one small request and its answer.
        let _ = stream.set_nodelay(true);
        let stream = TlsConnector::from(tls).connect(name, stream).await;
        let stream = stream.map_err(|error| words::handshake(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        Ok(Self { sender, connection: Some(Box::pin(connection)) })
    }

    pub fn is_open(&self) -> bool {
        self.connection.is_some() && !self.sender.is_closed()
    }

    /// The status and the body of the answer, of which only so many bytes are read.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response, String> {
        let Self { sender, connection } = self;
        let answer = async {
            sender.ready().await.map_err(|error| error.to_string())?;
            let response = sender.send_request(request).await.map_err(|error| words::broken(&error))?;
            let status = response.status().as_u16();
            let content_type = response.headers().get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
            let content_type = content_type.to_owned();
            let retry_after = response.headers().get(header::RETRY_AFTER);
            let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
            let body = Limited::new(response.into_body(), limit).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok(Response { status, content_type, retry_after, body })
        };
        let mut answer = pin!(answer);
        poll_fn(|context| {
            let ended = connection.as_mut().is_some_and(|open| open.as_mut().poll(context).is_ready());
            if ended {
                *connection = None;
            }
            answer.as_mut().poll(context)
        })
        .await
    }
}
