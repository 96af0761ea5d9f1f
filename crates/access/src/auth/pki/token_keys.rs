//! The key that signs tokens of service accounts, and those that have signed before: `sa.key` and `sa-retired.pem`.
//!
//! A rotation first writes down what the present key verifies, and then replaces it. So whoever reads the key first and
//! the retired keys afterwards misses none.

use std::path::Path;

use super::files::{self, Access};
use super::{Error, issue};
use crate::auth::jwt::keys::{PublicKey, SigningKey};

const KEY: &str = "sa.key";
const RETIRED: &str = "sa-retired.pem";
const TAG: &str = "PUBLIC KEY";
/// The tag of keys whose tokens have ended.
const DISCARDED_TAG: &str = "DISCARDED PUBLIC KEY";

/// The keys of a data directory.
#[derive(Debug)]
pub struct TokenKeys {
    pub signing: SigningKey,
    /// They still verify.
    pub retired: Vec<PublicKey>,
    /// They verify no more, neither here nor elsewhere.
    pub discarded: Vec<PublicKey>,
}

/// The fate of the tokens that retired keys have signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    Keep,
    Discard,
}

impl TokenKeys {
    /// Reads the keys. The signing one is made at first need.
    pub fn load(dir: &Path) -> Result<Self, Error> {
        files::create_dir(dir)?;
        let path = dir.join(KEY);
        let pem = issue::ensure_key(&path)?.serialize_pem();
        let signing = SigningKey::of_pem(pem.as_bytes());
        let signing = signing.map_err(|error| Error::BadKey { path, reason: error.to_string() })?;
        let path = dir.join(RETIRED);
        let text = files::try_read(&path)?.unwrap_or_default();
        let bad = |reason: String| Error::BadKey { path: path.clone(), reason };
        let (mut retired, mut discarded) = (Vec::new(), Vec::new());
        for block in pem::parse_many(&text).map_err(|error| bad(error.to_string()))? {
            let keys = if block.tag() == DISCARDED_TAG { &mut discarded } else { &mut retired };
            let key = pem::encode(&pem::Pem::new(TAG, block.contents()));
            keys.extend(PublicKey::of_pem(key.as_bytes()).map_err(|error| bad(error.to_string()))?);
        }
        retired.retain(|key| *key != signing.public);
        Ok(Self { signing, retired, discarded })
    }

    /// Makes a new key, which signs from now on; the present one is retired.
    pub fn rotate(dir: &Path, of_before: Retired) -> Result<Self, Error> {
        let Self { signing, mut retired, mut discarded } = Self::load(dir)?;
        match of_before {
            Retired::Keep => retired.push(signing.public),
            Retired::Discard => {
                discarded.append(&mut retired);
                discarded.push(signing.public);
            }
        }
        let key = issue::new_key(&dir.join(KEY))?;
        let mut text: String = retired.iter().map(PublicKey::to_pem).collect();
        let of_discarded = |key: &PublicKey| key.to_pem().replace(TAG, DISCARDED_TAG);
        text.extend(discarded.iter().map(of_discarded));
        files::replace(&dir.join(RETIRED), text.as_bytes(), Access::Owner)?;
        files::replace(&dir.join(KEY), key.serialize_pem().as_bytes(), Access::Owner)?;
        Self::load(dir)
    }
}

/// The file that is replaced last when keys change.
pub fn token_key_file(dir: &Path) -> std::path::PathBuf {
    dir.join(KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_verify_until_they_are_discarded() {
        let dir = tempfile::tempdir().expect("a directory");
        let ids = |keys: &[PublicKey]| keys.iter().map(|key| key.id.clone()).collect::<Vec<_>>();
        let first = TokenKeys::load(dir.path()).expect("keys").signing.public.id;
        let second = TokenKeys::rotate(dir.path(), Retired::Keep).expect("keys");
        assert_ne!(second.signing.public.id, first);
        assert_eq!((ids(&second.retired), ids(&second.discarded)), (vec![first.clone()], vec![]));
        let third = TokenKeys::rotate(dir.path(), Retired::Discard).expect("keys");
        let gone = vec![first, second.signing.public.id];
        assert_eq!((ids(&third.retired), ids(&third.discarded)), (vec![], gone));
        assert_eq!(TokenKeys::load(dir.path()).expect("keys").signing.public, third.signing.public);
    }
}
