//! An issuer's keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use tokio::sync::Mutex;

use super::{Generation, Issuer};
use crate::auth::jwt::Compact;
use crate::auth::jwt::keys::PublicKey;
use crate::egress::Egress;
use crate::metrics::Metrics;
use crate::tree::Value;
use crate::webhook::Fetcher;

/// The time between two attempts to find out where an issuer's keys are.
const RETRY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most issuers that sign claims for another one.
const MOST_SOURCES: usize = 16;
/// Keys are fetched at most so often because of tokens that none of them has signed. A failed attempt does not count.
const PAUSE: Duration = Duration::from_secs(10);

pub struct Provider {
    pub issuer: Issuer,
    fetcher: Fetcher,
    /// The way to the issuer.
    egress: Egress,
    metrics: Arc<Metrics>,
    /// The URL of the keys; `None` until the issuer has told it.
    keys_url: ArcSwapOption<String>,
    /// `None` until the first token is verified.
    keys: ArcSwapOption<Keys>,
    generation: Generation,
    /// How often keys were fetched, with or without success.
    attempts: AtomicU64,
    /// The outcome of the last attempt. Its lock is held while keys are fetched.
    fetched: Mutex<Fetched>,
    /// The providers that sign claims for this issuer, by their URLs.
    sources: StdMutex<HashMap<String, Arc<Provider>>>,
}

/// Keys with the ids that the issuer gives them.
struct Keys(Vec<(String, PublicKey)>);

/// An attempt to fetch keys.
struct Fetched {
    /// When it succeeded.
    at: Option<Instant>,
    result: Result<(), String>,
}

impl Provider {
    /// Blocks where the system's CAs are read.
    pub fn new(issuer: Issuer, egress: Egress, metrics: Arc<Metrics>) -> Self {
        let fetcher = Fetcher::new(&issuer.authorities, TIMEOUT).through(egress.clone());
        Self {
            issuer,
            fetcher,
            egress,
            metrics,
            keys_url: ArcSwapOption::empty(),
            keys: ArcSwapOption::empty(),
            generation: Generation::default(),
            attempts: AtomicU64::new(0),
            fetched: Mutex::new(Fetched { at: None, result: Ok(()) }),
            sources: StdMutex::default(),
        }
    }

    /// Whether it is known where the keys are.
    pub fn is_ready(&self) -> bool {
        self.keys_url.load().is_some()
    }

    pub fn generation(&self) -> u64 {
        self.generation.now()
    }

    /// Finds out where the keys are, and tries again until that works.
    pub async fn discover(&self) {
        if self.is_ready() {
            return;
        }
        loop {
            match self.find_keys().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::error!(issuer = self.issuer.url, %error, "cannot fetch the discovery document of an issuer")
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// A document, fetched with this token.
    pub async fn get_as(&self, url: &str, bearer: Option<&str>) -> Result<Bytes, String> {
        self.fetcher.get_as(url, bearer).await.map_err(|error| error.to_string())
    }

    fn sources(&self) -> MutexGuard<'_, HashMap<String, Arc<Provider>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An issuer that signs claims for this one: whoever has the same audiences and CAs. Where its keys are is asked when
    /// it is first heard of.
    pub async fn source(&self, url: &str) -> Result<Arc<Provider>, String> {
        {
            let sources = self.sources();
            if let Some(known) = sources.get(url) {
                return Ok(known.clone());
            }
            if sources.len() >= MOST_SOURCES {
                return Err("there are too many issuers of distributed claims".to_owned());
            }
        }
        // Nobody waits for an issuer whom others ask: who asks at the same time fetches the same document.
        let issuer = Issuer { url: url.to_owned(), discovery_url: None, ..self.issuer.clone() };
        let (egress, metrics) = (self.egress.clone(), self.metrics.clone());
        let made = tokio::task::spawn_blocking(move || Provider::new(issuer, egress, metrics)).await;
        let source = made.map_err(|error| error.to_string())?;
        Box::pin(source.find_keys()).await?;
        let source = Arc::new(source);
        self.sources().insert(url.to_owned(), source.clone());
        Ok(source)
    }

    async fn find_keys(&self) -> Result<(), String> {
        let url = match &self.issuer.discovery_url {
            Some(url) => url.clone(),
            None => format!("{}/.well-known/openid-configuration", self.issuer.url.trim_end_matches('/')),
        };
        let document = self.fetcher.get(&url).await.map_err(|error| error.to_string())?;
        let document: Value = serde_json::from_slice(&document).map_err(|error| error.to_string())?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
        let (found, wanted) = (text("issuer"), &self.issuer.url);
        if found != wanted {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {wanted:?} got {found:?}"
            ));
        }
        self.keys_url.store(Some(Arc::new(text("jwks_uri").to_owned())));
        Ok(())
    }

    /// Fetches the keys, unless they are as good as new. Who waits meanwhile gets the same result.
    async fn refresh_keys(&self) -> Result<(), String> {
        let seen = self.attempts.load(Ordering::Acquire);
        let mut fetched = self.fetched.lock().await;
        let is_new = fetched.at.is_some_and(|at| at.elapsed() < PAUSE);
        if is_new || self.attempts.load(Ordering::Acquire) != seen {
            return fetched.result.clone();
        }
        fetched.result = self.fetch_keys().await;
        if fetched.result.is_err() {
            self.metrics.keys_fetched(&self.issuer.url, None);
        }
        fetched.at = fetched.result.is_ok().then(Instant::now);
        self.attempts.fetch_add(1, Ordering::AcqRel);
        fetched.result.clone()
    }

    async fn fetch_keys(&self) -> Result<(), String> {
        let url = self.keys_url.load_full().unwrap_or_default();
        let text = self.fetcher.get(&url).await.map_err(|error| error.to_string())?;
        let set: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        self.metrics.keys_fetched(&self.issuer.url, Some(&text));
        let keys = set.get("keys").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let list = keys.iter().filter_map(key).collect();
        self.keys.store(Some(Arc::new(Keys(list))));
        self.generation.next();
        Ok(())
    }

    /// Checks the signature; with new keys, if those that are known have not made it. The first token is what makes the server
    /// fetch keys at all.
    pub async fn verify(&self, token: &Compact<'_>) -> Result<(), String> {
        let has_signed = || self.keys.load().as_ref().is_some_and(|keys| keys.has_signed(token));
        if has_signed() {
            return Ok(());
        }
        if let Err(error) = self.refresh_keys().await {
            tracing::warn!(issuer = self.issuer.url, error, "cannot fetch the keys of an issuer");
            return Err(format!("failed to verify signature: fetching keys {error}"));
        }
        match has_signed() {
            true => Ok(()),
            false => Err("failed to verify signature: failed to verify id token signature".to_owned()),
        }
    }
}

impl Keys {
    fn has_signed(&self, token: &Compact<'_>) -> bool {
        let id = &token.header.kid;
        let fitting = self.0.iter().filter(|(own, _)| id.is_empty() || own == id);
        token.verify(fitting.map(|(_, key)| key)).is_ok()
    }
}

/// A key of a set; `None` if it is of another sort or cannot be read.
fn key(jwk: &Value) -> Option<(String, PublicKey)> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str).unwrap_or_default();
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)).ok();
    if !matches!(text("use"), "" | "sig") {
        return None;
    }
    let key = match text("kty") {
        "RSA" => PublicKey::of_rsa(&bytes("n")?, &bytes("e")?)?,
        "EC" => PublicKey::of_point(text("crv"), &bytes("x")?, &bytes("y")?)?,
        _ => return None,
    };
    Some((text("kid").to_owned(), key))
}
