//! TLS between sqlx and PostgreSQL.
//!
//! sqlx connects to a Unix socket that this process serves, and speaks plain text on it; the link forwards everything
//! over TLS. In this way `tls.rs` keeps what `sslmode` promises, for which sqlx has no settings, and connections are
//! kept alive. Errors of the link reach sqlx in the form of PostgreSQL's own error messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use sqlx::postgres::PgConnectOptions;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional_with_sizes,
};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};
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
/// How long a client may take to read an error.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves connections until it is dropped.
pub struct Link {
    directory: Directory,
    serving: AbortHandle,
}

impl Link {
    pub fn open(target: TlsTarget) -> io::Result<Self> {
        let directory = Directory::create()?;
        let listener = UnixListener::bind(directory.socket(target.port))?;
        let serving = tokio::spawn(serve(listener, Arc::new(target))).abort_handle();
        Ok(Self { directory, serving })
    }

    /// The same options, but leading through this link.
    pub fn route(&self, options: PgConnectOptions) -> PgConnectOptions {
        options.socket(&self.directory.path)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: UnixListener, target: Arc<TlsTarget>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) if is_own(&client) => drop(connections.spawn(carry(client, target.clone()))),
                Ok(_) => {}
                // Probably the process has run out of file descriptors.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Whether the client is this very process. The link may present a client certificate that other processes do not have.
fn is_own(client: &UnixStream) -> bool {
    client.peer_cred().is_ok_and(|peer| peer.pid() == Some(std::process::id() as i32))
}

async fn carry(mut client: UnixStream, target: Arc<TlsTarget>) {
    let result = match dial(&target).await {
        Ok(mut server) => {
            copy_bidirectional_with_sizes(&mut client, &mut server, BUFFERS.0, BUFFERS.1).await.map(drop)
        }
        Err(reason) => refuse(client, &reason).await,
    };
    if let Err(error) = result {
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

/// Sends the client an error message of the protocol and waits until it closes, since its own first message may still
/// be on the way.
async fn refuse(mut client: UnixStream, reason: &str) -> io::Result<()> {
    client.write_all(&error_response(reason)).await?;
    client.shutdown().await?;
    let _ = timeout(FAREWELL, tokio::io::copy(&mut client, &mut tokio::io::sink())).await;
    Ok(())
}

/// The message `ErrorResponse` with the SQLSTATE for a connection that could not be made.
fn error_response(reason: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    for (kind, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', NO_CONNECTION), (b'M', reason)] {
        fields.push(kind);
        fields.extend(value.bytes().filter(|byte| *byte != 0));
        fields.push(0);
    }
    fields.push(0);
    let mut message = vec![b'E'];
    message.extend((fields.len() as u32 + 4).to_be_bytes());
    message.extend(fields);
    message
}

/// `sqlclient_unable_to_establish_sqlconnection`
pub const NO_CONNECTION: &str = "08001";

/// The place of the link's socket. On Linux it has an abstract name instead of a file, so that a read-only file system
/// does no harm.
struct Directory {
    path: String,
    is_file: bool,
}

impl Directory {
    #[expect(clippy::disallowed_methods, reason = "other processes share these names")]
    fn create() -> io::Result<Self> {
        let name = format!("rowplane-{:016x}", rand::random::<u64>());
        if cfg!(target_os = "linux") {
            return Ok(Self { path: format!("\0{name}"), is_file: false });
        }
        let path = std::env::temp_dir().join(name);
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700).create(&path)?;
        Ok(Self { path: path.to_string_lossy().into_owned(), is_file: true })
    }

    /// The socket's path as sqlx and libpq form it from a directory and a port.
    fn socket(&self, port: u16) -> String {
        format!("{}/.s.PGSQL.{port}", self.path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_file {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
