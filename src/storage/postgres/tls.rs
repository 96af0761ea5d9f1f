//! The TLS side of a link to PostgreSQL: how the server's certificate is verified.
//!
//! sqlx's own TLS would not do: it trusts every CA of the system in addition to the root file, so that `verify-ca`
//! would accept a certificate of any public CA; and it treats `require` with a root file like `require` without one.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::address::{Roots, TlsTarget, Trust};

/// Makes the TLS configuration. The files are read anew each time, so that renewed certificates take effect with the
/// next connection. Blocks.
pub fn config(target: &TlsTarget) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let (roots, names) = match &target.trust {
        Trust::Anybody => (None, false),
        Trust::Issuer(roots) => (Some(Trusted::read(roots)?), false),
        Trust::IssuerAndName(roots) => (Some(Trusted::read(roots)?), true),
    };
    let verifier = Arc::new(ServerVerifier { provider: provider.clone(), roots, names });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &target.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.certificate)?;
            let key = PrivateKeyDer::from_pem_file(&identity.key);
            let key = key.map_err(|error| format!("{}: {error}", identity.key.display()))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
        }
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    if found.is_empty() { Err(failed(&"there is no certificate in it")) } else { Ok(found) }
}

#[derive(Debug)]
struct Trusted {
    authorities: RootCertStore,
    /// The same certificates. A server's own certificate is accepted if it is among them, as OpenSSL does: a
    /// self-signed certificate is its own authority.
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn read(roots: &Roots) -> Result<Self, String> {
        let (certificates, strict) = match roots {
            Roots::File(path) => (certificates(path)?, Some(path)),
            Roots::System => (rustls_native_certs::load_native_certs().certs, None),
        };
        let mut authorities = RootCertStore::empty();
        for certificate in &certificates {
            match (authorities.add(certificate.clone()), strict) {
                (Err(error), Some(path)) => return Err(format!("{}: {error}", path.display())),
                // Some of a system's certificates are too old for the rules of today; those are skipped.
                (Err(_), None) | (Ok(()), _) => {}
            }
        }
        let certificates = if strict.is_some() { certificates } else { Vec::new() };
        Ok(Self { authorities, certificates })
    }
}

#[derive(Debug)]
struct ServerVerifier {
    provider: Arc<CryptoProvider>,
    /// `None` if any certificate is accepted.
    roots: Option<Trusted>,
    names: bool,
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

fn in_its_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate};
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = ASN1Time::from_timestamp(now.as_secs() as i64).map_err(|_| CertificateError::Expired)?;
    let validity = parsed.validity();
    match (now < validity.not_before, now > validity.not_after) {
        (true, _) => Err(CertificateError::NotValidYet),
        (_, true) => Err(CertificateError::Expired),
        _ => Ok(()),
    }
}
