//! The identity of this server among the replicas.

mod instance;

use std::fmt;

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

pub use self::instance::Instance;

/// Hashed together with the host's name, as upstream does: other components on the same host get other identities.
const COMPONENT: &str = "kube-apiserver";
const HASHED_BYTES: usize = 16;
/// The longest value of a label, in bytes.
const LONGEST_NAME: usize = 63;

/// A server's name among the replicas. It stays the same after a restart, and no other living server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    id: String,
    hostname: String,
}

impl ServerIdentity {
    /// The identity of a server on the host with this name of at most 65,535 bytes.
    pub fn of_host(hostname: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [hostname, COMPONENT] {
            hash.update((part.len() as u16).to_be_bytes());
            hash.update(part);
        }
        let id = format!("apiserver-{}", BASE32_NOPAD.encode(&hash.finalize()[..HASHED_BYTES]))
            .to_ascii_lowercase();
        Self { id, hostname: hostname.to_owned() }
    }

    /// The identity with a suffix to the host's name, which is shortened if the result would be too long for a label.
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let room = LONGEST_NAME.saturating_sub(suffix.len() + 1);
        // A valid label value is ASCII, so it can be cut after any byte.
        let kept = self.hostname.get(..room).unwrap_or(&self.hostname);
        let kept = kept.trim_end_matches(|last: char| !last.is_ascii_alphanumeric());
        Self::of_host(&format!("{kept}-{suffix}"))
    }

    /// `apiserver-` and 26 characters, which is a valid DNS label.
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
