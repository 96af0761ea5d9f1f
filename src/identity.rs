//! Which server this is among the replicas.

use std::fmt;

use sha2::{Digest, Sha256};

/// Hashed beside the host's name, as upstream does: servers of another kind on one host have other identities.
const COMPONENT: &str = "kube-apiserver";
const HASHED_BYTES: usize = 16;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A server's name among the replicas: the same after a restart, and different on every host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    id: String,
    hostname: String,
}

impl ServerIdentity {
    /// Of the server on the host of this name, of at most 65,535 bytes.
    pub fn of_host(hostname: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [hostname, COMPONENT] {
            hash.update((part.len() as u16).to_be_bytes());
            hash.update(part);
        }
        let id = format!("apiserver-{}", base32(&hash.finalize()[..HASHED_BYTES]));
        Self { id, hostname: hostname.to_owned() }
    }

    /// `apiserver-` and 26 characters: a DNS label.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn hostname(&self) -> &str {
        &self.hostname
    }
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// RFC 4648 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    let bit = |index: usize| bytes.get(index / 8).map_or(0, |byte| byte >> (7 - index % 8) & 1);
    let digits = (0..bytes.len() * 8).step_by(5);
    let value = |start: usize| (start..start + 5).fold(0, |value, index| value << 1 | bit(index));
    digits.map(|start| char::from(BASE32[usize::from(value(start))])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s17_check_values() {
        for (hostname, id) in [
            ("localhost", "apiserver-l2yubf4cvcl5c7a3wrubrwqdve"),
            ("rowplane-0", "apiserver-gotpdk75sum55hzo2xkplynseu"),
            ("rowplane-1", "apiserver-zzebgu36tsk47tngoiorm4tiha"),
        ] {
            assert_eq!(ServerIdentity::of_host(hostname).id(), id);
        }
    }

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base32_of_the_rfc() {
        for (text, encoded) in [("", ""), ("f", "my"), ("foob", "mzxw6yq"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(text.as_bytes()), encoded);
        }
    }
}
