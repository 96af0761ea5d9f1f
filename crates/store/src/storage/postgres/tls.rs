//! The TLS side of a link to PostgreSQL: how the server's certificate is verified.
//!
//! sqlx's own TLS would not do: it trusts every CA of the system in addition to the root file, so that `verify-ca`
//! would accept a certificate of any public CA; and it treats `require` with a root file like `require` without one.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use super::address::{Roots, TlsTarget, Trust};
use crate::server_trust::{ServerVerifier, Trusted, certificates};

/// Makes the TLS configuration. The files are read anew each time, so that renewed certificates take effect with the
/// next connection. Blocks.
pub fn config(target: &TlsTarget) -> Result<Arc<ClientConfig>, String> {
    let verifier = match &target.trust {
        Trust::Anybody => ServerVerifier::new(None, false),
        Trust::Issuer(roots) => ServerVerifier::new(Some(trusted(roots)?), false),
        Trust::IssuerAndName(roots) => ServerVerifier::new(Some(trusted(roots)?), true),
    };
    let verifier = Arc::new(verifier);
    let builder = ClientConfig::builder_with_provider(verifier.provider.clone())
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

fn trusted(roots: &Roots) -> Result<Trusted, String> {
    match roots {
        Roots::File(path) => {
            Trusted::these(certificates(path)?).map_err(|error| format!("{}: {error}", path.display()))
        }
        Roots::System => Ok(Trusted::system()),
    }
}
