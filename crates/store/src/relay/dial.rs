//! Making a connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

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
    let Some(tls) = &address.tls else { return Ok(Box::new(stream)) };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| error.to_string())?;
    match timeout(HANDSHAKE_TIME, TlsConnector::from(tls.clone()).connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(Lenient::over(stream))),
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
