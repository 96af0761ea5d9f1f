//! Tokens of OpenID Connect: issuers elsewhere vouch for users.
//!
//! The place of an issuer's keys is fetched in the background; the keys themselves when a token has to be verified, and
//! again when none of them has signed it. What its claims mean is a [`Mapping`].

mod distributed;
mod expression;
mod mapping;
mod provider;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Deserialize;
use tokio::sync::Notify;

use super::authn::Refusals;
use super::jwt::{Audience, Compact, Date, claimed_issuer};
use super::recent::Recent;
use crate::auth::secret::sha256;
use crate::egress::Network;
use crate::runtime::Runtime;
use crate::tree::Map;
use crate::user::User;
use crate::x509;

use self::distributed::Expanded;
pub use self::expression::{Expression, Subject};
pub use self::mapping::Mapping;
use self::provider::Provider;

/// The tokens of a generation that are remembered.
const MOST: usize = 1024;
/// How long new issuers may take until it is known of all where their keys are.
const HEALTHY_WITHIN: Duration = Duration::from_secs(60);
/// The seconds for which a user counts whose claims were fetched from elsewhere, as in upstream's cache of tokens.
const ASKED_AGAIN: i64 = 10;
/// The seconds by which a token may come before it is valid.
const EARLY: i64 = 300;

/// An issuer that is trusted, and what is taken from its tokens.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The issuer's URL, exactly as tokens name it.
    pub url: String,
    /// The URL of the discovery document, if it is not below the issuer's.
    pub discovery_url: Option<String>,
    /// In PEM; empty for the system's.
    pub authorities: Vec<u8>,
    /// A token has to be for one of them.
    pub audiences: Vec<String>,
    /// The algorithms by which tokens may be signed, such as `RS256`.
    pub algorithms: Vec<String>,
    /// The network that the issuer is reached by, if a way has to be configured for it; `None` connects directly.
    pub network: Option<Network>,
    pub mapping: Mapping,
}

/// Verifies tokens of all issuers.
pub struct Oidc {
    providers: ArcSwap<Vec<Arc<Provider>>>,
    replaced: Notify,
    runtime: Runtime,
    /// Tokens that were accepted, by their hashes.
    known: Recent<[u8; 32], Arc<AcceptedToken>>,
}

/// A token that was accepted before.
struct AcceptedToken {
    user: Arc<User>,
    until: i64,
    /// The keys that the issuer had then.
    generation: u64,
    provider: Arc<Provider>,
}

#[derive(Deserialize)]
struct Standard {
    #[serde(default)]
    aud: Audience,
    #[serde(default)]
    exp: Option<Date>,
    #[serde(default)]
    nbf: Option<Date>,
}

impl Oidc {
    /// Fails if no way is configured to the network of an issuer. Blocks where the system's CAs are read.
    pub fn new(issuers: Vec<Issuer>, runtime: Runtime) -> Result<Self, String> {
        let providers = ArcSwap::from_pointee(providers(issuers, &runtime)?);
        Ok(Self { providers, replaced: Notify::new(), runtime, known: Recent::new(MOST) })
    }

    /// Finds out where the issuers' keys are, also of those that come later. Runs for ever.
    pub async fn discover(&self) {
        loop {
            let replaced = self.replaced.notified();
            let providers = self.providers.load_full();
            let found = async {
                futures_util::future::join_all(providers.iter().map(|provider| provider.discover())).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = replaced => {}
                () = found => {}
            }
        }
    }

    /// Trusts these issuers and no others, once it is known of all where their keys are. Fails if that takes too long.
    pub async fn replace(&self, issuers: Vec<Issuer>) -> Result<(), String> {
        let runtime = self.runtime.clone();
        let made = tokio::task::spawn_blocking(move || providers(issuers, &runtime)).await;
        let providers = made.map_err(|error| error.to_string())??;
        let discovered = futures_util::future::join_all(providers.iter().map(|provider| provider.discover()));
        if tokio::time::timeout(HEALTHY_WITHIN, discovered).await.is_err() {
            let slow = providers.iter().find(|provider| !provider.is_ready());
            let url = slow.map_or("", |provider| &provider.issuer.url);
            return Err(format!("oidc: authenticator for issuer {url:?} is not initialized"));
        }
        self.providers.store(Arc::new(providers));
        self.replaced.notify_waiters();
        Ok(())
    }

    /// The user of a token; `None` if no issuer here has issued it.
    pub async fn verify(&self, token: &str) -> Option<Result<Arc<User>, Refusals>> {
        let now = i64::try_from(self.runtime.clock.seconds()).unwrap_or(i64::MAX);
        let hash = sha256(token.as_bytes());
        if let Some(known) = self.known.get(&hash)
            && now < known.until
            && known.provider.generation() == known.generation
            && self.providers.load().iter().any(|provider| Arc::ptr_eq(provider, &known.provider))
        {
            return Some(Ok(known.user.clone()));
        }
        let issuer = claimed_issuer(token)?;
        let providers = self.providers.load_full();
        let provider = providers.iter().find(|provider| provider.issuer.url == issuer)?;
        let generation = provider.generation();
        Some(match check(provider, token, now).await {
            Ok((user, until)) => {
                let user = Arc::new(user);
                let known =
                    AcceptedToken { user: user.clone(), until, generation, provider: provider.clone() };
                self.known.put(hash, Arc::new(known));
                Ok(user)
            }
            Err(why) => {
                let mut refused = Refusals::default();
                refused.add(why);
                Err(refused)
            }
        })
    }
}

fn providers(issuers: Vec<Issuer>, runtime: &Runtime) -> Result<Vec<Arc<Provider>>, String> {
    let provider = |issuer: Issuer| {
        let egress = issuer.network.map(|network| runtime.egresses.demanded(network)).transpose();
        let egress = egress.map_err(|why| format!("oidc: {why}"))?.unwrap_or_default();
        Ok(Arc::new(Provider::new(issuer, egress, runtime.metrics.clone())))
    };
    issuers.into_iter().map(provider).collect()
}

/// Fails with the reason why these authorities, in PEM, verify nobody: all of their certificates have to be readable.
pub fn check_authorities(text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    match x509::certificates(text) {
        Ok(found) if found.is_empty() => {
            Err("data does not contain any valid RSA or ECDSA certificates".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The user of a token, and until when it is valid.
async fn check(provider: &Provider, token: &str, now: i64) -> Result<(User, i64), String> {
    if !provider.is_ready() {
        return Err("oidc: authenticator not initialized".to_owned());
    }
    let verified = vouched(provider, token, now).await;
    let Vouched { mut claims, mut until } = verified.map_err(|why| format!("oidc: verify token: {why}"))?;
    let mapping = &provider.issuer.mapping;
    if !mapping.groups_claim.is_empty() && mapping.groups_expression.is_none() {
        let expanded = distributed::expand(provider, &mapping.groups_claim, &mut claims, now).await;
        let expanded = expanded.map_err(|why| format!("oidc: could not expand distributed claims: {why}"))?;
        if expanded == Expanded::Yes {
            until = until.min(now.saturating_add(ASKED_AGAIN));
        }
    }
    Ok((mapping.user(&claims)?, until))
}

/// The claims that an issuer has signed.
struct Vouched {
    claims: Map,
    /// Until when the token is valid.
    until: i64,
}

/// The claims of a token that this issuer has signed for one of the audiences.
async fn vouched(provider: &Provider, token: &str, now: i64) -> Result<Vouched, String> {
    let malformed = || "oidc: malformed jwt".to_owned();
    let compact = Compact::parse(token).ok_or_else(malformed)?;
    let standard: Standard = compact.claims().ok_or_else(malformed)?;
    let until = standard.exp.map_or(0, |exp| exp.0);
    // Of the second in which it ends, some part is over.
    if until <= now {
        return Err("oidc: token is expired".to_owned());
    }
    if standard.nbf.is_some_and(|from| now.saturating_add(EARLY) < from.0) {
        return Err("oidc: current time is before the nbf (not before) time".to_owned());
    }
    let algorithms = &provider.issuer.algorithms;
    if !algorithms.contains(&compact.header.alg) {
        let (wanted, got) = (quoted(algorithms), crate::gotext::quote(&compact.header.alg));
        let why = format!("oidc: id token signed with unsupported algorithm, expected {wanted} got {got}");
        return Err(why);
    }
    provider.verify(&compact).await?;
    let audiences = &provider.issuer.audiences;
    if !standard.aud.0.iter().any(|audience| audiences.contains(audience)) {
        let (wanted, got) = (quoted(audiences), quoted(&standard.aud.0));
        return Err(format!("oidc: expected audience in {wanted} got {got}"));
    }
    let claims: Map = compact.claims().ok_or_else(|| "oidc: parse claims: no object".to_owned())?;
    Ok(Vouched { claims, until })
}

/// A list of texts as Go prints it with `%q`.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| crate::gotext::quote(text)).collect();
    format!("[{}]", texts.join(" "))
}

/// Counts what replaces what.
#[derive(Debug, Default)]
struct Generation(AtomicU64);

impl Generation {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn next(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
