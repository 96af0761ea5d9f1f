//! TLS between sqlx and PostgreSQL.
//!
//! sqlx connects to a Unix socket that this process serves for that one connection, and speaks plain text on it; everything goes
//! on over a TLS stream that is there already. In this way `tls.rs` keeps what `sslmode` promises, for which sqlx has no
//! settings, and connections are kept alive.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use sqlx::postgres::PgConnectOptions;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional_with_sizes,
};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::{TlsTarget, Trust};
use super::tls;
use crate::x509;

/// PostgreSQL's `SSLRequest`: asks for TLS before anything else is sent.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// A peer that has been silent for this long is probed; after three probes without an answer the connection ends.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Buffer sizes in bytes: towards the database (statements) and from it (rows, which are more).
const BUFFERS: (usize, usize) = (16 * 1024, 64 * 1024);
/// How long a stream waits for sqlx.
const ARRIVAL: Duration = Duration::from_secs(5);

/// Connects to the database. Returns the same options, but leading to that connection, once.
pub async fn open(target: &TlsTarget, options: &PgConnectOptions) -> io::Result<PgConnectOptions> {
    let server = dial(target).await.map_err(io::Error::other)?;
    let directory = directory();
    // As sqlx and libpq form it from a directory and a port.
    let listener = UnixListener::bind(format!("{directory}/.s.PGSQL.{}", target.port))?;
    tokio::spawn(async move {
        if let Ok(Ok(client)) = timeout(ARRIVAL, accept(&listener)).await {
            drop(listener);
            carry(client, server).await;
        }
    });
    Ok(options.clone().socket(directory))
}

/// An abstract name for the socket of one connection, which is no file: a read-only file system does no harm.
#[expect(clippy::disallowed_methods, reason = "other processes share these names")]
fn directory() -> String {
    format!("\0rowplane-{:016x}", rand::random::<u64>())
}

/// Waits for this very process. The connection may be authenticated by a client certificate that others do not have.
async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (client, _) = listener.accept().await?;
        if client.peer_cred().is_ok_and(|peer| peer.pid() == Some(std::process::id() as i32)) {
            return Ok(client);
        }
    }
}

async fn carry(mut client: UnixStream, mut server: Box<dyn Stream>) {
    let carried = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFERS.0, BUFFERS.1).await;
    if let Err(error) = carried {
        tracing::debug!(%error, "a link to the database broke");
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn dial(target: &TlsTarget) -> Result<Box<dyn Stream>, String> {
    let mut server = connect(target).await?;
    if !speaks_tls(&mut server, target).await? {
        return match target.optional {
            true => Ok(Box::new(server)),
            false => {
                Err(format!("the database at {} does not speak TLS, and sslmode demands it", target.host))
            }
        };
    }
    match secure(server, target).await {
        Ok(server) => Ok(Box::new(server)),
        // libpq does the same with `sslmode=prefer`.
        Err(_) if target.optional => Ok(Box::new(connect(target).await?)),
        Err(reason) => Err(reason),
    }
}

async fn connect(target: &TlsTarget) -> Result<TcpStream, String> {
    let failed = |error: io::Error| format!("{}:{}: {error}", target.host, target.port);
    let server = TcpStream::connect((&*target.host, target.port)).await.map_err(failed)?;
    server.set_nodelay(true).map_err(failed)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(3);
    SockRef::from(&server).set_tcp_keepalive(&keepalive).map_err(failed)?;
    Ok(server)
}

/// Whether the server accepts TLS. Exactly one byte is read: anything behind it would not have come through TLS.
async fn speaks_tls(server: &mut TcpStream, target: &TlsTarget) -> Result<bool, String> {
    let failed = |error: io::Error| format!("{}:{}: {error}", target.host, target.port);
    server.write_all(&SSL_REQUEST).await.map_err(failed)?;
    match server.read_u8().await.map_err(failed)? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        _ => Err(format!("what answers at {}:{} is no PostgreSQL", target.host, target.port)),
    }
}

async fn secure(server: TcpStream, target: &TlsTarget) -> Result<impl Stream + use<>, String> {
    let reading = tokio::task::spawn_blocking({
        let target = target.clone();
        move || tls::config(&target)
    });
    let config = reading.await.map_err(|_| "the certificates cannot be read".to_owned())??;
    let name = ServerName::try_from(target.name.clone())
        .map_err(|_| format!("{:?} is no name that a certificate could have", target.name))?;
    let secured = TlsConnector::from(config).connect(name, server).await;
    secured.map_err(|error| match target.trust {
        Trust::Anybody => format!("TLS with the database at {} failed: {error}", target.name),
        _ => {
            let why =
                x509::Error::of_handshake(&error).map_or_else(|| error.to_string(), ToString::to_string);
            format!("the certificate of the database at {} is not accepted: {why}", target.name)
        }
    })
}
