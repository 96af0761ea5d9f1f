//! Connections that the extension server upgrades: to WebSockets, to SPDY, or to whatever was asked for. It sends back
//! what comes.

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Response, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Body, text};

/// Answers with 101, and serves the connection until the client closes it.
pub fn upgrade(headers: &HeaderMap, upgrade: OnUpgrade) -> Response<Body> {
    let first = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').next().unwrap_or_default().trim().to_owned()
    };
    let protocol = first("upgrade");
    let is_websocket = protocol.eq_ignore_ascii_case("websocket");
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let stream = TokioIo::new(upgraded);
        if is_websocket {
            let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            while let Some(Ok(message)) = socket.next().await {
                if !message.is_close() && socket.send(message).await.is_err() {
                    return;
                }
            }
        } else {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }
    });
    let mut response = Response::builder().status(101).header(header::CONNECTION, "Upgrade");
    response = response.header(header::UPGRADE, &*protocol);
    for chosen in ["sec-websocket-protocol", "x-stream-protocol-version"] {
        if headers.contains_key(chosen) {
            response = response.header(chosen, first(chosen));
        }
    }
    if let Some(key) = headers.get("sec-websocket-key").filter(|_| is_websocket) {
        response = response.header("sec-websocket-accept", derive_accept_key(key.as_bytes()));
    }
    response.body(text("")).expect("a response")
}
