//! The certificates and tokens of a running server. Their files are read when they change, and every minute, and the server's own
//! certificates are renewed before they expire. A file that cannot be used changes nothing, and is logged.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::announcement::Announcement;
use super::error::Error;
use super::proxy_client::ProxyClient;
use crate::auth::authn::{Authenticator, FrontProxy};
use crate::auth::pki::{Admin, Serving, Sources};
use crate::auth::revocation::Revocations;
use crate::auth::token_file::Tokens;
use crate::auth::trust::Trust;
use crate::auth::{pki, token_file};
use crate::http::tls::{
    self, Authorities, Certificates, ClientTrust, NamedCertificate, Proxies, ServingCertificate, Tls,
};
use crate::wall_clock::WallClock;
use crate::watched_file::WatchedPaths;

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

/// The time at which the certificate ends that the server has made for itself. Clones share it.
#[derive(Clone)]
pub struct OwnCertificate {
    until: Arc<ArcSwap<Option<SystemTime>>>,
    clock: WallClock,
}

impl OwnCertificate {
    pub fn new(serving: &Serving, clock: WallClock) -> Self {
        Self { until: Arc::new(ArcSwap::from_pointee(serving.own_until)), clock }
    }

    /// Fails if clients cannot believe the server any more, because it could not renew its certificate in time. A certificate that
    /// was given is none of its business. The name and the words are upstream's, whose server speaks with itself by such a one.
    pub fn check(&self) -> Result<(), String> {
        match **self.until.load() {
            Some(until) if self.clock.now() > until => {
                Err("loopback serving certificate is expired".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn replace(&self, serving: &Serving) {
        self.until.store(Arc::new(serving.own_until));
    }
}

/// The certificates of a listener.
pub struct Served {
    pub own: OwnCertificate,
    pub serving: Serving,
    /// The certificates for clients that ask for certain names.
    pub named: Vec<(Serving, Vec<String>)>,
    pub tls: Tls,
}

impl Served {
    /// Makes the certificates that are missing. The handshake announces these authorities.
    pub fn ensure(
        sources: &Sources,
        authorities: &Authorities,
        settings: tls::Settings,
        clock: &WallClock,
    ) -> Result<Self, Error> {
        let serving = sources.ensure(clock.now())?.serving;
        let named = sources.named()?;
        let own = OwnCertificate::new(&serving, clock.clone());
        let certificates = certificates(&serving, &named);
        let tls = Tls::new(certificates, authorities.clone(), settings, clock.clone())?;
        Ok(Self { own, serving, named, tls })
    }

    /// Reads the certificates again. Returns whether they are others.
    fn reload(
        &mut self,
        sources: &Sources,
        authorities: &Authorities,
        now: SystemTime,
    ) -> Result<bool, Refused> {
        let (serving, named) = (sources.serving(now)?, sources.named()?);
        if serving == self.serving && named == self.named {
            return Ok(false);
        }
        self.tls.replace(certificates(&serving, &named), authorities.clone())?;
        self.own.replace(&serving);
        self.serving = serving;
        self.named = named;
        Ok(true)
    }
}

/// The certificates of a listener that several clusters share, with their sources.
pub struct Shared {
    pub sources: Sources,
    pub served: Served,
}

impl Shared {
    pub fn reload(&mut self, now: SystemTime) {
        match self.served.reload(&self.sources, &Authorities::default(), now) {
            Ok(true) => tracing::info!("the serving certificate has been replaced"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "the serving certificate cannot be read again; the old one is used");
            }
        }
    }
}

pub struct Loaded {
    /// `None` if the listener is not the server's own.
    pub served: Option<Served>,
    pub sources: Sources,
    pub token_file: Option<PathBuf>,
    pub proxy_client: ProxyClient,
    /// The headers of front proxies whose CAs the flags name.
    pub front_proxy: FrontProxy,
    pub authorities: Authorities,
    /// The authorities, as other servers are told of them.
    pub trust: watch::Sender<Trust>,
    /// The authorities, as certificates are checked with them.
    pub client_trust: ClientTrust,
    pub admin: Option<Admin>,
    /// The certificates in PEM by which clients verify a listener that is not the server's own.
    pub server_authority: String,
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
        let mut watched = WatchedPaths::of(self.files()).await;
        loop {
            // What has changed before the first look is found, too.
            self.reload().await;
            watched.changed().await;
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let loaded = self.loaded.lock().unwrap_or_else(|e| e.into_inner());
        let files = loaded.sources.overrides.files().chain(&loaded.token_file).cloned();
        files.chain(loaded.proxy_client.files()).collect()
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
            ("client certificate for extension servers", self.reload_proxy_client(now)),
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
        match &mut self.served {
            Some(served) => served.reload(&self.sources, &self.authorities, now),
            None => Ok(false),
        }
    }

    fn reload_proxy_client(&mut self, now: SystemTime) -> Result<bool, Refused> {
        Ok(self.proxy_client.reload(now)?)
    }

    fn reload_authorities(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let authorities = authorities(&self.sources, &self.front_proxy.allowed_names, now)?;
        if authorities == self.authorities {
            return Ok(false);
        }
        match &self.served {
            Some(Served { tls, serving, named, .. }) => {
                tls.replace(certificates(serving, named), authorities.clone())?
            }
            None => self.client_trust.replace(&authorities)?,
        }
        let trust = authorities.trust(self.front_proxy.clone());
        self.trust.send_replace(self.proxy_client.told(trust));
        self.authorities = authorities;
        Ok(true)
    }

    fn reload_admin(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let authority = match &self.served {
            Some(served) => self.sources.server_authority(&served.serving)?,
            None => self.server_authority.clone(),
        };
        let admin = self.sources.admin(authority, now)?;
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
fn certificates(serving: &Serving, named: &[(Serving, Vec<String>)]) -> Certificates {
    let certificate =
        |serving: &Serving| ServingCertificate { chain: serving.chain.clone(), key: serving.key.clone_key() };
    let named = named
        .iter()
        .map(|(serving, names)| NamedCertificate { certificate: certificate(serving), names: names.clone() });
    Certificates { default: certificate(serving), named: named.collect() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::auth::pki::{Overrides, ServingNames};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn an_own_certificate_is_healthy_until_it_ends() {
        let dir = TempDir::new().unwrap();
        let names = ServingNames { bind_address: [127, 0, 0, 1].into(), hostname: None, extra: Vec::new() };
        let own = Sources { dir: dir.path().join("pki"), names, overrides: Overrides::default() };
        let now = SystemTime::now();
        let serving = own.ensure(now).unwrap().serving;
        let clock = |days: u32| WallClock::new(move || now + DAY * days);
        let at = |serving: &Serving, days| OwnCertificate::new(serving, clock(days)).check();
        assert_eq!(at(&serving, 1), Ok(()));
        assert_eq!(at(&serving, 400), Err("loopback serving certificate is expired".to_owned()));
        let late = OwnCertificate::new(&serving, clock(400));
        late.replace(&own.serving(now + DAY * 300).unwrap());
        assert_eq!(late.check(), Ok(()));
        let files = (dir.path().join("pki/apiserver.crt"), dir.path().join("pki/apiserver.key"));
        let given = Sources { overrides: Overrides { serving: Some(files), ..Overrides::default() }, ..own };
        assert_eq!(at(&given.serving(now).unwrap(), 4000), Ok(()));
    }
}
