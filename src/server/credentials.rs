//! The certificates and tokens of a running server. Their files are read regularly, and the server's own certificates
//! are renewed before they expire. A file that cannot be used changes nothing, and is logged.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;

use super::announcement::Announcement;
use crate::auth::authn::Authenticator;
use crate::auth::pki::{Admin, Serving, Sources};
use crate::auth::token_file::Tokens;
use crate::auth::{pki, token_file};
use crate::http::tls::{self, ServingCertificate, Tls};
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
    pub client_roots: Vec<CertificateDer<'static>>,
    pub admin: Option<Admin>,
    pub tls: Tls,
    pub authenticator: Authenticator,
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
            ("client CAs", self.reload_client_roots(now)),
            ("admin's certificate", self.reload_admin(now)),
            ("tokens", self.reload_tokens()),
        ] {
            match result {
                Ok(true) => tracing::info!("the {what} has been replaced"),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%error, "the {what} cannot be read again; what was there before is used")
                }
            }
        }
    }

    fn reload_serving(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let serving = self.sources.serving(now)?;
        if serving == self.serving {
            return Ok(false);
        }
        self.tls.replace(certificate(&serving), self.client_roots.clone())?;
        self.serving = serving;
        Ok(true)
    }

    fn reload_client_roots(&mut self, now: SystemTime) -> Result<bool, Refused> {
        let client_roots = self.sources.client_roots(now)?;
        if client_roots == self.client_roots {
            return Ok(false);
        }
        self.tls.replace(certificate(&self.serving), client_roots.clone())?;
        self.client_roots = client_roots;
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

/// The certificate with which TLS is served.
pub fn certificate(serving: &Serving) -> ServingCertificate {
    ServingCertificate { chain: serving.chain.clone(), key: serving.key.clone_key() }
}
