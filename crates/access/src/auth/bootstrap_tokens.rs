//! Bootstrap tokens: those by which new Nodes join, kept in Secrets of `kube-system`.

use std::sync::Arc;

use super::authn::TokenError;
use super::secret::is_same;
use crate::cache::{Cache, State};
use crate::fields::{self, ObjectMap};
use crate::gotext::{self, Fraction, parse_time};
use crate::storage::{Key, ResourceId};
use crate::user::User;
use crate::wall_clock::WallClock;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
const GROUP: &str = "system:bootstrappers";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
/// The most characters behind `system:bootstrappers:` in the name of a group.
const GROUP_LENGTH: usize = 256;

/// Verifies bootstrap tokens.
pub struct BootstrapTokens {
    cache: Cache,
    secrets: ResourceId,
    clock: WallClock,
}

impl BootstrapTokens {
    pub fn new(cache: Cache, secrets: ResourceId, clock: WallClock) -> Self {
        Self { cache, secrets, clock }
    }

    /// The user of a token. `None` for one that is not a bootstrap token, or not one any more: nothing is said about why.
    pub async fn verify(&self, token: &str) -> Result<Option<Arc<User>>, TokenError> {
        let Some((id, secret)) = parts(token) else { return Ok(None) };
        let state = self.cache.fresh_for_request().await.map_err(TokenError::Unknown)?;
        Ok(self.find(&state, id, secret).map(Arc::new))
    }

    /// The Secret that holds a token.
    pub fn row(&self, token: &str) -> Option<Key> {
        let (id, _) = parts(token)?;
        Some(Key::new(self.secrets, NAMESPACE, &format!("bootstrap-token-{id}")))
    }

    fn find(&self, state: &State, id: &str, secret: &str) -> Option<User> {
        let found = state.get(self.secrets, NAMESPACE, &format!("bootstrap-token-{id}"))?.to_map().ok()?;
        let held =
            |key: &str| gotext::decode_base64(fields::text(&found, &["data", key])).unwrap_or_default();
        let holds = fields::text(&found, &["type"]) == TYPE
            && fields::at(&found, &["metadata", "deletionTimestamp"]).is_none()
            && is_same(&held("token-secret"), secret.as_bytes())
            && held("token-id") == id.as_bytes()
            && !self.is_expired(&held("expiration"))
            && held("usage-bootstrap-authentication") == b"true";
        holds.then(|| groups(&found)).flatten().map(|groups| {
            User { name: format!("{USER_PREFIX}{id}"), groups, ..User::default() }.authenticated()
        })
    }

    /// A time that cannot be read is over.
    fn is_expired(&self, until: &[u8]) -> bool {
        if until.is_empty() {
            return false;
        }
        let parsed = std::str::from_utf8(until).ok().and_then(|text| parse_time(text, Fraction::Any).ok());
        parsed.is_none_or(|until| gotext::timestamp(until) <= self.clock.timestamp())
    }
}

/// The id and the secret of `abcdef.0123456789abcdef`.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fits = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (fits(id, ID_LENGTH) && fits(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// The groups of a token; `None` if one of them is not a group of bootstrap tokens.
fn groups(secret: &ObjectMap) -> Option<Vec<String>> {
    let extra =
        gotext::decode_base64(fields::text(secret, &["data", "auth-extra-groups"])).unwrap_or_default();
    let extra = String::from_utf8(extra).ok()?;
    let mut more: Vec<&str> = extra.split(',').filter(|_| !extra.is_empty()).collect();
    more.sort_unstable();
    more.dedup();
    let all = more.iter().all(|group| is_group(group));
    all.then(|| std::iter::once(GROUP).chain(more).map(str::to_owned).collect())
}

fn is_group(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')) else { return false };
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b':' | b'-');
    let is_last = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    rest.len() <= GROUP_LENGTH && rest.bytes().all(is_inner) && rest.as_bytes().last().is_some_and(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_two_parts() {
        assert_eq!(parts("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for other in [
            "",
            ".",
            "abcdef",
            "abcdef.0123456789abcde",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcde.",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn groups_have_a_prefix() {
        for (name, fits) in [
            ("system:bootstrappers:kubeadm:default-node-token", true),
            ("system:bootstrappers:a", true),
            ("system:bootstrappers:", false),
            ("system:bootstrappers", false),
            ("system:bootstrappers:a-", false),
            ("system:bootstrappers:A", false),
            ("system:masters", false),
        ] {
            assert_eq!(is_group(name), fits, "{name}");
        }
    }
}
