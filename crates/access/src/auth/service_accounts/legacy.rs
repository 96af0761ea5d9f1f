//! Tokens in Secrets of type `kubernetes.io/service-account-token`, which never expire.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::live::{Found, Live, Resources};
use super::{Content, groups, of_user_name, user_name};
use crate::auth::authn::Notes;
use crate::auth::jwt::{Audience, Compact};
use crate::auth::secret::is_same;
use crate::fields;
use crate::gotext;
use crate::metrics::{TokenMetrics, TokenUse};
use crate::storage::Key;
use crate::tree::Value;
use crate::user::User;

/// The label since when a token is not accepted any more.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// In seconds.
const DAY: i64 = 24 * 60 * 60;
const INVALIDATED: &str = "Token has been invalidated";
const AUTO_GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";

#[derive(Clone, Debug, Deserialize)]
pub struct LegacyClaims {
    #[serde(default)]
    pub sub: String,
    #[serde(default)]
    pub aud: Audience,
    #[serde(default, rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub account: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub uid: String,
}

pub(super) fn content(token: &Compact<'_>) -> Result<Content, &'static str> {
    let claims: LegacyClaims = token.claims().ok_or("service account token claims could not be read")?;
    for (claim, missing) in [
        (&claims.sub, "sub claim is missing"),
        (&claims.namespace, "namespace claim is missing"),
        (&claims.secret, "secretName claim is missing"),
        (&claims.account, "serviceAccountName claim is missing"),
        (&claims.uid, "serviceAccountUID claim is missing"),
    ] {
        if claim.is_empty() {
            return Err(missing);
        }
    }
    if of_user_name(&claims.sub) != Some((&claims.namespace, &claims.account)) {
        return Err("sub claim is invalid");
    }
    let user = User {
        name: user_name(&claims.namespace, &claims.account),
        uid: claims.uid.clone(),
        groups: groups(&claims.namespace),
        ..User::default()
    };
    Ok(Content::Legacy { user: Arc::new(user.authenticated()), claims: Box::new(claims) })
}

/// A Secret whose token was used today for the first time.
#[derive(Debug)]
pub struct Used {
    pub namespace: String,
    pub secret: String,
    pub uid: String,
    /// The date in UTC.
    pub day: String,
}

/// The label that says on which day a token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The use of a Secret's token to be written down, unless one was written today. Clocks of servers may be a day apart
/// around midnight.
fn first_use(secret: &Found, name: &str, namespace: &str, now: i64) -> Option<Used> {
    let noted = fields::text(&secret.object, &["metadata", "labels", LAST_USED]);
    let day = |seconds| {
        Timestamp::from_second(seconds).ok().map(|at| at.to_zoned(TimeZone::UTC).date().to_string())
    };
    let (today, tomorrow) = (day(now)?, day(now.saturating_add(DAY))?);
    if noted == today || noted == tomorrow {
        return None;
    }
    let uid = secret.uid.clone();
    Some(Used { namespace: namespace.to_owned(), secret: name.to_owned(), uid, day: today })
}

/// Fails unless the Secret still holds the token, and the account is the one that it was made for. `used` is told of the
/// first use on a day.
pub(super) fn judge(
    claims: &LegacyClaims,
    token: &str,
    live: &Live<'_>,
    now: i64,
    notes: &mut Notes,
    (used, metrics): (&mpsc::Sender<Used>, &TokenMetrics),
) -> Result<(), String> {
    let LegacyClaims { namespace, secret: name, account, .. } = claims;
    let (secret, found) = objects(claims, token, live)?;
    if let Some(first) = first_use(&secret, name, namespace, now) {
        // If there are too many, the next use tells.
        let _ = used.try_send(first);
    }
    if is_invalidated(&secret) {
        notes.annotate("authentication.k8s.io/legacy-token-invalidated", format!("{name}/{namespace}"));
        metrics.used(TokenUse::Invalidated);
        return Err(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        ));
    }
    let listed = fields::items(&found.object, &["secrets"]);
    let is_listed = |item: &Value| item.get("name").and_then(Value::as_str) == Some(name);
    if listed.iter().any(is_listed) {
        notes.warn(AUTO_GENERATED);
        notes.annotate("authentication.k8s.io/legacy-token-autogenerated-secret", name.clone());
        metrics.used(TokenUse::Auto);
    } else {
        notes.annotate("authentication.k8s.io/legacy-token-manual-secret", name.clone());
        metrics.used(TokenUse::Manual);
    }
    Ok(())
}

/// The keys of the Secret and the account of a token.
pub(super) fn keys(claims: &LegacyClaims, resources: &Resources) -> Vec<Key> {
    let LegacyClaims { namespace, secret, account, .. } = claims;
    vec![Key::new(resources.secrets, namespace, secret), Key::new(resources.accounts, namespace, account)]
}

/// The verdict of [`judge`], without a note of the use.
pub(super) fn check(claims: &LegacyClaims, token: &str, live: &Live<'_>) -> Result<(), String> {
    let (secret, _) = objects(claims, token, live)?;
    if is_invalidated(&secret) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
}

/// The Secret that holds the token, and the account that it was made for.
fn objects(claims: &LegacyClaims, token: &str, live: &Live<'_>) -> Result<(Found, Found), String> {
    let LegacyClaims { namespace, secret: name, account, .. } = claims;
    let secret = live.find(live.resources.secrets, namespace, name).ok_or(INVALIDATED)?;
    if secret.deleted_at.is_some() {
        return Err(INVALIDATED.to_owned());
    }
    let copy = gotext::decode_base64(fields::text(&secret.object, &["data", "token"])).unwrap_or_default();
    if !is_same(&copy, token.as_bytes()) {
        return Err("Token does not match server's copy".to_owned());
    }
    let missing = || format!("serviceaccounts \"{account}\" not found");
    let found = live.find(live.resources.accounts, namespace, account).ok_or_else(missing)?;
    if found.deleted_at.is_some() {
        return Err(format!("ServiceAccount {namespace}/{account} has been deleted"));
    }
    if found.uid != claims.uid {
        let (is, claimed) = (found.uid, &claims.uid);
        return Err(format!("ServiceAccount UID ({is}) does not match claim ({claimed})"));
    }
    Ok((secret, found))
}

fn is_invalidated(secret: &Found) -> bool {
    !fields::text(&secret.object, &["metadata", "labels", INVALID_SINCE]).is_empty()
}
