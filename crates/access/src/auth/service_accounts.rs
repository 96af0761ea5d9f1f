//! Tokens of service accounts: who issues them, and who is the user of one.
//!
//! A token is believed for its signature, which is checked once, and for the objects that it names, which are looked up in
//! the watch cache at each use: a token ends with its account, and with the Pod, the Secret or the Node that it is bound to.

mod bound;
mod checked;
mod claims;
pub mod external;
pub mod issuer;
mod keys;
mod legacy;
mod live;
mod unproven;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use self::checked::Checked;
pub use self::claims::{Binding, Reference, TokenClaims};
pub use self::issuer::Issuer;
use self::keys::NO_KEYS;
pub use self::keys::{KeyFileError, Keys};
pub use self::legacy::{LAST_USED, Used};
use self::live::Live;
pub use self::live::Resources;
pub use self::unproven::Unproven;
use super::authn::{Accepted, Audiences, By, Notes, TokenError};
use super::jwt::{Compact, claimed_issuer};
use crate::cache::{Cache, State};
use crate::metrics::{Metrics, TokenUse};
use crate::runtime::Runtime;
use crate::storage::{self, Key};
use crate::user::User;
use crate::wall_clock::WallClock;

/// Uses of tokens that wait to be noted.
const USES: usize = 64;

/// The prefix of the names of service accounts as users.
pub const USER_PREFIX: &str = "system:serviceaccount:";
/// The issuer of tokens in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// The name of an account as a user.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("{USER_PREFIX}{namespace}:{name}")
}

/// The namespace and the name of the account that is this user.
pub fn of_user_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USER_PREFIX)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups of all accounts of a namespace.
pub fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Verifies tokens of service accounts.
pub struct Verifier {
    issuer: Arc<Issuer>,
    cache: Cache,
    resources: Resources,
    clock: WallClock,
    metrics: Arc<Metrics>,
    checked: Checked,
    used: mpsc::Sender<Used>,
}

/// A token whose signature is right, with all that follows from its claims alone.
pub struct Verified {
    /// The id of the key that has signed it.
    key: String,
    content: Content,
}

enum Content {
    Bound { user: Arc<User>, claims: Box<TokenClaims>, seen: bound::Seen },
    Legacy { user: Arc<User>, claims: Box<legacy::LegacyClaims> },
}

impl Verifier {
    /// Also returns the tokens in Secrets that are used for the first time on a day.
    pub fn new(
        issuer: Arc<Issuer>,
        cache: Cache,
        resources: Resources,
        runtime: &Runtime,
    ) -> (Self, mpsc::Receiver<Used>) {
        let (used, uses) = mpsc::channel(USES);
        let (clock, metrics) = (runtime.clock.clone(), runtime.metrics.clone());
        (Self { issuer, cache, resources, clock, metrics, checked: Checked::default(), used }, uses)
    }

    /// The user of a token that is for one of these audiences; `None` if the token is none of these issuers'. On several
    /// replicas the answer holds every write that was answered before the call.
    pub async fn verify(
        self: &Arc<Self>,
        token: &str,
        wanted: &[String],
        own: &Arc<[String]>,
        by: By,
    ) -> Option<Result<Accepted, TokenError>> {
        let began = Instant::now();
        let known = self.checked.get(token);
        let is_known = known.is_some();
        let verified = match known {
            Some(verified) => Ok(verified),
            None => self.fetch(token).await?,
        };
        self.metrics.tokens.looked_up(is_known, began.elapsed());
        let verified = match verified {
            Ok(verified) => verified,
            Err(error) => return Some(Err(error)),
        };
        if by == By::Known
            && self.cache.backend().shared()
            && let Some(accepted) = self.foresee(&verified, token, wanted, own)
        {
            return Some(Ok(accepted));
        }
        let state = match self.cache.fresh_for_request().await {
            Ok(state) => state,
            Err(error) => return Some(Err(TokenError::Unknown(error))),
        };
        let live = Live { state: &state, resources: &self.resources };
        if !self.issuer.keys.is_known(&verified.key, &live) {
            return Some(Err(refused(NO_KEYS)));
        }
        Some(self.judge(&verified, token, wanted, own, &live).map_err(refused))
    }

    /// Whether a token that was accepted still is, by what this server knows; `None` if it is none of these issuers'. Notes
    /// and counts nothing.
    pub async fn recheck(&self, token: &str) -> Option<Result<(), TokenError>> {
        let verified = match self.checked.get(token) {
            Some(verified) => verified,
            None => match self.fetch(token).await? {
                Ok(verified) => verified,
                Err(error) => return Some(Err(error)),
            },
        };
        let state = self.cache.any();
        let live = Live { state: &state, resources: &self.resources };
        if !self.issuer.keys.is_known(&verified.key, &live) {
            return Some(Err(refused(NO_KEYS)));
        }
        Some(match &verified.content {
            Content::Bound { claims, seen, .. } => {
                bound::check(claims, seen, &live, self.clock.seconds() as i64).map_err(refused)
            }
            Content::Legacy { claims, .. } => legacy::check(claims, token, &live).map_err(refused),
        })
    }

    /// The rows that a token which was accepted depends on.
    pub fn rows(&self, token: &str) -> Vec<Key> {
        let Some(verified) = self.checked.get(token) else { return Vec::new() };
        let (state, resources) = (self.cache.any(), &self.resources);
        let live = Live { state: &state, resources };
        let mut rows = match &verified.content {
            Content::Bound { claims, .. } => bound::keys(claims, resources),
            Content::Legacy { claims, .. } => legacy::keys(claims, resources),
        };
        rows.extend(self.issuer.keys.row(&verified.key, &live).map(|row| row.key));
        rows
    }

    /// Accepts a token by the state that is there, if that is possible.
    fn foresee(
        self: &Arc<Self>,
        verified: &Arc<Verified>,
        token: &str,
        wanted: &[String],
        own: &Arc<[String]>,
    ) -> Option<Accepted> {
        let state = self.cache.any();
        let live = Live { state: &state, resources: &self.resources };
        let unproven = Unproven::of(self, verified, &live)?;
        if !self.issuer.keys.is_known(&verified.key, &live) {
            return None;
        }
        let accepted = self.judge(verified, token, wanted, own, &live).ok()?;
        Some(Accepted { unproven: Some(unproven), ..accepted })
    }

    /// Checks the signature of a token that is not known yet.
    async fn fetch(&self, token: &str) -> Option<Result<Arc<Verified>, TokenError>> {
        let mut fetch = self.metrics.tokens.fetching();
        let mut checked = self.check(token, &self.cache.any())?;
        fetch.is_right = Some(false);
        if let Err(NO_KEYS) = checked {
            checked = match self.fresh_keys().await {
                Ok(state) => self.check(token, &state)?,
                Err(error) => return Some(Err(TokenError::Unknown(error))),
            };
        }
        fetch.is_right = Some(checked.is_ok());
        Some(checked.map(|verified| self.checked.put(token, verified)).map_err(refused))
    }

    /// The state with all keys of now: another server may have published its key just now, or an external signer may have
    /// a new one.
    async fn fresh_keys(&self) -> Result<Arc<State>, storage::Error> {
        if let Some(signer) = self.issuer.keys.signer()
            && let Err(error) = signer.refresh().await
        {
            tracing::error!(%error, "the keys of tokens cannot be read again");
        }
        self.cache.fresh().await
    }

    /// Checks the signature.
    fn check(&self, token: &str, state: &State) -> Option<Result<Verified, &'static str>> {
        let issuer = claimed_issuer(token)?;
        let is_legacy = issuer == LEGACY_ISSUER;
        if !is_legacy && !self.issuer.issuers.contains(&issuer) {
            return None;
        }
        let compact = Compact::parse(token)?;
        let live = Live { state, resources: &self.resources };
        Some(match self.issuer.keys.verify(&compact, &live) {
            Ok(key) => match is_legacy {
                true => legacy::content(&compact),
                false => bound::content(&compact),
            }
            .map(|content| Verified { key, content }),
            Err(why) => Err(why),
        })
    }

    fn judge(
        &self,
        verified: &Verified,
        token: &str,
        wanted: &[String],
        own: &Arc<[String]>,
        live: &Live<'_>,
    ) -> Result<Accepted, String> {
        let (now, tokens) = (self.clock.seconds(), &self.metrics.tokens);
        let mut notes = Notes::default();
        let (user, audiences) = match &verified.content {
            Content::Bound { user, claims, seen } => {
                let audiences = audiences(&claims.aud.0, &claims.sub, wanted, own, &mut notes)?;
                if claims.aud.0.is_empty() {
                    tokens.used(TokenUse::Legacy);
                }
                bound::judge(claims, seen, live, now as i64, &mut notes, tokens)?;
                (user, audiences)
            }
            Content::Legacy { user, claims } => {
                let audiences = audiences(&claims.aud.0, &claims.sub, wanted, own, &mut notes)?;
                if claims.aud.0.is_empty() {
                    tokens.used(TokenUse::Legacy);
                }
                legacy::judge(claims, token, live, now as i64, &mut notes, (&self.used, tokens))?;
                (user, audiences)
            }
        };
        Ok(Accepted { user: user.clone(), audiences, notes, unproven: None })
    }
}

fn refused(why: impl Into<String>) -> TokenError {
    let mut refusals = super::authn::Refusals::default();
    refusals.add(why.into());
    TokenError::Refused(refusals)
}

/// The wanted audiences that the token is for. A token that names none is for this server.
fn audiences(
    named: &[String],
    subject: &str,
    wanted: &[String],
    own: &Arc<[String]>,
    notes: &mut Notes,
) -> Result<Audiences, String> {
    let named = match named {
        [] => {
            notes.annotate("authentication.k8s.io/legacy-token", subject.to_owned());
            own
        }
        named => named,
    };
    if named == wanted && wanted == &**own {
        return Ok(Audiences::Api);
    }
    let common: Vec<String> = named.iter().filter(|name| wanted.contains(name)).cloned().collect();
    if common.is_empty() {
        let (named, wanted) = (quoted(named), quoted(wanted));
        return Err(format!("token audiences {named} is invalid for the target audiences {wanted}"));
    }
    Ok(Audiences::These(common))
}

/// A list of texts as Go prints it with `%q`.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| crate::gotext::quote(text)).collect();
    format!("[{}]", texts.join(" "))
}
