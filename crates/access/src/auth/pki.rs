//! The certificates of a data directory, in `<data-dir>/pki`: a CA, a serving certificate and an admin's client
//! certificate, created on first start and kept.
//!
//! Keys are created once and never replaced, but for the one that signs tokens, which a command replaces. So processes that
//! share the directory agree on them. Certificates are derived from the keys and issued again when they no longer fit.
//! Flags replace some of the files; a certificate that is not needed then is not created.

mod cluster;
mod files;
mod front_proxy;
mod inspect;
mod issue;
mod kubeconfig;
mod token_keys;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use issue::CaFiles;

pub use cluster::{
    CLUSTER_CERTIFICATES, ClusterCertificate, ClusterFiles, Form, Issued, Renewal, cluster_certificate,
};
pub use front_proxy::{FrontProxyFiles, own_front_proxy};
pub use inspect::{Described, public_key_pin};
pub use kubeconfig::{Kubeconfig, client_url};
pub use token_keys::{Retired, TokenKeys, token_key_file};

/// The common name of the CA.
const CA_NAME: &str = "rowplane-ca";

/// An error, with the file that it is about.
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
    #[error("certificate {} is not signed by the CA {}", certificate.display(), ca.display())]
    Foreign { certificate: PathBuf, ca: PathBuf },
    #[error(
        "{} is missing or does not fit, and the CA's key {} that could issue it is not here; where the key is, \
         `rowplane certs issue` makes it",
        path.display(),
        key.display()
    )]
    NoCaKey { path: PathBuf, key: PathBuf },
    #[error("CA certificate {} is expired or not yet valid", path.display())]
    Expired { path: PathBuf },
    #[error(
        "--requestheader-client-ca-file contains a CA of --client-ca-file, and --requestheader-allowed-names is empty: \
         every user could speak for all others"
    )]
    UsersAreProxies,
    #[error("cannot issue {}: {reason}", path.display())]
    Issue { path: PathBuf, reason: String },
}

/// Names and addresses of the server beyond the well-known ones.
#[derive(Clone, Debug)]
pub struct ServingNames {
    pub bind_address: IpAddr,
    pub hostname: Option<String>,
    /// Host names or addresses.
    pub extra: Vec<String>,
}

impl ServingNames {
    /// The well-known names alone.
    pub fn local() -> Self {
        Self { bind_address: Ipv4Addr::LOCALHOST.into(), hostname: None, extra: Vec::new() }
    }
}

/// Files that replace those of the data directory, by kube-apiserver's flags.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--client-ca-file`: the only CAs whose client certificates are accepted. The directory's own CA is trusted only
    /// if this file contains it, and only then there is an admin.
    pub client_ca_file: Option<PathBuf>,
    /// `--tls-cert-file` and `--tls-private-key-file`.
    pub serving: Option<(PathBuf, PathBuf)>,
    /// `--requestheader-client-ca-file`: the CAs of front proxies.
    pub front_proxy_ca_file: Option<PathBuf>,
    /// `--tls-sni-cert-key`, in order.
    pub named: Vec<NamedFiles>,
    /// `--cert-dir`: where clients find the server's own serving certificate, as `apiserver.crt` with its CA and `apiserver.key`.
    pub published: Option<PathBuf>,
}

impl Overrides {
    /// The files that others write.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let serving = self.serving.iter().flat_map(|(certificate, key)| [certificate, key]);
        let named = self.named.iter().flat_map(|named| [&named.certificate, &named.key]);
        serving.chain(named).chain(&self.client_ca_file).chain(&self.front_proxy_ca_file)
    }
}

/// A certificate and its key for clients that ask for certain names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// If there are none, the certificate's own.
    pub names: Vec<String>,
}

/// The sources of a server's certificates.
#[derive(Clone, Debug)]
pub struct Sources {
    pub dir: PathBuf,
    pub names: ServingNames,
    pub overrides: Overrides,
}

/// The certificate with which the server authenticates itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Serving {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    /// The time after which the server's own certificate is valid no more; `None` for one that was given.
    pub own_until: Option<SystemTime>,
    pem: String,
}

/// The credentials of a client that may do everything.
#[derive(Clone, PartialEq, Eq)]
pub struct Admin {
    /// In PEM.
    pub certificate: String,
    /// In PEM.
    pub key: String,
    /// In PEM: the certificates by which the client can verify the server.
    pub server_authority: String,
}

/// Everything that serving TLS and writing a kubeconfig need.
#[derive(Debug)]
pub struct Pki {
    pub serving: Serving,
    /// The CAs whose client certificates are accepted.
    pub client_roots: Vec<CertificateDer<'static>>,
    /// `None` if the directory's own CA is not among the client CAs.
    pub admin: Option<Admin>,
}

impl Sources {
    /// Loads the certificates of the directory, and issues those that are missing or no longer fit.
    pub fn ensure(&self, now: SystemTime) -> Result<Pki, Error> {
        if self.has_own_ca()? {
            files::create_dir(&self.dir)?;
            issue::Ca::ensure(&self.ca_files(), CA_NAME, now)?;
        }
        let serving = self.serving(now)?;
        let admin = self.admin(self.server_authority(&serving)?, now)?;
        Ok(Pki { client_roots: self.client_roots(now)?, admin, serving })
    }

    /// Makes what is missing to judge the certificates of clients, for a server that is reached through the listener of another.
    pub fn ensure_clients(&self, now: SystemTime) -> Result<(), Error> {
        if self.trusts_own_ca()? {
            files::create_dir(&self.dir)?;
            issue::Ca::ensure(&self.ca_files(), CA_NAME, now)?;
        }
        Ok(())
    }

    /// The present serving certificate. The server's own one is renewed some time before it expires.
    pub fn serving(&self, now: SystemTime) -> Result<Serving, Error> {
        if let Some((certificate, key)) = &self.overrides.serving {
            return Serving::load(certificate, key);
        }
        let ca = issue::Ca::load(&self.ca_files(), now)?;
        let leaf = ca.leaf(&self.dir, "apiserver", &issue::Profile::Serving(&self.names), now)?;
        if let Some(dir) = &self.overrides.published {
            publish(dir, &format!("{}{}", leaf.certificate, ca.pem), &leaf.key)?;
        }
        let serving = Serving::load(&self.dir.join("apiserver.crt"), &self.dir.join("apiserver.key"))?;
        let own_until = serving.chain.first().and_then(inspect::until);
        Ok(Serving { own_until, ..serving })
    }

    /// The present certificates for clients that ask for certain names, with these names.
    pub fn named(&self) -> Result<Vec<(Serving, Vec<String>)>, Error> {
        let load =
            |files: &NamedFiles| Ok((Serving::load(&files.certificate, &files.key)?, files.names.clone()));
        self.overrides.named.iter().map(load).collect()
    }

    /// The CAs of client certificates at present.
    pub fn client_roots(&self, now: SystemTime) -> Result<Vec<CertificateDer<'static>>, Error> {
        match &self.overrides.client_ca_file {
            Some(file) => certificates(file, &files::read(file)?),
            None => Ok(vec![issue::Ca::load(&self.ca_files(), now)?.der]),
        }
    }

    /// The CAs of front proxies at present; `None` if there are no front proxies.
    pub fn proxy_roots(&self) -> Result<Option<Vec<CertificateDer<'static>>>, Error> {
        let Some(file) = &self.overrides.front_proxy_ca_file else { return Ok(None) };
        certificates(file, &files::read(file)?).map(Some)
    }

    /// The present admin, if the directory's own CA is trusted, with the certificates in PEM by which he verifies the server. The
    /// certificate is renewed some time before it expires.
    pub fn admin(&self, server_authority: String, now: SystemTime) -> Result<Option<Admin>, Error> {
        if !self.trusts_own_ca()? {
            return Ok(None);
        }
        let ca = issue::Ca::load(&self.ca_files(), now)?;
        if !ca.has_key() && files::try_read(&self.dir.join("admin.crt"))?.is_none() {
            return Ok(None);
        }
        let leaf = ca.leaf(&self.dir, "admin", &issue::Profile::Client(issue::ADMINISTRATOR), now)?;
        Ok(Some(Admin { certificate: leaf.certificate, key: leaf.key, server_authority }))
    }

    /// The certificates in PEM by which clients verify the server.
    pub fn server_authority(&self, serving: &Serving) -> Result<String, Error> {
        let own = files::try_read(&self.dir.join("ca.crt"))?;
        let own = own.map(|pem| String::from_utf8_lossy(&pem).into_owned());
        // A foreign chain may end with its CA, and Go accepts a server whose own certificate is trusted.
        let foreign = self.overrides.serving.as_ref().map(|_| serving.pem.as_str());
        let parts = own.as_deref().into_iter().chain(foreign).map(|pem| format!("{}\n", pem.trim_end()));
        Ok(parts.collect())
    }

    /// The path of the certificate, in PEM, by which clients verify the server: that of its own CA, or the one that was given.
    pub fn server_ca(&self) -> PathBuf {
        let given = self.overrides.serving.as_ref().map(|(certificate, _)| certificate.clone());
        given.unwrap_or_else(|| self.dir.join("ca.crt"))
    }

    fn ca_files(&self) -> CaFiles {
        CaFiles::named(&self.dir, "ca")
    }

    /// Whether the own CA signs anything; otherwise its key need not exist.
    fn has_own_ca(&self) -> Result<bool, Error> {
        Ok(self.overrides.serving.is_none() || self.trusts_own_ca()?)
    }

    fn trusts_own_ca(&self) -> Result<bool, Error> {
        let Some(file) = &self.overrides.client_ca_file else { return Ok(true) };
        let path = self.dir.join("ca.crt");
        let Some(own) = files::try_read(&path)? else { return Ok(false) };
        let own = certificates(&path, &own)?;
        Ok(certificates(file, &files::read(file)?)?.iter().any(|trusted| Some(trusted) == own.first()))
    }
}

/// The key in PEM with which a server signs tokens that leaves nothing behind.
pub fn temporary_token_key() -> Result<String, Error> {
    issue::new_key(Path::new("sa.key")).map(|key| key.serialize_pem())
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Serving {
    fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let pem = files::read(certificate)?;
        Ok(Self {
            chain: certificates(certificate, &pem)?,
            pem: String::from_utf8_lossy(&pem).into_owned(),
            key: private_key(key, &files::read(key)?)?,
            own_until: None,
        })
    }
}

/// Writes a pair of files that others read, unless they are as they should be.
fn publish(dir: &Path, chain: &str, key: &str) -> Result<(), Error> {
    use files::Access::{Everybody, Owner};
    // The key first: whoever takes both for a pair finds it beside the certificate.
    for (name, content, access) in [("apiserver.key", key, Owner), ("apiserver.crt", chain, Everybody)] {
        let path = dir.join(name);
        if files::try_read(&path)?.as_deref() != Some(content.as_bytes()) {
            files::replace(&path, content.as_bytes(), access)?;
        }
    }
    Ok(())
}

/// All certificates of a PEM file, which must contain at least one.
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
