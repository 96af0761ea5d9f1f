//! The issuer of service accounts' tokens, and the documents about it for those who verify them.

use std::sync::Arc;

use super::external::SignerError;
use super::keys::Keys;
use super::live::{Live, Resources};
use super::{LEGACY_ISSUER, user_name};
use crate::cache::Cache;
use crate::tree::{Value, json};

/// For how many seconds clients may keep documents of keys that this server has.
const MAX_AGE: i64 = 3600;

/// Issues tokens.
#[derive(Debug)]
pub struct Issuer {
    /// The first one issues; tokens of the others are accepted. There is at least one.
    pub issuers: Vec<String>,
    pub keys: Keys,
    /// The longest life of a token in seconds.
    pub max_seconds: Option<i64>,
    /// For how many seconds tokens in Pods are valid; `None` means no longer than they ask for.
    pub extended: Option<i64>,
    /// The URL of the keys in the discovery document; `None` names this server's.
    pub jwks_uri: Option<String>,
}

/// The claims of a token that is to be issued.
pub struct Grant<'a> {
    pub namespace: &'a str,
    pub account: &'a str,
    pub uid: &'a str,
    pub audiences: &'a [String],
    /// Seconds since the epoch.
    pub now: i64,
    pub seconds: i64,
    /// The token is renewed after so many seconds, though it is valid for longer.
    pub warn_after: Option<i64>,
    pub id: &'a str,
    /// The objects that the token is bound to: `pod`, `secret`, `node` with names and uids.
    pub objects: Vec<(&'static str, Value)>,
}

/// Why no token is signed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unsigned {
    #[error("failed to generate token: the system has no random numbers")]
    NoRandomNumbers,
    #[error("failed to generate token: an external signer has the keys")]
    NoKey,
    #[error("failed to generate token: {0}")]
    External(#[from] SignerError),
}

impl Issuer {
    fn name(&self) -> &str {
        self.issuers.first().map_or("", String::as_str)
    }

    /// A token for a while.
    pub async fn issue(&self, grant: &Grant<'_>) -> Result<String, Unsigned> {
        match self.keys.signer() {
            Some(signer) => Ok(signer.sign(&self.claims(grant)).await?),
            None => self.issue_here(grant),
        }
    }

    /// The same with the key of this server.
    pub fn issue_here(&self, grant: &Grant<'_>) -> Result<String, Unsigned> {
        self.sign(&self.claims(grant))
    }

    fn sign(&self, claims: &Value) -> Result<String, Unsigned> {
        let key = self.keys.signing().ok_or(Unsigned::NoKey)?;
        key.sign(claims).ok_or(Unsigned::NoRandomNumbers)
    }

    fn claims(&self, grant: &Grant<'_>) -> Value {
        let Grant { namespace, account, uid, audiences, now, seconds, id, .. } = *grant;
        let mut binding = json!({"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}});
        for (kind, object) in &grant.objects {
            binding[*kind] = object.clone();
        }
        if let Some(after) = grant.warn_after {
            binding["warnafter"] = (now + after).into();
        }
        json!({
            "aud": audiences,
            "exp": now.saturating_add(seconds),
            "iat": now,
            "iss": self.name(),
            "jti": id,
            "kubernetes.io": binding,
            "nbf": now,
            "sub": user_name(namespace, account),
        })
    }

    /// The token of a Secret, which is valid as long as the Secret holds it.
    pub fn issue_legacy(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
        uid: &str,
    ) -> Result<String, Unsigned> {
        let claims = json!({
            "iss": LEGACY_ISSUER,
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": user_name(namespace, account),
        });
        self.sign(&claims)
    }
}

/// The documents of the issuer by which clients verify its tokens elsewhere.
pub struct IssuerDocuments {
    issuer: Arc<Issuer>,
    cache: Cache,
    resources: Resources,
    /// `host:port`.
    address: String,
}

impl IssuerDocuments {
    /// `None` for an issuer that nobody could find by its name: one that is no plain `https` URL.
    pub fn new(issuer: Arc<Issuer>, cache: Cache, resources: Resources, address: String) -> Option<Self> {
        let url = url::Url::parse(issuer.name()).ok()?;
        let is_plain = url.scheme() == "https" && url.query().is_none() && url.fragment().is_none();
        let is_https = |uri: &String| url::Url::parse(uri).is_ok_and(|uri| uri.scheme() == "https");
        let is_served = is_plain && issuer.jwks_uri.as_ref().is_none_or(is_https);
        is_served.then_some(Self { issuer, cache, resources, address })
    }

    /// `/.well-known/openid-configuration`.
    pub fn configuration(&self) -> String {
        let own = || format!("https://{}/openid/v1/jwks", self.address);
        let mut algorithms: Vec<&str> = self.keys().map(|key| key.algorithm()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        json!({
            "issuer": self.issuer.name(),
            "jwks_uri": self.issuer.jwks_uri.clone().unwrap_or_else(own),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
        .to_string()
    }

    /// `/openid/v1/jwks`.
    pub fn key_set(&self) -> String {
        let keys: Vec<Value> = self.keys().map(|key| key.to_jwk()).collect();
        json!({"keys": keys}).to_string()
    }

    /// For how many seconds clients may keep a document.
    pub fn max_age(&self) -> i64 {
        self.issuer.keys.signer().map_or(MAX_AGE, |signer| signer.seconds_left())
    }

    fn keys(&self) -> impl Iterator<Item = crate::auth::jwt::keys::PublicKey> {
        let state = self.cache.any();
        let live = Live { state: &state, resources: &self.resources };
        self.issuer.keys.shown(&live).into_iter()
    }
}
