//! The certificate that this server shows to extension API servers, by which they believe it whose request it passes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::config;
use crate::api::followers::api_services::ProxyIdentity;
use crate::auth::pki::{self, FrontProxyFiles, Sources};
use crate::auth::trust::Trust;

/// The present certificate, and where it comes from.
pub struct ProxyClient {
    files: Option<FrontProxyFiles>,
    /// Shared with whoever connects to extension servers.
    pub identity: ProxyIdentity,
    /// The CA that has signed the certificate, if it is the server's own.
    authority: Option<CertificateDer<'static>>,
}

impl ProxyClient {
    /// Loads the certificate; one of the server's own is made first. Where others are the front proxies, whose CA this server
    /// does not have, it has none of its own.
    pub fn load(
        config: &config::ProxyClient,
        sources: &Sources,
        now: SystemTime,
    ) -> Result<Self, pki::Error> {
        let dir = &sources.dir;
        let files = match config {
            config::ProxyClient::None => None,
            config::ProxyClient::Own if sources.overrides.front_proxy_ca_file.is_some() => None,
            config::ProxyClient::Own => Some(FrontProxyFiles::Own { dir: dir.join("front-proxy") }),
            config::ProxyClient::Files { certificate, key } => {
                Some(FrontProxyFiles::Given { certificate: certificate.clone(), key: key.clone() })
            }
        };
        let mut client = Self { files, identity: ProxyIdentity::default(), authority: None };
        client.reload(now)?;
        Ok(client)
    }

    /// Reads the files again, and renews a certificate of the server's own. Returns whether it is another one.
    pub fn reload(&mut self, now: SystemTime) -> Result<bool, pki::Error> {
        let Some(files) = &self.files else { return Ok(false) };
        let (authority, chain, key) = files.load(now)?;
        self.authority = authority;
        let same = |known: &Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>| {
            known.0 == chain && known.1 == key
        };
        if self.identity.load().as_ref().is_some_and(same) {
            return Ok(false);
        }
        self.identity.store(Some(Arc::new((chain, key))));
        Ok(true)
    }

    /// The files that others write.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.files {
            Some(FrontProxyFiles::Given { certificate, key }) => vec![certificate.clone(), key.clone()],
            Some(FrontProxyFiles::Own { .. }) | None => Vec::new(),
        }
    }

    /// The CAs and headers of front proxies as extension servers are told of them: those of the flags, or else this server's.
    pub fn told(&self, mut trust: Trust) -> Trust {
        let Some(own) = &self.authority else { return trust };
        trust.front_proxy = pki::own_front_proxy();
        trust.proxies = vec![own.clone()];
        trust
    }
}
