//! Which server certificates a client of TLS takes: those of some authorities, and a certificate that is itself among them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The certificates in a file; at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    if found.is_empty() { Err(failed(&"there is no certificate in it")) } else { Ok(found) }
}

#[derive(Debug)]
pub struct Trusted {
    authorities: RootCertStore,
    /// The same certificates. A server's own certificate is accepted if it is among them, as OpenSSL and Go do: a
    /// self-signed certificate is its own authority.
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// All of these, or none.
    pub fn these(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut authorities = RootCertStore::empty();
        for certificate in &certificates {
            authorities.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        Ok(Self { authorities, certificates })
    }

    /// What the system trusts. Blocks.
    pub fn system() -> Self {
        let mut authorities = RootCertStore::empty();
        for certificate in rustls_native_certs::load_native_certs().certs {
            // Some of a system's certificates are too old for the rules of today; those are skipped.
            let _ = authorities.add(certificate);
        }
        Self { authorities, certificates: Vec::new() }
    }
}

#[derive(Debug)]
pub struct ServerVerifier {
    pub provider: Arc<CryptoProvider>,
    /// `None` if any certificate is accepted.
    pub roots: Option<Trusted>,
    /// Whether the name in the certificate has to be that of the server that was called.
    pub names: bool,
}

impl ServerVerifier {
    pub fn new(roots: Option<Trusted>, names: bool) -> Self {
        Self { provider: Arc::new(ring::default_provider()), roots, names }
    }
}

/// A client's certificate with its chain, and the key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The settings of a client of HTTP/1.1 over TLS. Without authorities, every server is believed.
pub fn client_config(
    trusted: Option<Trusted>,
    identity: Option<Identity>,
) -> Result<Arc<ClientConfig>, String> {
    let verifier = Arc::new(ServerVerifier::new(trusted, true));
    let builder = ClientConfig::builder_with_provider(verifier.provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if roots.certificates.iter().any(|root| root == end_entity) {
            in_its_time(end_entity, now)?;
        } else {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let authorities = &roots.authorities;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                authorities,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.names {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn in_its_time(certificate: &CertificateDer<'_>, time: UnixTime) -> Result<(), CertificateError> {
    use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate};
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = ASN1Time::from_timestamp(time.as_secs() as i64).map_err(|_| CertificateError::Expired)?;
    let validity = parsed.validity();
    match (now < validity.not_before, now > validity.not_after) {
        (true, _) => {
            let not_before = unix_time(validity.not_before.timestamp());
            Err(CertificateError::NotValidYetContext { time, not_before })
        }
        (_, true) => {
            let not_after = unix_time(validity.not_after.timestamp());
            Err(CertificateError::ExpiredContext { time, not_after })
        }
        _ => Ok(()),
    }
}

fn unix_time(seconds: i64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}
