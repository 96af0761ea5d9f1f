//! Answers as WebSockets, for clients that only listen: browsers that follow a log, and those that watch so, fabric8's among
//! them (upstream's `wsstream.Reader` and `WatchServer.HandleWS`).
//!
//! The frames are the answer's body, so seats, records, metrics and limits see what they see of other answers. What the client
//! sends is read and forgotten, but for pings and for its goodbye.

pub mod channels;
mod client;
mod frames;
mod messages;
mod tunnel;

use std::sync::Arc;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::Stream;
use hyper::upgrade::OnUpgrade;
use url::Url;

use self::client::speak;
use self::messages::{Messages, Replies};
use super::request::header_text;
use super::server::takeover::Takeover;
use crate::api::error::Error;

pub use self::messages::Form;
pub use self::tunnel::Tunnel;

const VERSION: HeaderValue = HeaderValue::from_static("13");
/// The text that RFC 6455 hashes with the client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The subprotocol whose messages are bytes as they come.
const BINARY: &str = "binary.k8s.io";
/// The prefix of the subprotocol of a connection within a WebSocket, in front of the name of its own protocol.
const TUNNEL: &str = "SPDY/3.1+";
/// The subprotocol whose messages are bytes in base64, for clients that cannot read others.
const BASE64: &str = "base64.binary.k8s.io";

/// The answer to a handshake that the server does not accept.
pub type Refusal = Box<Response>;

/// A handshake that the server accepts.
pub struct Accepted {
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
    pub form: Form,
}

/// The handshake of a watch, whose messages have this form. Upstream asks for an origin, and chooses no subprotocol of several.
pub fn accept_watch(parts: &Parts, form: Form) -> Result<Accepted, Refusal> {
    let (accept, offered) = handshake(&parts.headers)?;
    let origin = header_text(&parts.headers, header::ORIGIN);
    if !origin.is_some_and(|origin| origin.starts_with('/') || Url::parse(origin).is_ok()) {
        return Err(refusal(StatusCode::FORBIDDEN, ""));
    }
    let protocol = match &*offered {
        [] => None,
        [one] => HeaderValue::from_str(one).ok(),
        _ => return Err(refusal(StatusCode::BAD_REQUEST, "")),
    };
    Ok(Accepted { accept, protocol, form })
}

/// The handshake of a log, whose form the client chooses by a subprotocol.
pub fn accept_log(parts: &Parts) -> Result<Accepted, Refusal> {
    let (accept, offered) = handshake(&parts.headers)?;
    if offered.is_empty() {
        return Ok(Accepted { accept, protocol: None, form: Form::Binary });
    }
    let known = |name: &&str| match *name {
        BINARY => Some((HeaderValue::from_static(BINARY), Form::Binary)),
        BASE64 => Some((HeaderValue::from_static(BASE64), Form::Base64)),
        _ => None,
    };
    let Some((protocol, form)) = offered.iter().find_map(known) else {
        return Err(refusal(StatusCode::FORBIDDEN, ""));
    };
    Ok(Accepted { accept, protocol: Some(protocol), form })
}

/// The handshake of a tunnel, which is accepted once the other end is there.
pub fn accept_tunnel(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    handshake(headers).map(|(accept, _)| accept)
}

/// The subprotocols that a client offers for a tunnel, without what says that it is one.
pub fn tunnelled(headers: &HeaderMap) -> Vec<HeaderValue> {
    let offered = header_text(headers, header::SEC_WEBSOCKET_PROTOCOL).unwrap_or_default().split(',');
    let known = offered.filter_map(|offered| offered.trim().strip_prefix(TUNNEL));
    known.filter(|known| known.ends_with(".k8s.io")).filter_map(|known| known.parse().ok()).collect()
}

/// The head of the answer that begins a tunnel of this protocol.
pub fn open_tunnel(accept: HeaderValue, protocol: Option<&HeaderValue>) -> HeaderMap {
    let protocol = protocol.and_then(|protocol| protocol.to_str().ok());
    open(accept, protocol.and_then(|protocol| HeaderValue::try_from(format!("{TUNNEL}{protocol}")).ok()))
}

/// The head of the answer that begins a WebSocket of this protocol, if it has one: upstream sends an empty one for none, which
/// strict clients refuse.
pub fn open(accept: HeaderValue, protocol: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    protocol.map(|protocol| headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol));
    headers
}

/// The answer that speaks these messages.
pub fn answer<S>(parts: &Parts, accepted: Accepted, messages: S) -> Result<Response, Error>
where
    S: Stream<Item = Result<Bytes, BoxError>> + Send + Unpin + 'static,
{
    let Some(client) = parts.extensions.get::<OnUpgrade>().cloned() else {
        let why = format!("request connection cannot be hijacked: {:?} has no upgrades", parts.version);
        return Err(Error::Unclassified(why));
    };
    let replies = Arc::new(Replies::default());
    let body = Body::from_stream(Messages::new(messages, accepted.form, replies.clone()));
    let takeover = Takeover::sending(move |body| speak(client, body, replies));
    Ok(takeover.response(open(accepted.accept, accepted.protocol), body))
}

/// The proof that the handshake was understood, and the subprotocols that the client offers.
fn handshake(headers: &HeaderMap) -> Result<(HeaderValue, Vec<&str>), Refusal> {
    let text = |name: HeaderName| header_text(headers, name).unwrap_or_default();
    let key = text(header::SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(refusal(StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        let mut refusal = refusal(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        refusal.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, VERSION);
        return Err(refusal);
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    let accept = HeaderValue::from_str(&STANDARD.encode(hash))
        .map_err(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR, ""))?;
    let offered = text(header::SEC_WEBSOCKET_PROTOCOL).trim();
    let offered = if offered.is_empty() { Vec::new() } else { offered.split(',').map(str::trim).collect() };
    Ok((accept, offered))
}

/// The end of a connection whose handshake is wrong.
pub fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Box::new(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let mut headers = HeaderMap::new();
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(header::SEC_WEBSOCKET_VERSION, VERSION);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(" a, b "));
        let (accept, offered) = handshake(&headers).expect("accepted");
        assert_eq!((accept.as_bytes(), &*offered), (&b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="[..], &["a", "b"][..]));
    }
}
