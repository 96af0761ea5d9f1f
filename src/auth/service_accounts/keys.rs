//! The keys that verify tokens: those of this server's files, and those that other servers of the store have published.

use std::path::{Path, PathBuf};

use super::live::Live;
use crate::auth::jwt::Compact;
use crate::auth::jwt::keys::{KeyError, PublicKey, SigningKey};
use crate::cache::Range;
use crate::fields;
use crate::schema::names::GroupResource;

/// Under what the store keeps the public keys of its servers: nobody serves it.
pub fn shared_keys() -> GroupResource {
    GroupResource::new("internal.rowplane.dev", "serviceaccountkeys")
}

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read key file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("key file {}: {source}", path.display())]
    Parse { path: PathBuf, source: KeyError },
}

/// Keys by which a server signs and verifies.
#[derive(Debug)]
pub struct Keys {
    signing: SigningKey,
    /// That of the signing key first, then those of files, each once.
    own: Vec<PublicKey>,
}

impl Keys {
    pub fn new(signing: SigningKey, more: Vec<PublicKey>) -> Self {
        let mut own = vec![signing.public.clone()];
        for key in more {
            if !own.contains(&key) {
                own.push(key);
            }
        }
        Self { signing, own }
    }

    pub fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// The public keys of a file.
    pub fn load(path: &Path) -> Result<Vec<PublicKey>, KeyFileError> {
        let parse = |source| KeyFileError::Parse { path: path.to_owned(), source };
        PublicKey::of_pem(&read(path)?).map_err(parse)
    }

    /// The private key of a file.
    pub fn load_signing(path: &Path) -> Result<SigningKey, KeyFileError> {
        let parse = |source| KeyFileError::Parse { path: path.to_owned(), source };
        SigningKey::of_pem(&read(path)?).map_err(parse)
    }

    /// The id of the key that has signed a token.
    pub(super) fn verify(&self, token: &Compact<'_>, live: &Live<'_>) -> Result<String, &'static str> {
        let keys = match &*token.header.kid {
            "" => self.all(live),
            id => self.find(id, live).into_iter().collect(),
        };
        if keys.is_empty() {
            return Err("invalid signature, no keys found");
        }
        let mut why = "";
        for key in &keys {
            match token.verify([key].into_iter()) {
                Ok(()) => return Ok(key.id.clone()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Whether a key that has verified a token still does.
    pub(super) fn is_known(&self, id: &str, live: &Live<'_>) -> bool {
        self.own.iter().any(|key| key.id == id) || live.get(live.resources.keys, "", id).is_some()
    }

    fn find(&self, id: &str, live: &Live<'_>) -> Option<PublicKey> {
        let own = self.own.iter().find(|key| key.id == id).cloned();
        own.or_else(|| published(&*live.get(live.resources.keys, "", id)?).filter(|key| key.id == id))
    }

    /// All keys of the store, this server's own first.
    pub(super) fn all(&self, live: &Live<'_>) -> Vec<PublicKey> {
        let mut all = self.own.clone();
        for object in live.state.objects(live.resources.keys).range(&Range::of(None)) {
            all.extend(published(object).filter(|key| !self.own.contains(key)));
        }
        all
    }
}

fn published(object: &crate::codec::object::Object) -> Option<PublicKey> {
    let content = object.to_map().ok()?;
    PublicKey::of_pem(fields::text(&content, &["key"]).as_bytes()).ok()?.into_iter().next()
}

fn read(path: &Path) -> Result<Vec<u8>, KeyFileError> {
    std::fs::read(path).map_err(|source| KeyFileError::Read { path: path.to_owned(), source })
}
