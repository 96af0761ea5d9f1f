//! Making a connection.

use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Address;
use crate::answers::lenient::Lenient;
use crate::egress::{Stream, words};

/// The limits of Go's default transport.
const CONNECT_TIME: Duration = Duration::from_secs(30);
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Connects to a server, at the addresses that were checked if there are any.
pub async fn dial(address: &Address) -> Result<Stream, String> {
    let socket = address.socket();
    let connecting = address.egress.connect(&socket, &address.checked);
    let stream = timeout(CONNECT_TIME, connecting).await;
    let stream = stream.unwrap_or_else(|_| Err(format!("dial tcp {socket}: i/o timeout")))?;
    let Some(tls) = &address.tls else { return Ok(stream) };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| error.to_string())?;
    match timeout(HANDSHAKE_TIME, TlsConnector::from(tls.clone()).connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(Lenient::over(stream))),
        Ok(Err(error)) => Err(words::handshake(&error)),
        Err(_) => Err("net/http: TLS handshake timeout".to_owned()),
    }
}
