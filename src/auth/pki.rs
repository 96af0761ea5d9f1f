//! The certificates of a data directory, in `<data-dir>/pki`: a CA, a serving certificate and an admin's
//! client certificate, made on first start and kept.
//!
//! Keys are made once and never replaced, so that processes that share the directory agree on them;
//! certificates follow from the keys and are issued again when they no longer fit.

mod files;
mod issue;
mod kubeconfig;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use kubeconfig::{Kubeconfig, client_address};

/// What went wrong, and with which file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{} is not a private key that can be used: {reason}", path.display())]
    BadKey { path: PathBuf, reason: String },
    #[error("{} is not a certificate that can be used: {reason}", path.display())]
    BadCertificate { path: PathBuf, reason: String },
    #[error("certificate {} does not belong to key {}", certificate.display(), key.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("CA certificate {} is expired or not yet valid", path.display())]
    Expired { path: PathBuf },
    #[error("cannot issue {}: {reason}", path.display())]
    Issue { path: PathBuf, reason: String },
}

/// By which names and addresses the server can be reached, beyond the well-known ones.
#[derive(Clone, Debug)]
pub struct ServingNames {
    pub bind_address: IpAddr,
    pub hostname: Option<String>,
    /// Host names or addresses.
    pub extra: Vec<String>,
}

/// Files that stand in for the ones of the data directory, by kube-apiserver's flags.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--client-ca-file`: CAs whose client certificates are accepted beside those of our own CA. The
    /// latter stays trusted, as the admin's certificate is its.
    pub client_ca_file: Option<PathBuf>,
    /// `--tls-cert-file` and `--tls-private-key-file`.
    pub serving: Option<(PathBuf, PathBuf)>,
}

/// Everything that serving TLS and writing a kubeconfig need.
#[derive(Debug)]
pub struct Pki {
    pub serving_chain: Vec<CertificateDer<'static>>,
    pub serving_key: PrivateKeyDer<'static>,
    /// Who may sign client certificates.
    pub client_roots: Vec<CertificateDer<'static>>,
    /// PEM by which a client can verify the serving certificate.
    pub server_authority: String,
    /// PEM.
    pub admin_certificate: String,
    /// PEM.
    pub admin_key: String,
}

impl Pki {
    /// Loads what is in `dir` and makes what is missing or no longer fits.
    pub fn ensure(
        dir: &Path,
        names: &ServingNames,
        overrides: &Overrides,
        now: SystemTime,
    ) -> Result<Self, Error> {
        files::create_dir(dir)?;
        let ca = issue::Ca::ensure(dir, now)?;
        let admin = ca.leaf(dir, "admin", &issue::Profile::Admin, now)?;
        let serving = match &overrides.serving {
            Some((certificate, key)) => Serving::load(certificate, key)?,
            None => {
                ca.leaf(dir, "apiserver", &issue::Profile::Serving(names), now)?;
                Serving::load(&dir.join("apiserver.crt"), &dir.join("apiserver.key"))?
            }
        };
        let mut client_roots = vec![ca.der.clone()];
        if let Some(file) = &overrides.client_ca_file {
            client_roots.extend(certificates(file, &files::read(file)?)?);
        }
        // A foreign chain may end in its CA, and Go accepts a server whose own certificate is trusted.
        let foreign = overrides.serving.as_ref().map(|_| serving.pem.as_str());
        Ok(Self {
            server_authority: [ca.pem.trim_end(), foreign.unwrap_or_default().trim_end(), ""].join("\n"),
            serving_chain: serving.chain,
            serving_key: serving.key,
            client_roots,
            admin_certificate: admin.certificate,
            admin_key: admin.key,
        })
    }
}

/// What the server shows to its clients.
struct Serving {
    pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Serving {
    fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let pem = files::read(certificate)?;
        Ok(Self {
            chain: certificates(certificate, &pem)?,
            pem: String::from_utf8_lossy(&pem).into_owned(),
            key: private_key(key, &files::read(key)?)?,
        })
    }
}

/// Every certificate of a PEM file; at least one.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bad = |reason: String| Error::BadCertificate { path: path.to_owned(), reason };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(bad("no PEM certificate in it".to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn private_key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| Error::BadKey { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests;
