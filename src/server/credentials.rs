//! The certificates and tokens of a running server. Their files are read regularly, and the server's own certificates
//! are renewed before they expire. A file that cannot be used changes nothing, and is logged.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;

use super::announcement::Announcement;
use crate::auth::authn::Authenticator;
use crate::auth::pki::{Admin, Serving, Sources};
use crate::auth::revocation::Revocations;
use crate::auth::token_file::Tokens;
use crate::auth::trust::Trust;
use crate::auth::{pki, token_file};
use crate::http::tls::{self, Authorities, Certificates, NamedCertificate, Proxies, ServingCertificate, Tls};
use crate::wall_clock::WallClock;

/// The time between two checks of the files; upstream's period.
const PERIOD: Duration = Duration::from_secs(60);

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Pki(#[from] pki::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Tokens(#[from] token_file::Error),
}

/// The present credentials and their sources. Clones share them.
#[derive(Clone)]
pub struct Credentials {
    loaded: Arc<Mutex<Loaded>>,
    clock: WallClock,
}

pub struct Loaded {
    pub sources: Sources,
    pub token_file: Option<PathBuf>,
    pub serving: Serving,
    /// The certificates for clients that ask for certain names.
    pub named: Vec<(Serving, Vec<String>)>,
    pub authorities: Authorities,
    /// The authorities, as other servers are told of them.
    pub trust: Arc<ArcSwap<Trust>>,
    pub admin: Option<Admin>,
    pub tls: Tls,
    pub authenticator: Authenticator,
    pub revocations: Revocations,
    pub announcement: Announcement,
}

impl Credentials {
    pub fn new(loaded: Loaded, clock: WallClock) -> Self {
        Self { loaded: Arc::new(Mutex::new(loaded)), clock }
    }

    /// Checks the files for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.reload().await;
        }
    }

    /// The text of the admin's kubeconfig, and the path of its file.
    pub fn kubeconfig(&self) -> Option<(String, Option<PathBuf>)> {
        let loaded = self.loaded.lock().unwrap_or_else(|e| e.into_inner());
        let announcement = &loaded.announcement;
        Some((announcement.kubeconfig()?.text().to_owned(), announcement.path().map(PathBuf::from)))
    }

    /// Checks the files now.
    pub async fn reload(&self) {
        let this = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let now = this.clock.now();
            this.loaded.lock().unwrap_or_else(|e| e.into_inner()).reload(now);
        });
        if let Err(error) = reading.await {
            tracing::error!(%error, "reading certificates and tokens has failed");
        }
    }
}

impl Loaded {
    fn reload(&mut self, now: SystemTime) {
        for (what, result) in [
            ("serving certificate", self.reload_serving(now)),
            ("client CAs", self.reload_authorities(now)),
            ("admin's certificate", self.reload_admin(now)),
            ("tokens", self.reload_tokens()),
        ] {
            match result {
                Ok(true) => {
                    tracing::info!("the {what} has been replaced");
                    self.revocations.ask_everybody();
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%error, "the {what} cannot be read again; what was there before is used")
                }
            }
        }
    }

    fn reload_serving(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let (serving, named) = (self.sources.serving(now)?, self.sources.named()?);
        if serving == self.serving && named == self.named {
            return Ok(false);
        }
        self.tls.replace(certificates(&serving, &named), self.authorities.clone())?;
        self.serving = serving;
        self.named = named;
        Ok(true)
    }

    fn reload_authorities(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let front_proxy = self.trust.load().front_proxy.clone();
        let authorities = authorities(&self.sources, &front_proxy.allowed_names, now)?;
        if authorities == self.authorities {
            return Ok(false);
        }
        self.tls.replace(certificates(&self.serving, &self.named), authorities.clone())?;
        self.trust.store(Arc::new(authorities.trust(front_proxy)));
        self.authorities = authorities;
        Ok(true)
    }

    fn reload_admin(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let admin = self.sources.admin(&self.serving, now)?;
        if admin == self.admin {
            return Ok(false);
        }
        self.announcement.renew(admin.as_ref())?;
        self.admin = admin;
        Ok(true)
    }

    fn reload_tokens(&mut self) -> Result<bool, Refused> {
        let Some(file) = &self.token_file else { return Ok(false) };
        Ok(self.authenticator.replace_tokens(Tokens::load(file)?))
    }
}

/// The CAs of client certificates at present. Those of users and of front proxies have to differ if any name is a proxy's,
/// or every user could speak for all others.
pub fn authorities(
    sources: &Sources,
    proxy_names: &[String],
    now: SystemTime,
) -> Result<Authorities, pki::Error> {
    let users = sources.client_roots(now)?;
    let proxies = sources.proxy_roots()?;
    if let Some(proxies) = &proxies
        && proxy_names.is_empty()
        && proxies.iter().any(|proxy| users.contains(proxy))
    {
        return Err(pki::Error::UsersAreProxies);
    }
    let proxies = proxies.map(|authorities| Proxies { authorities, names: proxy_names.to_vec() });
    Ok(Authorities { users, proxies })
}

/// The certificates with which TLS is served.
pub fn certificates(serving: &Serving, named: &[(Serving, Vec<String>)]) -> Certificates {
    let certificate =
        |serving: &Serving| ServingCertificate { chain: serving.chain.clone(), key: serving.key.clone_key() };
    let named = named
        .iter()
        .map(|(serving, names)| NamedCertificate { certificate: certificate(serving), names: names.clone() });
    Certificates { default: certificate(serving), named: named.collect() }
}
