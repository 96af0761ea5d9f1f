//! Making a connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Address;
use crate::answers::lenient::Lenient;
use crate::webhook::words;

/// The limits of Go's default transport.
const CONNECT_TIME: Duration = Duration::from_secs(30);
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A connection that bytes go through.
pub trait Connected: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connected for T {}

/// A connection with or without TLS.
pub type Stream = Box<dyn Connected>;

/// Connects to a server, at the addresses that were checked if there are any.
pub async fn dial(address: &Address) -> Result<Stream, String> {
    let socket = address.socket();
    let stream = match timeout(CONNECT_TIME, connect(address, &socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(words::dial(&socket, &error)),
        Err(_) => return Err(format!("dial tcp {socket}: i/o timeout")),
    };
    // What is typed has to arrive at once.
    let _ = stream.set_nodelay(true);
    match &address.tls {
        Some(tls) => Ok(secured(stream, tls, &address.host).await?.0),
        None => Ok(Box::new(stream)),
    }
}

/// Connects to the first of these addresses (`host:port`) where something listens, with TLS for a server of this name. Tells
/// the address, and whether the server speaks HTTP/2. The error is that of the first address.
pub async fn dial_named<'a>(
    addresses: &'a [String],
    tls: &Arc<ClientConfig>,
    name: &str,
) -> Result<(&'a str, Stream, bool), String> {
    let mut first = None;
    for address in addresses {
        let why = match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                let (stream, speaks_http2) = secured(stream, tls, name).await?;
                return Ok((address, stream, speaks_http2));
            }
            Ok(Err(error)) => words::dial(address, &error),
            Err(_) => format!("dial tcp {address}: i/o timeout"),
        };
        first = first.or(Some(why));
    }
    Err(first.unwrap_or_else(|| "there is no address".to_owned()))
}

/// TLS over a connection, and whether the server has chosen HTTP/2.
async fn secured(stream: TcpStream, tls: &Arc<ClientConfig>, name: &str) -> Result<(Stream, bool), String> {
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

async fn connect(address: &Address, socket: &str) -> io::Result<TcpStream> {
    if address.checked.is_empty() {
        return TcpStream::connect(socket).await;
    }
    let port = socket.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "invalid port value"))?;
    let checked: Vec<SocketAddr> = address.checked.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
    TcpStream::connect(&*checked).await
}
