//! Listeners of etcd's API: addresses, TLS, and connections, which may last.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rowplane_etcd::wire::Peer;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::super::error::Error;
use super::command_line::{Keepalive, TlsFiles};
use super::routes::Routes;
use crate::server_trust::certificates;

/// The port of an address without one.
const PORT: u16 = 2379;
/// The most connections at an address.
const CONNECTIONS: usize = 16 << 10;
/// How long a handshake, and the head of a request of HTTP/1.1, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The bytes that a client may send ahead of what is read, on a stream and on a connection.
const WINDOW: u32 = 1 << 20;
/// The pause after an error of the system, such as a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub async fn bind(url: &Uri) -> Result<TcpListener, Error> {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let failed = |error| Error::Refused(format!("cannot listen on {url}: {error}"));
    let mut last = None;
    for address in tokio::net::lookup_host((host, url.port_u16().unwrap_or(PORT))).await.map_err(failed)? {
        let address: SocketAddr = address;
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(failed(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())))
}

/// The TLS of https URLs. Clients have to show a certificate if there are CAs for it.
pub fn tls(files: &TlsFiles) -> Result<TlsAcceptor, Error> {
    let refused = |flag: &str, why: &dyn std::fmt::Display| Error::Refused(format!("{flag}: {why}"));
    let chain = certificates(&files.certificate).map_err(|why| refused("--cert-file", &why))?;
    let key = key(&files.key).map_err(|why| refused("--key-file", &why))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| refused("TLS", &error))?;
    let builder = match &files.authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path).map_err(|why| refused("--trusted-ca-file", &why))? {
                roots.add(authority).map_err(|error| refused("--trusted-ca-file", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refused("--trusted-ca-file", &error))?)
        }
    };
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(|error| refused("--cert-file and --key-file", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| format!("{} is not a private key", path.display()))
}

/// Accepts connections for as long as it is polled. They end when it is dropped.
pub async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, routes: Routes, keepalive: Keepalive) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Small answers are waited for. A connection without the option is as good, only slower.
        let _ = stream.set_nodelay(true);
        let (tls, routes) = (tls.clone(), routes.clone());
        connections.spawn(async move {
            converse(stream, tls, routes, keepalive).await;
            drop(place);
        });
    }
}

/// Serves a connection. Its errors are its client's.
async fn converse(stream: TcpStream, tls: Option<TlsAcceptor>, routes: Routes, keepalive: Keepalive) {
    match tls {
        None => answer(stream, routes, Peer { scheme: "http", certificate: None }, keepalive).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                let shown = stream.get_ref().1.peer_certificates();
                let certificate = shown.and_then(|chain| chain.first()).map(|first| first.to_vec().into());
                answer(stream, routes, Peer { scheme: "https", certificate }, keepalive).await;
            }
        }
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Routes,
    client: Peer,
    keepalive: Keepalive,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(keepalive.streams)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(keepalive.interval)
        .keep_alive_timeout(keepalive.timeout);
    let service = hyper::service::service_fn(move |request| routes.clone().answer(client.clone(), request));
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
