//! The client certificate by which extension API servers know this server for a front proxy, and the CA that issues it.

use std::path::PathBuf;
use std::time::SystemTime;

use http::HeaderName;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::issue::{CaFiles, FRONT_PROXY_CLIENT};
use super::{Error, Serving, files, issue};
use crate::auth::authn::FrontProxy;

/// The common name of the CA, which signs nothing else.
pub(super) const CA_NAME: &str = "rowplane-front-proxy-ca";

/// The source of the certificate.
#[derive(Clone, Debug)]
pub enum FrontProxyFiles {
    /// A certificate of a CA in this directory; both are made when they are missing.
    Own {
        dir: PathBuf,
    },
    Given {
        certificate: PathBuf,
        key: PathBuf,
    },
}

/// The CA, if it is the server's own, the certificate's chain, and its key.
pub type Loaded = (Option<CertificateDer<'static>>, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl FrontProxyFiles {
    /// The present certificate. The server's own one is renewed some time before it expires.
    pub fn load(&self, now: SystemTime) -> Result<Loaded, Error> {
        match self {
            Self::Given { certificate, key } => {
                let Serving { chain, key, .. } = Serving::load(certificate, key)?;
                Ok((None, chain, key))
            }
            Self::Own { dir } => {
                files::create_dir(dir)?;
                let ca = issue::Ca::ensure(&CaFiles::named(dir, "ca"), CA_NAME, now)?;
                ca.leaf(dir, "client", &issue::Profile::Client(issue::FRONT_PROXY), now)?;
                let Serving { chain, key, .. } =
                    Serving::load(&dir.join("client.crt"), &dir.join("client.key"))?;
                Ok((Some(ca.der), chain, key))
            }
        }
    }
}

/// The headers and the name of this server, as kubeadm has them.
pub fn own_front_proxy() -> FrontProxy {
    let names = |name| vec![HeaderName::from_static(name)];
    FrontProxy {
        username_headers: names("x-remote-user"),
        uid_headers: names("x-remote-uid"),
        group_headers: names("x-remote-group"),
        extra_prefixes: vec!["x-remote-extra-".to_owned()],
        allowed_names: vec![FRONT_PROXY_CLIENT.to_owned()],
    }
}
