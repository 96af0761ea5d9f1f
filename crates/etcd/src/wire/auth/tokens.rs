//! Tokens: the name of a user, signed with a key that all servers of the store have.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use prost::Message;
use sha2::Sha256;
use tonic::Status;

/// How long a token is taken, in seconds. Clients get another one by themselves.
const LIFETIME: u64 = 300;

#[derive(Clone, PartialEq, Message)]
struct Claims {
    #[prost(string, tag = "1")]
    user: String,
    /// The revision of users and roles under which it was given.
    #[prost(uint64, tag = "2")]
    revision: u64,
    /// The end, in seconds since 1970.
    #[prost(uint64, tag = "3")]
    expires: u64,
}

pub fn of_user(user: &str, key: &[u8], revision: u64, now: u64) -> String {
    let claims = Claims { user: user.to_owned(), revision, expires: now + LIFETIME }.encode_to_vec();
    // Without a key the signature is empty, and the token taken by nobody.
    let code = signature(key, &claims).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default();
    format!("{}.{}", URL_SAFE_NO_PAD.encode(&claims), URL_SAFE_NO_PAD.encode(code))
}

/// The user of a token that is valid.
pub fn user(token: &str, key: &[u8], revision: u64, now: u64) -> Result<String, Status> {
    let claims = read(token, key).filter(|claims| claims.expires > now);
    match claims {
        None => Err(Status::unauthenticated("etcdserver: invalid auth token")),
        Some(Claims { revision: of_token, .. }) if of_token < revision => {
            Err(Status::invalid_argument("etcdserver: revision of auth store is old"))
        }
        Some(Claims { user, .. }) => Ok(user),
    }
}

/// The claims of a token that has been signed with the key.
fn read(token: &str, key: &[u8]) -> Option<Claims> {
    let (claims, code) = token.split_once('.')?;
    let (claims, code) = (URL_SAFE_NO_PAD.decode(claims).ok()?, URL_SAFE_NO_PAD.decode(code).ok()?);
    signature(key, &claims)?.verify_slice(&code).ok()?;
    Claims::decode(&*claims).ok()
}

fn signature(key: &[u8], claims: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok().filter(|_| !key.is_empty())?;
    mac.update(claims);
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_of_their_user_until_something_changes() {
        let token = of_user("alice", b"key", 7, 1000);
        let found = |token: &str, key: &[u8], revision, now| {
            user(token, key, revision, now).map_err(|status| status.message().to_owned())
        };
        let (invalid, old) = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old");
        assert_eq!(found(&token, b"key", 7, 1299), Ok("alice".to_owned()));
        assert_eq!(found(&token, b"key", 8, 1000), Err(old.to_owned()));
        for (token, key, now) in [
            (token.as_str(), &b"key"[..], 1300),
            (&token, b"other", 1000),
            (&token[1..], b"key", 1000),
            ("x.y", b"key", 1000),
            ("", b"key", 1000),
        ] {
            assert_eq!(found(token, key, 7, now), Err(invalid.to_owned()));
        }
    }
}
