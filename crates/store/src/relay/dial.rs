//! Making a connection.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Address;
use crate::answers::lenient::Lenient;
use crate::egress::{Route, Stream, words};

/// The limits of Go's default transport.
const CONNECT_TIME: Duration = Duration::from_secs(30);
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Connects to a server, at the addresses that were checked if there are any.
pub async fn dial(address: &Address) -> Result<Stream, String> {
    let socket = address.socket();
    let connecting = address.egress.connect(&socket, &address.checked);
    let stream = timeout(CONNECT_TIME, connecting).await;
    let stream = stream.unwrap_or_else(|_| Err(format!("dial tcp {socket}: i/o timeout")))?;
    match &address.tls {
        Some(tls) => Ok(secured(stream, tls, &address.host).await?.0),
        None => Ok(stream),
    }
}

/// Connects to the first of these addresses where something listens, with TLS for a server of this name. Tells
/// the address, and whether the server speaks HTTP/2. The error is that of the first address.
pub async fn dial_named<'a>(
    to: &'a Route,
    tls: &Arc<ClientConfig>,
    name: &str,
) -> Result<(&'a str, Stream, bool), String> {
    let mut first = None;
    for address in &to.addresses {
        let why = match timeout(CONNECT_TIME, to.egress.connect(address, &[])).await {
            Ok(Ok(stream)) => {
                let (stream, speaks_http2) = secured(stream, tls, name).await?;
                return Ok((address, stream, speaks_http2));
            }
            Ok(Err(why)) => why,
            Err(_) => format!("dial tcp {address}: i/o timeout"),
        };
        first = first.or(Some(why));
    }
    Err(first.unwrap_or_else(|| "there is no address".to_owned()))
}

/// TLS over a connection, and whether the server has chosen HTTP/2.
async fn secured(stream: Stream, tls: &Arc<ClientConfig>, name: &str) -> Result<(Stream, bool), String> {
    let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    match timeout(HANDSHAKE_TIME, TlsConnector::from(tls.clone()).connect(name, stream)).await {
        Ok(Ok(stream)) => {
            let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok((Box::new(Lenient::over(stream)), speaks_http2))
        }
        Ok(Err(error)) => Err(words::handshake(&error)),
        Err(_) => Err("net/http: TLS handshake timeout".to_owned()),
    }
}
