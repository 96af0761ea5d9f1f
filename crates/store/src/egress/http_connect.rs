//! Connections that a proxy of HTTP makes, asked by CONNECT (upstream's `tunnelHTTPConnect`).

use std::pin::pin;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;

use super::Stream;

/// Lets the proxy connect to `server`. `proxy` is its name in errors.
pub(super) async fn tunnel(stream: Stream, proxy: &str, server: &str) -> Result<Stream, String> {
    let failed = |why: String| {
        format!("reading HTTP response from CONNECT to {server} via proxy {proxy} failed: {why}")
    };
    let broken = |error: hyper::Error| {
        failed(if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() })
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::builder().method(Method::CONNECT).uri(server).header(header::HOST, "127.0.0.1");
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| failed(error.to_string()))?;
    let mut connection = pin!(connection.with_upgrades());
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        if status != StatusCode::OK {
            let code = status.as_u16();
            return Err(format!("proxy error from {proxy} while dialing {server}, code {code}: {status}"));
        }
        hyper::upgrade::on(response).await.map_err(broken)
    };
    let mut exchange = pin!(exchange);
    // The connection is driven until it is handed over.
    let upgraded = tokio::select! {
        upgraded = &mut exchange => upgraded?,
        _ = &mut connection => exchange.await?,
    };
    let parts = upgraded.downcast::<TokioIo<Stream>>().map_err(|_| failed("no connection".to_owned()))?;
    match parts.read_buf.len() {
        0 => Ok(parts.io.into_inner()),
        // The client speaks first in TLS, so that nothing can have come yet.
        many => Err(format!("unexpected {many} bytes of buffered data from CONNECT proxy \"{proxy}\"")),
    }
}
