//! Server certificates that a client of TLS takes: those of some authorities, and a certificate that is itself among
//! them.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::x509::{self, Certificate, Pool, Purpose};

/// The certificates in a file; at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    if found.is_empty() { Err(failed(&"there is no certificate in it")) } else { Ok(found) }
}

/// The authorities of servers. A server's own certificate may be among them: it needs no other authority then.
#[derive(Debug, Default)]
pub struct Trusted {
    roots: Arc<Pool>,
}

impl Trusted {
    /// All of these, or none.
    pub fn these(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let parsed = certificates.iter().map(|certificate| Certificate::parse(certificate));
        let roots = parsed.collect::<Result<Pool, _>>().map_err(|error| error.to_string())?;
        Ok(Self { roots: Arc::new(roots) })
    }

    /// The certificates of a PEM text that can be read, as client-go and Go's clients take a bundle; at least one.
    pub fn of_bundle(pem: &[u8]) -> Result<Self, String> {
        x509::check_authorities(pem)?;
        let blocks = x509::blocks(pem).0.into_iter();
        let certificates = blocks.filter(|block| block.label == "CERTIFICATE" && !block.has_headers);
        let roots: Pool = certificates.filter_map(|block| Certificate::parse(&block.bytes).ok()).collect();
        Ok(Self { roots: Arc::new(roots) })
    }

    /// The authorities that the system trusts, read once for all (as Go does) and shared. Blocks.
    pub fn system() -> Self {
        static ROOTS: OnceLock<Arc<Pool>> = OnceLock::new();
        let read = || {
            let all = rustls_native_certs::load_native_certs().certs.into_iter();
            // Some of a system's certificates are not such as Go reads; those are skipped.
            Arc::new(all.filter_map(|certificate| Certificate::parse(&certificate).ok()).collect())
        };
        Self { roots: ROOTS.get_or_init(read).clone() }
    }
}

/// Verifies servers as Go's clients of TLS do.
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
        Self { provider: Arc::new(aws_lc_rs::default_provider()), roots, names }
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
        let leaf = Certificate::parse(end_entity)?;
        let shown = intermediates.iter().map(|certificate| Certificate::parse(certificate));
        let intermediates = shown.collect::<Result<Pool, _>>()?;
        let Some(Trusted { roots }) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let host = server_name.to_str();
        let host = self.names.then_some(&*host);
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let options =
            x509::Options { intermediates: &intermediates, roots, purpose: Purpose::Server, host, now };
        x509::verify(&leaf, &options)?;
        Ok(ServerCertVerified::assertion())
    }

    x509::handshake_signatures!();
}

/// Settings that also offer HTTP/2.
pub fn with_http2(tls: &ClientConfig) -> Arc<ClientConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(tls)
}
