//! Tokens whose signature was checked already.

use std::sync::Arc;

use super::Verified;
use crate::auth::recent::Recent;
use crate::auth::secret::sha256;

/// The tokens of a generation. What is known of a token takes about 1 KiB.
const MOST: usize = 1024;

/// Tokens that were verified, by their hashes: tokens themselves are not kept.
pub struct Checked(Recent<[u8; 32], Arc<Verified>>);

impl Default for Checked {
    fn default() -> Self {
        Self(Recent::new(MOST))
    }
}

impl Checked {
    pub fn get(&self, token: &str) -> Option<Arc<Verified>> {
        self.0.get(&sha256(token.as_bytes()))
    }

    pub fn put(&self, token: &str, verified: Verified) -> Arc<Verified> {
        let verified = Arc::new(verified);
        self.0.put(sha256(token.as_bytes()), verified.clone());
        verified
    }
}
