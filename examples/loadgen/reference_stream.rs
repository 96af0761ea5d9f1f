//! The speed of hyper itself over the same TLS: a prepared buffer in chunks, sent by a process of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::Result;
use crate::target::Target;

const CHUNK: usize = 128 * 1024;

/// A running reference server, which ends with this value.
pub struct Reference {
    pub target: Arc<Target>,
    _process: tokio::process::Child,
}

impl Reference {
    /// Starts a server that answers every request with `bytes` bytes.
    pub async fn start(bytes: usize) -> Result<Self> {
        use base64::Engine;
        let mut process = tokio::process::Command::new(std::env::current_exe()?)
            .args(["--serve-stream", &bytes.to_string()])
            .env_remove("KUBECONFIG")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let line = lines.next_line().await?.ok_or("the reference server did not start")?;
        let (address, certificate) = line.split_once(' ').ok_or("an unexpected reference server")?;
        let certificate = base64::engine::general_purpose::STANDARD.decode(certificate)?;
        let target = Target::of_reference(address.parse()?, CertificateDer::from(certificate))?;
        Ok(Self { target: Arc::new(target), _process: process })
    }
}

/// Serves until the process is ended.
pub async fn serve(bytes: usize) -> Result<()> {
    use base64::Engine;
    let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()));
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let certificate = base64::engine::general_purpose::STANDARD.encode(identity.cert.der());
    println!("{} {certificate}", listener.local_addr()?);

    let buffer = Bytes::from(vec![b'x'; bytes]);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, buffer) = (acceptor.clone(), buffer.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = hyper::service::service_fn(move |_| {
                let buffer = buffer.clone();
                async move { Ok::<_, Infallible>(Response::new(chunks(buffer))) }
            });
            // An error means that the client has disconnected.
            _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn chunks(buffer: Bytes) -> StreamBody<impl futures_util::Stream<Item = Result<Frame<Bytes>, Infallible>>> {
    StreamBody::new(stream::unfold(buffer, |mut rest| async move {
        let chunk = rest.split_to(rest.len().min(CHUNK));
        (!chunk.is_empty()).then(|| (Ok(Frame::data(chunk)), rest))
    }))
}
