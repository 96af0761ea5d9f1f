//! Authentication: by a verified client certificate, otherwise by a bearer token, like upstream's union.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

use super::token_file::Tokens;
use crate::user::User;

/// The extra field that names the credential that was used.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Paths that need no credentials: upstream's `system:public-info-viewer`. Single checks such as `/readyz/ping` are not
/// among them, since they tell why they fail.
const OPEN_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Whether `path` is served without credentials.
pub fn is_open_path(path: &str) -> bool {
    OPEN_PATHS.contains(&path)
}

/// The credentials are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unauthorized")]
pub struct Unauthorized;

/// Finds the [`User`] of credentials.
///
/// Cheap to clone; clones share their credentials.
#[derive(Clone, Debug, Default)]
pub struct Authenticator {
    tokens: Arc<ArcSwap<Tokens>>,
}

impl Authenticator {
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens: Arc::new(ArcSwap::from_pointee(tokens)) }
    }

    /// Replaces all tokens from the next request on. Returns whether they have changed.
    pub fn replace_tokens(&self, tokens: Tokens) -> bool {
        let changed = **self.tokens.load() != tokens;
        if changed {
            self.tokens.store(Arc::new(tokens));
        }
        changed
    }

    /// `certificate` is the user of the client's certificate, `authorization` the request's header. `Ok(None)` means
    /// that there are no credentials: refuse the request unless [`is_open_path`]. An unknown token is refused on every
    /// path, as upstream does.
    pub fn authenticate(
        &self,
        certificate: Option<Arc<User>>,
        authorization: Option<&[u8]>,
    ) -> Result<Option<Arc<User>>, Unauthorized> {
        if let Some(user) = certificate {
            return Ok(Some(user));
        }
        match authorization.and_then(bearer_token) {
            None => Ok(None),
            Some(token) => self.tokens.load().user(token).cloned().map(Some).ok_or(Unauthorized),
        }
    }
}

/// The token of `Bearer <token>`. Other schemes are ignored, as if the header were absent.
fn bearer_token(header: &[u8]) -> Option<&str> {
    let header = std::str::from_utf8(header).ok()?.trim();
    let mut parts = header.splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user that a certificate names by its common name and organizations. The caller has verified the certificate.
/// `None` if it is malformed or names nobody.
pub fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = common_name(subject).filter(|name| !name.is_empty())?;
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![credential_id(der)])]);
    Some(User { name: name.to_owned(), uid: String::new(), groups, extra }.authenticated())
}

/// Of several common names, Go uses the last one.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    subject.iter_common_name().last()?.as_str().ok()
}

fn credential_id(der: &[u8]) -> String {
    let mut id = String::from("X509SHA256=");
    for byte in Sha256::digest(der) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn with_tokens(csv: &str) -> Authenticator {
        Authenticator::new(Tokens::parse(csv).unwrap())
    }

    #[test]
    fn common_name_is_the_user_and_organization_the_group() {
        let der = certificate(&[(DnType::CommonName, "alice"), (DnType::OrganizationName, "system:masters")]);
        let user = user_of_certificate(&der).unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    }

    #[test]
    fn a_certificate_without_a_name_is_nobody() {
        assert_eq!(user_of_certificate(&certificate(&[(DnType::OrganizationName, "devs")])), None);
        assert_eq!(user_of_certificate(b"not a certificate"), None);
    }

    #[test]
    fn bearer_tokens() {
        let authn = with_tokens("secret,bob,7,devs\n");
        let user = authn.authenticate(None, Some(b"bearer secret")).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("bob", "7"));
        assert_eq!(authn.authenticate(None, Some(b"Bearer wrong")), Err(Unauthorized));
        for absent in [&b"Basic c2VjcmV0"[..], b"Bearer", b"Bearer ", b"", b"Bearer \xff"] {
            assert_eq!(authn.authenticate(None, Some(absent)), Ok(None), "{absent:?}");
        }
        assert_eq!(authn.authenticate(None, None), Ok(None));
    }

    #[test]
    fn a_certificate_comes_before_a_token() {
        let alice = Arc::new(User { name: "alice".into(), ..User::default() });
        let user = with_tokens("secret,bob,7\n").authenticate(Some(alice), Some(b"Bearer wrong"));
        assert_eq!(user.unwrap().unwrap().name, "alice");
    }

    #[test]
    fn open_paths_are_exact() {
        assert!(is_open_path("/readyz") && is_open_path("/version"));
        assert!(!is_open_path("/readyz/ping") && !is_open_path("/metrics") && !is_open_path("/"));
    }
}
