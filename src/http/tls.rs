//! TLS for the listener: HTTP/2 and HTTP/1.1 by ALPN, client certificates welcome but not required.
//!
//! Like kube-apiserver, the handshake accepts any client certificate whose key the client holds, and the
//! CA's word is asked for afterwards: a certificate of somebody else's CA is no identity, not a
//! connection that breaks with an alert nobody understands.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};

use crate::auth::authn::user_of_certificate;
use crate::user::User;

/// Certificates or a key that TLS cannot be served with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the client CA cannot be used: {0}")]
    ClientCa(String),
    #[error("the serving certificate and key cannot be used: {0}")]
    Serving(rustls::Error),
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// What the server shows to its clients.
#[derive(Debug)]
pub struct ServingCertificate {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// The TLS side of a server, shared by its connections.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    clients: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    /// `client_roots` are the CAs that vouch for clients.
    pub fn new(
        serving: ServingCertificate,
        client_roots: Vec<CertificateDer<'static>>,
    ) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let clients = client_verifier(&provider, client_roots)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::Setup)?
            .with_client_cert_verifier(Arc::new(Unjudged { judge: clients.clone() }))
            .with_single_cert(serving.chain, serving.key)
            .map_err(Error::Serving)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = ring::Ticketer::new().map_err(Error::Setup)?;
        Ok(Self { config: Arc::new(config), clients })
    }

    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// The user that the certificates of a finished handshake stand for; `None` when there are none, when
    /// no known CA vouches for them, or when they name nobody.
    pub fn identify(&self, chain: &[CertificateDer<'_>]) -> Option<User> {
        let (end_entity, intermediates) = chain.split_first()?;
        match self.clients.verify_client_cert(end_entity, intermediates, UnixTime::now()) {
            Ok(_) => user_of_certificate(end_entity),
            Err(error) => {
                tracing::debug!(%error, "client certificate is not trusted");
                None
            }
        }
    }
}

fn client_verifier(
    provider: &Arc<CryptoProvider>,
    authorities: Vec<CertificateDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| Error::ClientCa(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| Error::ClientCa(error.to_string()))
}

/// Lets every certificate through the handshake, whose signatures `judge` still checks: the client has
/// the key. Whether anybody vouches for it is [`Tls::identify`]'s to say.
#[derive(Debug)]
struct Unjudged {
    judge: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Unjudged {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.judge.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}
