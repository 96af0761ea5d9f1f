//! Listeners of the stand-in: addresses, TLS, and connections that end after a while.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
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
use super::command_line::TlsFiles;
use crate::server_trust::certificates;

/// The port of an address without one.
const PORT: u16 = 2379;
/// The most connections at an address.
const CONNECTIONS: usize = 256;
/// How long a connection may last: clients need it for one question, and make another.
const LIFETIME: Duration = Duration::from_secs(60);
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
pub async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (tls, router) = (tls.clone(), router.clone());
        connections.spawn(async move {
            let _ = tokio::time::timeout(LIFETIME, converse(stream, tls, router)).await;
            drop(place);
        });
    }
}

/// Serves a connection. Its errors are its client's.
async fn converse(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    match tls {
        None => answer(stream, router).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                answer(stream, router).await;
            }
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let service = TowerToHyperService::new(router);
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
