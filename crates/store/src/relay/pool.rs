//! Connections to one server that are kept from one request to the next: HTTP/2 where the server offers it, HTTP/1.1 otherwise.
//!
//! A request goes to the first of the addresses that its caller names. A kept connection to another address is not used, and
//! given up once the address is no longer named.

mod kept;

use std::error::Error as StdError;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;

use self::kept::{Connection, Kept, Lease};
use super::dial::dial_named;
use crate::answers::interim::{Interim, TOO_MANY};
use crate::answers::{client, client_http2};
use crate::egress::{Route, Stream};
use crate::server_trust::with_http2;
use crate::webhook::words;

pub use self::kept::Receiving;

/// The body of a request.
pub type Outgoing = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;
type Sender1 = http1::SendRequest<Outgoing>;
type Sender2 = http2::SendRequest<Outgoing>;

/// Bytes of an answer that may wait for its reader, over HTTP/2.
const STREAM_WINDOW: u32 = 512 << 10;
/// The window of a connection, as Go's client has it: readers that stall hold up nobody but themselves.
const CONNECTION_WINDOW: u32 = 1 << 30;

/// The kept connections to one server.
#[derive(Debug)]
pub struct Pool {
    /// The settings that offer HTTP/2, too.
    tls: Arc<ClientConfig>,
    /// The settings that offer HTTP/1.1 alone.
    upgrading: Arc<ClientConfig>,
    /// The name in the server's certificate, whatever address it has.
    server_name: String,
    kept: Kept,
}

/// Why a request has no answer, and the request if the server has certainly not read it.
type Unsent = (String, Option<Box<Request<Outgoing>>>);

impl Pool {
    /// `upgrading` are the settings of a client of HTTP/1.1; HTTP/2 is offered in addition.
    pub fn new(upgrading: Arc<ClientConfig>, server_name: String) -> Self {
        Self { tls: with_http2(&upgrading), upgrading, server_name, kept: Kept::default() }
    }

    /// Makes a connection of HTTP/1.1 that is to be upgraded.
    pub async fn dial(&self, to: &Route) -> Result<Stream, String> {
        Ok(dial_named(to, &self.upgrading, &self.server_name).await?.1)
    }

    /// Sends a request to one of these addresses, dialled in their order. Its URI is a path with a query, its
    /// header Host the authority. A kept connection that has been closed is replaced, unless the server may have read the
    /// request. The error is in the words of Go's `net/http`.
    pub async fn send(
        &self,
        to: &Route,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Receiving>, String> {
        let first = to.addresses.first().ok_or("there is no address")?;
        self.kept.keep_only(&to.addresses);
        while let Some(lease) = self.kept.take(first) {
            match send_on(lease, request).await {
                Ok(response) => return Ok(response),
                Err((why, None)) => return Err(why),
                Err((_, Some(unsent))) => request = *unsent,
            }
        }
        let lease = self.open(to).await?;
        send_on(lease, request).await.map_err(|(why, _)| why)
    }

    /// Closes connections that nobody uses.
    pub fn close_idle(&self) {
        self.kept.clear();
    }

    async fn open(&self, to: &Route) -> Result<Lease, String> {
        let (address, stream, speaks_http2) = dial_named(to, &self.tls, &self.server_name).await?;
        // A driver ends with its connection, which ends with its last sender and stream.
        if speaks_http2 {
            let mut builder = client_http2();
            builder
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            let made = builder.handshake(TokioIo::new(stream)).await;
            let (sender, driver) = made.map_err(|error| words::broken(&error))?;
            tokio::spawn(driver);
            return Ok(self.kept.add_shared(address, sender));
        }
        let made = client().handshake(TokioIo::new(stream)).await;
        let (sender, driver) = made.map_err(|error| words::broken(&error))?;
        tokio::spawn(driver);
        Ok(self.kept.add_single(address, sender))
    }
}

async fn send_on(mut lease: Lease, mut request: Request<Outgoing>) -> Result<Response<Receiving>, Unsent> {
    let interim = Interim::of(&mut request);
    let is_closed = |error: hyper::Error, request| (words::broken(&error), Some(Box::new(request)));
    let sent = match lease.connection.as_mut() {
        Some(Connection::Single(sender)) => {
            name_host(&mut request).map_err(|why| (why, None))?;
            match sender.ready().await {
                Ok(()) => sender.try_send_request(request).await,
                Err(error) => return Err(is_closed(error, request)),
            }
        }
        Some(Connection::Shared(sender, _)) => {
            name_authority(&mut request).map_err(|why| (why, None))?;
            match sender.ready().await {
                Ok(()) => sender.try_send_request(request).await,
                Err(error) => return Err(is_closed(error, request)),
            }
        }
        None => return Err(("the connection was given back".to_owned(), None)),
    };
    match sent {
        Ok(_) if interim.are_too_many() => Err((TOO_MANY.to_owned(), None)),
        Ok(response) => Ok(response.map(|body| Receiving::new(body, lease))),
        Err(mut failed) => {
            lease.is_reusable = false;
            let request = failed.take_message().map(Box::new);
            Err((words::broken(failed.error()), request))
        }
    }
}

/// Undoes [`name_authority`], for a request that a closed connection of HTTP/2 has not taken.
fn name_host(request: &mut Request<Outgoing>) -> Result<(), String> {
    let Some(authority) = request.uri().authority() else { return Ok(()) };
    let host = HeaderValue::from_str(authority.as_str()).map_err(|error| error.to_string())?;
    request.headers_mut().insert(header::HOST, host);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    Ok(())
}

/// HTTP/2 says in the URI what HTTP/1.1 says in a header.
fn name_authority(request: &mut Request<Outgoing>) -> Result<(), String> {
    if request.uri().authority().is_some() {
        return Ok(());
    }
    let host = request.headers_mut().remove(header::HOST);
    let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("https").authority(host).path_and_query(path).build();
    *request.uri_mut() = uri.map_err(|error| error.to_string())?;
    Ok(())
}
