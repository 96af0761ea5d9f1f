//! Authentication: the chain of authenticators that finds out who makes a request.
//!
//! The order is upstream's: the headers of a front proxy, the client's certificate, a bearer token in a header, one in a
//! WebSocket's subprotocol. The first that knows the user decides. If an authenticator refuses a credential, the next ones are
//! still asked, but the request cannot become anonymous any more: a bad credential without a good one is refused on every path.

mod anonymous;
mod bearer;
mod certificate;
mod front_proxy;
mod notes;
mod refusal;
mod tokens;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use arc_swap::ArcSwap;
use http::{HeaderMap, header};

pub use self::anonymous::Anonymous;
pub use self::bearer::is_websocket;
pub use self::certificate::{CREDENTIAL_ID, Certified, certificate_identifier, user_of_certificate};
pub use self::front_proxy::{FrontProxy, unescaped};
pub use self::notes::Notes;
pub use self::refusal::{Refusals, TokenError, Unauthenticated};
pub use self::tokens::{Accepted, Audiences, By};
use super::bootstrap_tokens::BootstrapTokens;
use super::jwt;
use super::oidc::Oidc;
use super::service_accounts::{Unproven, Verifier};
use super::token_file::Tokens;
use super::token_webhook::TokenWebhook;
use crate::storage::Key;
use crate::user::User;

/// The issuer of this server's tokens, and the audience that they are for, unless flags say otherwise.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

static ANONYMOUS: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(User::anonymous()));

/// The parts of a request that show who makes it.
pub struct Shown<'a> {
    /// `None` without a client certificate.
    pub certified: Option<Certified>,
    pub headers: &'a mut HeaderMap,
    pub path: &'a str,
    /// How a token of a service account is judged.
    pub by: By,
}

/// The user who makes a request, with the credential.
#[derive(Debug)]
pub struct Authenticated {
    pub user: Arc<User>,
    /// Warnings and annotations about the credential.
    pub notes: Notes,
    pub credential: Credential,
    /// Set if the credential was accepted by what this server knows, and others may know better.
    pub unproven: Option<Unproven>,
}

/// The credential that was accepted.
#[derive(Debug)]
pub enum Credential {
    /// The request is one of the same process.
    Internal,
    /// Nothing was shown at all.
    Anonymous,
    Certificate,
    /// The certificate of a front proxy, which names the user.
    FrontProxy,
    Token(Box<str>),
}

/// The settings of the chain.
#[derive(Clone, Debug)]
pub struct Settings {
    pub anonymous: Anonymous,
    /// `None` without `--requestheader-client-ca-file`.
    pub front_proxy: Option<FrontProxy>,
    /// The audiences that tokens for this server name, at least one.
    pub audiences: Arc<[String]>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            anonymous: Anonymous::Everywhere,
            front_proxy: None,
            audiences: [DEFAULT_ISSUER.to_owned()].into(),
        }
    }
}

/// Finds the [`User`] of a request or of a token. Cheap to clone; clones share everything.
#[derive(Clone, Default)]
pub struct Authenticator {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    settings: Settings,
    token_file: ArcSwap<Tokens>,
    /// Set once the server has read its objects.
    service_accounts: OnceLock<Arc<Verifier>>,
    /// Set once the server has read its objects, if bootstrap tokens are accepted.
    bootstrap_tokens: OnceLock<BootstrapTokens>,
    /// Issuers elsewhere, if there are any.
    oidc: OnceLock<Arc<Oidc>>,
    /// A webhook that knows tokens, if there is one.
    webhook: OnceLock<TokenWebhook>,
    /// The authenticator of the cluster that this one is a branch of, whose tokens are accepted, too.
    parent: Option<Authenticator>,
}

impl Authenticator {
    pub fn new(settings: Settings, tokens: Tokens) -> Self {
        let token_file = ArcSwap::from_pointee(tokens);
        let shared = Shared { settings, token_file, ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The authenticator of a branch: it accepts what the parent does. The parent accepts none of the branch's tokens.
    pub fn of_branch(parent: &Self) -> Self {
        let settings = parent.shared.settings.clone();
        let shared = Shared { settings, parent: Some(parent.clone()), ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Replaces all tokens of the token file from the next request on. Returns whether they have changed.
    pub fn replace_tokens(&self, tokens: Tokens) -> bool {
        let changed = **self.shared.token_file.load() != tokens;
        if changed {
            self.shared.token_file.store(Arc::new(tokens));
        }
        changed
    }

    /// From now on tokens of service accounts are accepted.
    pub fn know_service_accounts(&self, verifier: Verifier) {
        let _ = self.shared.service_accounts.set(Arc::new(verifier));
    }

    /// From now on bootstrap tokens are accepted.
    pub fn know_bootstrap_tokens(&self, verifier: BootstrapTokens) {
        let _ = self.shared.bootstrap_tokens.set(verifier);
    }

    /// From now on tokens of issuers elsewhere are accepted.
    pub fn know_oidc(&self, oidc: Arc<Oidc>) {
        let _ = self.shared.oidc.set(oidc);
    }

    /// From now on this webhook is asked about tokens that nobody else knows.
    pub fn know_webhook(&self, webhook: TokenWebhook) {
        let _ = self.shared.webhook.set(webhook);
    }

    /// The audiences of tokens for this server.
    pub fn audiences(&self) -> &Arc<[String]> {
        &self.shared.settings.audiences
    }

    /// Asks the chain. Takes the credential that it has accepted out of the headers.
    pub async fn authenticate(&self, shown: Shown<'_>) -> Result<Authenticated, Unauthenticated> {
        let Shown { certified, headers, path, by } = shown;
        let mut refused = Refusals::default();
        let mut notes = Notes::default();
        if let Some(certified) = certified {
            if let Some(user) = self.of_proxy(&certified, headers, &mut refused) {
                return Ok(Authenticated::by(Credential::FrontProxy, user));
            }
            match certified.user {
                Ok(Some(user)) => return Ok(Authenticated::by(Credential::Certificate, user)),
                Ok(None) => {}
                Err(why) => refused.add(&*why),
            }
        }
        for find in [bearer::in_header, bearer::in_subprotocol] {
            match find(headers, &mut notes) {
                Ok(None) => {}
                Ok(Some(token)) => match self.token_by(&token, self.audiences(), by).await {
                    Ok(accepted) => {
                        let user = accepted.user;
                        notes.extend(accepted.notes);
                        bearer::withdraw(headers);
                        return Ok(Authenticated {
                            user,
                            notes,
                            credential: Credential::Token(token.into()),
                            unproven: accepted.unproven,
                        });
                    }
                    Err(TokenError::Refused(why)) => refused.extend(why),
                    Err(TokenError::Starting) => return Err(Unauthenticated::Starting),
                    Err(TokenError::Unknown(error)) => return Err(Unauthenticated::Unknown(error)),
                },
                Err(why) => refused.add(why),
            }
        }
        if !refused.is_empty() {
            return Err(Unauthenticated::Refused(refused.to_string()));
        }
        if !self.shared.settings.anonymous.admits(path) {
            return Err(Unauthenticated::Missing);
        }
        Ok(Authenticated { notes, ..Authenticated::by(Credential::Anonymous, ANONYMOUS.clone()) })
    }

    /// Fails if a token that this user has shown is certainly not his any more, by what this server knows. Nobody who cannot
    /// be asked at present has taken it away.
    pub async fn recheck(&self, token: &str, user: &User) -> Result<(), Unauthenticated> {
        let refused = || Err(Unauthenticated::Refused("the token is not valid any more".to_owned()));
        if self.shared.token_file.load().user(token).is_some_and(|known| is_same(known, user)) {
            return Ok(());
        }
        if let Some(parent) = &self.shared.parent
            && Box::pin(parent.recheck(token, user)).await.is_ok()
        {
            return Ok(());
        }
        if let Some(verifier) = self.shared.service_accounts.get()
            && let Some(checked) = verifier.recheck(token).await
        {
            return if matches!(checked, Err(TokenError::Refused(_))) { refused() } else { Ok(()) };
        }
        if let Some(verifier) = self.shared.bootstrap_tokens.get() {
            match verifier.verify(token).await {
                Ok(Some(found)) if is_same(&found, user) => return Ok(()),
                Ok(_) => {}
                Err(_) => return Ok(()),
            }
        }
        if let Some(oidc) = self.shared.oidc.get()
            && let Some(Ok(found)) = Box::pin(oidc.verify(token)).await
            && is_same(&found, user)
        {
            return Ok(());
        }
        match self.shared.webhook.get() {
            Some(webhook) => {
                match Box::pin(webhook.verify(token, self.audiences(), self.audiences())).await {
                    Ok(Some((found, _))) if is_same(&found, user) => Ok(()),
                    Ok(_) => refused(),
                    Err(_) => Ok(()),
                }
            }
            None => refused(),
        }
    }

    /// The rows that a token which was accepted depends on.
    pub fn rows(&self, token: &str) -> Vec<Key> {
        let accounts = self.shared.service_accounts.get();
        let mut rows = accounts.map(|verifier| verifier.rows(token)).unwrap_or_default();
        rows.extend(self.shared.bootstrap_tokens.get().and_then(|tokens| tokens.row(token)));
        rows
    }

    /// The user for whom a front proxy speaks.
    fn of_proxy(
        &self,
        certified: &Certified,
        headers: &mut HeaderMap,
        refused: &mut Refusals,
    ) -> Option<Arc<User>> {
        let front_proxy = self.shared.settings.front_proxy.as_ref()?;
        match certified.proxy.as_ref()? {
            Ok(()) => front_proxy.take_user(headers).map(Arc::new),
            Err(why) => {
                refused.add(&**why);
                None
            }
        }
    }

    /// The user of a bearer token that is for one of these audiences.
    pub async fn token(&self, token: &str, audiences: &[String]) -> Result<Accepted, TokenError> {
        self.token_by(token, audiences, By::Newest).await
    }

    async fn token_by(&self, token: &str, audiences: &[String], by: By) -> Result<Accepted, TokenError> {
        let mut refused = Refusals::default();
        if let Some(user) = self.shared.token_file.load().user(token)
            && let Some(audiences) = self.api_audiences(audiences)
        {
            return Ok(Accepted { user: user.clone(), audiences, notes: Notes::default(), unproven: None });
        }
        match self.shared.service_accounts.get() {
            Some(verifier) => match verifier.verify(token, audiences, self.audiences(), by).await {
                Some(Ok(accepted)) => return Ok(accepted),
                Some(Err(TokenError::Refused(why))) => refused.extend(why),
                Some(Err(error)) => return Err(error),
                None => {}
            },
            None if jwt::claimed_issuer(token).is_some() => return Err(TokenError::Starting),
            None => {}
        }
        if let Some(verifier) = self.shared.bootstrap_tokens.get()
            && let Some(own) = self.api_audiences(audiences)
            && let Some(user) = verifier.verify(token).await?
        {
            return Ok(Accepted { user, audiences: own, notes: Notes::default(), unproven: None });
        }
        if let Some(oidc) = self.shared.oidc.get()
            && let Some(own) = self.api_audiences(audiences)
        {
            match Box::pin(oidc.verify(token)).await {
                Some(Ok(user)) => {
                    return Ok(Accepted { user, audiences: own, notes: Notes::default(), unproven: None });
                }
                Some(Err(why)) => refused.extend(why),
                None => {}
            }
        }
        if let Some(webhook) = self.shared.webhook.get() {
            match Box::pin(webhook.verify(token, audiences, self.audiences())).await {
                Ok(Some((user, for_these))) => {
                    let audiences = Audiences::These(for_these);
                    return Ok(Accepted { user, audiences, notes: Notes::default(), unproven: None });
                }
                Ok(None) => {}
                Err(why) => refused.extend(why),
            }
        }
        if let Some(parent) = &self.shared.parent {
            // The rows that a token depends on are the parent's, and no commit of a branch can require them.
            match Box::pin(parent.token_by(token, audiences, By::Newest)).await {
                Ok(accepted) => return Ok(accepted),
                Err(TokenError::Refused(why)) => refused.extend(why),
                Err(error) => return Err(error),
            }
        }
        if refused.is_empty() {
            refused.add("invalid bearer token");
        }
        Err(TokenError::Refused(refused))
    }

    /// The audiences of a credential that names none: the wanted ones among this server's own; `None` if there are none.
    fn api_audiences(&self, wanted: &[String]) -> Option<Audiences> {
        let own = self.audiences();
        if wanted == &**own {
            return Some(Audiences::Api);
        }
        let common: Vec<String> = own.iter().filter(|own| wanted.contains(own)).cloned().collect();
        (!common.is_empty()).then_some(Audiences::These(common))
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl Authenticated {
    /// A user with a credential that needs neither warnings nor annotations.
    pub fn by(credential: Credential, user: Arc<User>) -> Self {
        Self { user, notes: Notes::default(), credential, unproven: None }
    }

    pub fn is_anonymous(&self) -> bool {
        matches!(self.credential, Credential::Anonymous)
    }
}

/// Whether these are one user with the same groups. What an issuer says beside that may differ from time to time.
fn is_same(one: &User, other: &User) -> bool {
    (&one.name, &one.uid, &one.groups) == (&other.name, &other.uid, &other.groups)
}

/// Removes what names a user from the headers of an authenticated request, whether it was a credential or not.
pub fn forget_credentials(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    front_proxy::forget(headers);
}
