//! The server to load, and the credentials, from a kubeconfig.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::ExposeSecret;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use crate::Result;
use crate::client::Protocol;

pub struct Target {
    authority: String,
    address: SocketAddr,
    server_name: ServerName<'static>,
    tls: ClientConfig,
    /// The `Authorization` header, for tokens.
    pub authorization: Option<HeaderValue>,
}

impl Target {
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        let (cluster, user) = current_context(Kubeconfig::read_from(path)?)?;
        let url: http::Uri = cluster.server.as_deref().ok_or("the cluster has no server")?.parse()?;
        if url.scheme_str() != Some("https") {
            return Err(format!("{url} is not https").into());
        }
        let host = url.host().ok_or("the server's URL has no host")?;
        let bare_host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_u16().unwrap_or(443);
        let address = loopback_address(&bare_host, port)?;
        let server_name = cluster.tls_server_name.clone().unwrap_or(bare_host);
        let authorization = match &user.token {
            Some(token) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        Ok(Self {
            authority: format!("{host}:{port}"),
            address,
            server_name: ServerName::try_from(server_name)?,
            tls: tls_config(&cluster, &user)?,
            authorization,
        })
    }

    /// A reference server on `address` with this certificate.
    pub fn of_reference(address: SocketAddr, certificate: CertificateDer<'static>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        Ok(Self {
            authority: address.to_string(),
            address,
            server_name: ServerName::IpAddress(address.ip().into()),
            tls: tls_builder()?.with_root_certificates(roots).with_no_client_auth(),
            authorization: None,
        })
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A new connection that speaks `protocol`.
    pub async fn connect(&self, protocol: Protocol) -> Result<TlsStream<TcpStream>> {
        self.shake_hands(TcpStream::connect(self.address).await?, protocol).await
    }

    /// Like [`Target::connect`], with a small buffer, so that the server soon notices a client that does not read.
    pub async fn connect_narrow(&self, protocol: Protocol) -> Result<TlsStream<TcpStream>> {
        let socket = match self.address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_recv_buffer_size(16 * 1024)?;
        self.shake_hands(socket.connect(self.address).await?, protocol).await
    }

    async fn shake_hands(&self, stream: TcpStream, protocol: Protocol) -> Result<TlsStream<TcpStream>> {
        stream.set_nodelay(true)?;
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![protocol.alpn().to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
        Ok(connector.connect(self.server_name.clone(), stream).await?)
    }
}

fn current_context(mut config: Kubeconfig) -> Result<(Cluster, AuthInfo)> {
    let name = config.current_context.take().ok_or("the kubeconfig has no current context")?;
    let context = config.contexts.into_iter().find(|context| context.name == name);
    let context = context.and_then(|named| named.context).ok_or(format!("no context {name}"))?;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|named| named.cluster).ok_or(format!("no cluster {}", context.cluster))?;
    let user = config.auth_infos.into_iter().find(|user| Some(&user.name) == context.user.as_ref());
    Ok((cluster, user.and_then(|named| named.auth_info).unwrap_or_default()))
}

/// Accepts only loopback addresses: the load generator must run on the machine that it loads.
fn loopback_address(host: &str, port: u16) -> Result<SocketAddr> {
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let address =
        SocketAddr::new(host.parse().map_err(|_| format!("{host} is not a loopback address"))?, port);
    if !address.ip().is_loopback() {
        return Err(
            format!("{host} is not a loopback address: only servers on this machine are loaded").into()
        );
    }
    Ok(address)
}

fn tls_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?)
}

fn tls_config(cluster: &Cluster, user: &AuthInfo) -> Result<ClientConfig> {
    let builder = tls_builder()?;
    let builder = if cluster.insecure_skip_tls_verify == Some(true) {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate))
    } else {
        let pem = data_or_file(
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
        )?
        .ok_or("the cluster has no certificate authority")?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate?)?;
        }
        builder.with_root_certificates(roots)
    };
    let certificate =
        data_or_file(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
    let key = user.client_key_data.as_ref().map(|key| key.expose_secret());
    let key = data_or_file(key, user.client_key.as_deref())?;
    Ok(match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?
        }
        _ => builder.with_no_client_auth(),
    })
}

fn data_or_file(data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>> {
    use base64::Engine;
    Ok(match (data, file) {
        (Some(data), _) => Some(base64::engine::general_purpose::STANDARD.decode(data.trim())?),
        (None, Some(file)) => Some(std::fs::read(file)?),
        (None, None) => None,
    })
}

/// Accepts any certificate, for `insecure-skip-tls-verify`.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
