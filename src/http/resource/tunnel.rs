//! port-forward in a WebSocket, towards a kubelet that speaks SPDY alone: the client's SPDY goes through the WebSocket as bytes
//! (upstream's `TunnelingHandler`).

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::TryFutureExt as _;
use hyper_util::rt::TokioIo;

use super::Context;
use super::upgrade::{refused, upgrade_request};
use crate::api::error::Error;
use crate::api::subresource::connect::Location;
use crate::auth::authn::is_websocket;
use crate::http::request::header_text;
use crate::http::websocket::{self, Tunnel};
use crate::metrics::LongRunning;

pub const SPDY: HeaderValue = HeaderValue::from_static("SPDY/3.1");
pub const PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// Whether a client asks for SPDY in a WebSocket.
pub fn offers_tunnel(headers: &HeaderMap) -> bool {
    is_websocket(headers) && !websocket::tunnelled(headers).is_empty()
}

impl Context<'_> {
    pub(super) async fn tunnel(&self, location: &Location, active: LongRunning) -> Result<Response, Error> {
        let answered = self.open_tunnel(location, active).await;
        let status = answered.as_ref().map_or(StatusCode::INTERNAL_SERVER_ERROR, Response::status);
        self.app.metrics.stream_tunnelled(status.as_u16());
        answered
    }

    async fn open_tunnel(&self, location: &Location, active: LongRunning) -> Result<Response, Error> {
        let client = self.client()?;
        let accept = match websocket::accept_tunnel(&self.parts.headers) {
            Ok(accept) => accept,
            Err(refusal) => return Ok(*refusal),
        };
        let request = upgrade_request(self.parts, location);
        let mut request =
            request.map_err(|why| Error::Unclassified(format!("error sending request: {why}")))?;
        *request.method_mut() = Method::POST;
        let headers = request.headers_mut();
        for name in [
            header::SEC_WEBSOCKET_PROTOCOL,
            header::SEC_WEBSOCKET_KEY,
            header::SEC_WEBSOCKET_VERSION,
            header::SEC_WEBSOCKET_EXTENSIONS,
            PROTOCOL,
        ] {
            headers.remove(name);
        }
        headers.insert(header::UPGRADE, SPDY);
        for protocol in websocket::tunnelled(&self.parts.headers) {
            headers.append(PROTOCOL, protocol);
        }
        let answer = self.ask_for_upgrade(location, request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return refused(answer).await;
        }
        if !is_spdy(answer.headers()) {
            let why = "unable to upgrade: missing upgrade headers in response";
            return Ok(*websocket::refusal(StatusCode::INTERNAL_SERVER_ERROR, why));
        }
        let headers = websocket::open_tunnel(accept, answer.headers().get(PROTOCOL));
        let client = client.map_ok(|client| Tunnel::new(TokioIo::new(client)));
        self.take_over(client, answer, headers, active)
    }
}

pub fn is_spdy(headers: &HeaderMap) -> bool {
    let says = |name, what: &str| {
        header_text(headers, name).is_some_and(|text| text.to_ascii_lowercase().contains(what))
    };
    says(header::CONNECTION, "upgrade") && says(header::UPGRADE, "spdy/3.1")
}
