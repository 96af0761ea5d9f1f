//! Tokens that the server issues for a while, bound to an account and perhaps to an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::claims::{Reference, TokenClaims};
use super::live::{Live, Resources};
use super::{Content, groups, user_name};
use crate::auth::authn::{CREDENTIAL_ID, Notes};
use crate::auth::jwt::Compact;
use crate::metrics::{TokenMetrics, TokenUse};
use crate::storage::{Expect, Key, Requirement, ResourceId};
use crate::user::User;

/// The seconds by which clocks may differ, and for which an object that is being deleted still counts.
const LEEWAY: i64 = 60;

const INVALIDATED: &str = "service account token has been invalidated";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const STALE: &str = "authentication.k8s.io/stale-token";

/// The revisions at which objects of a token were found to be as it says, and not being deleted; 0 before. An object at
/// the same revision need not be read again.
#[derive(Default)]
pub struct Seen {
    account: AtomicU64,
    pod: AtomicU64,
    secret: AtomicU64,
    node: AtomicU64,
}

pub(super) fn content(token: &Compact<'_>) -> Result<Content, &'static str> {
    let claims: TokenClaims = token.claims().ok_or("service account token claims could not be read")?;
    let user = Arc::new(user(&claims));
    Ok(Content::Bound { user, claims: Box::new(claims), seen: Seen::default() })
}

fn user(claims: &TokenClaims) -> User {
    let binding = &claims.kubernetes;
    let mut extra = BTreeMap::new();
    let mut put = |key: &str, value: String| {
        extra.insert(key.to_owned(), vec![value]);
    };
    if !claims.jti.is_empty() {
        put(CREDENTIAL_ID, format!("JTI={}", claims.jti));
    }
    if let Some(pod) = &binding.pod {
        put(POD_NAME, pod.name.clone());
        put(POD_UID, pod.uid.clone());
    }
    if let Some(node) = &binding.node {
        put(NODE_NAME, node.name.clone());
        if !node.uid.is_empty() {
            put(NODE_UID, node.uid.clone());
        }
    }
    let user = User {
        name: user_name(&binding.namespace, &binding.account.name),
        uid: binding.account.uid.clone(),
        groups: groups(&binding.namespace),
        extra,
    };
    user.authenticated()
}

/// The variant of [`check`] that also counts uses of the token, and annotates a use after its warning time.
pub(super) fn judge(
    claims: &TokenClaims,
    seen: &Seen,
    live: &Live<'_>,
    now: i64,
    notes: &mut Notes,
    metrics: &TokenMetrics,
) -> Result<(), String> {
    check(claims, seen, live, now)?;
    match claims.kubernetes.warn_after.filter(|after| after.0 != 0) {
        Some(after) if now > after.0 => {
            let past = now - after.0;
            let text = format!("subject: {}, seconds after warning threshold: {past}", claims.sub);
            notes.annotate(STALE, text);
            metrics.used(TokenUse::Stale);
        }
        Some(_) => metrics.used(TokenUse::Valid),
        None => {}
    }
    Ok(())
}

/// The keys of the account and the object that the token names.
pub(super) fn keys(claims: &TokenClaims, resources: &Resources) -> Vec<Key> {
    let binding = &claims.kubernetes;
    let namespace = &*binding.namespace;
    let account = Key::new(resources.accounts, namespace, &binding.account.name);
    let secret = binding.secret.as_ref().map(|secret| Key::new(resources.secrets, namespace, &secret.name));
    let host = match (&binding.pod, &binding.node) {
        (Some(pod), _) => Some(Key::new(resources.pods, namespace, &pod.name)),
        (None, Some(node)) => Some(Key::new(resources.nodes, "", &node.name)),
        (None, None) => None,
    };
    [Some(account), secret, host].into_iter().flatten().collect()
}

/// The rows of the account and the object that the token names, as they are; `None` if one is not there.
pub(super) fn rows(claims: &TokenClaims, live: &Live<'_>) -> Option<Vec<Requirement>> {
    let row = |key: Key| {
        let expect = Expect::At(live.get(key.resource, &key.namespace, &key.name)?.revision());
        Some(Requirement { key, expect })
    };
    keys(claims, live.resources).into_iter().map(row).collect()
}

/// Fails unless the token is valid now and everything that it names is there.
pub(super) fn check(claims: &TokenClaims, seen: &Seen, live: &Live<'_>, now: i64) -> Result<(), String> {
    check_time(claims, now)?;
    let binding = &claims.kubernetes;
    let resources = live.resources;
    check_account(claims, &seen.account, live, now)?;
    let look = |what: &'static str, resource, namespace: &str, reference: &Reference, seen: &AtomicU64| {
        let bound = Bound { what, resource, namespace, reference };
        bound.check(seen, live, now)
    };
    if let Some(secret) = &binding.secret {
        look("secret", resources.secrets, &binding.namespace, secret, &seen.secret)?;
    }
    match (&binding.pod, &binding.node) {
        (Some(pod), _) => look("pod", resources.pods, &binding.namespace, pod, &seen.pod)?,
        (None, Some(node)) => look("node", resources.nodes, "", node, &seen.node)?,
        (None, None) => {}
    }
    Ok(())
}

fn check_time(claims: &TokenClaims, now: i64) -> Result<(), &'static str> {
    if claims.nbf.is_some_and(|from| now.saturating_add(LEEWAY) < from.0) {
        return Err("service account token is not valid yet");
    }
    if claims.exp.is_some_and(|until| now.saturating_sub(LEEWAY) >= until.0) {
        return Err("service account token has expired");
    }
    if claims.iat.is_some_and(|at| now.saturating_add(LEEWAY) < at.0) {
        return Err("service account token is issued in the future");
    }
    Ok(())
}

fn check_account(claims: &TokenClaims, seen: &AtomicU64, live: &Live<'_>, now: i64) -> Result<(), String> {
    let (namespace, account) = (&claims.kubernetes.namespace, &claims.kubernetes.account);
    let missing = || format!("serviceaccounts \"{}\" not found", account.name);
    let object = live.get(live.resources.accounts, namespace, &account.name).ok_or_else(missing)?;
    if seen.load(Ordering::Relaxed) == object.revision().0 {
        return Ok(());
    }
    let found = live.read(&object).ok_or_else(missing)?;
    if found.uid != account.uid {
        let (is, claimed) = (found.uid, &account.uid);
        return Err(format!("service account UID ({is}) does not match claim ({claimed})"));
    }
    if is_gone(found.deleted_at, now) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    if found.deleted_at.is_none() {
        seen.store(found.revision.0, Ordering::Relaxed);
    }
    Ok(())
}

fn is_gone(deleted_at: Option<i64>, now: i64) -> bool {
    deleted_at.is_some_and(|at| at < now.saturating_sub(LEEWAY))
}

/// An object that a token is bound to.
struct Bound<'a> {
    what: &'static str,
    resource: ResourceId,
    namespace: &'a str,
    reference: &'a Reference,
}

impl Bound<'_> {
    fn check(&self, seen: &AtomicU64, live: &Live<'_>, now: i64) -> Result<(), String> {
        let object = live.get(self.resource, self.namespace, &self.reference.name).ok_or(INVALIDATED)?;
        if seen.load(Ordering::Relaxed) == object.revision().0 {
            return Ok(());
        }
        let found = live.read(&object).ok_or(INVALIDATED)?;
        if found.uid != self.reference.uid {
            let (what, is, claimed) = (self.what, found.uid, &self.reference.uid);
            return Err(format!(
                "{what} UID ({is}) does not match service account {what} ref claim ({claimed})"
            ));
        }
        if is_gone(found.deleted_at, now) {
            return Err(INVALIDATED.to_owned());
        }
        if found.deleted_at.is_none() {
            seen.store(found.revision.0, Ordering::Relaxed);
        }
        Ok(())
    }
}
