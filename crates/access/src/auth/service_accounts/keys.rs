//! The keys that verify tokens: those of this server's files, and those that other servers of the store have published.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::external::Signer;
use super::live::Live;
use crate::auth::jwt::Compact;
use crate::auth::jwt::keys::{KeyError, PublicKey, SigningKey};
use crate::cache::Range;
use crate::fields;
use crate::storage::{Expect, Key, Requirement};

/// The reason for which a token with an unknown key is refused.
pub(super) const NO_KEYS: &str = "invalid signature, no keys found";

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read key file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("key file {}: {source}", path.display())]
    Parse { path: PathBuf, source: KeyError },
}

/// Keys by which a server signs and verifies. They can be replaced.
#[derive(Debug)]
pub struct Keys {
    own: ArcSwap<Own>,
    /// The external signer that has all keys instead of this server and its store.
    external: Option<Arc<Signer>>,
}

/// This server's keys at one moment.
#[derive(Debug, Default)]
struct Own {
    /// `None` where an external signer signs.
    signing: Option<Arc<SigningKey>>,
    /// The public key of the signing key first, then those of files, each once.
    verifying: Vec<PublicKey>,
    /// The ids of keys that verify no more, though other servers may have published them.
    discarded: Vec<String>,
}

impl Own {
    fn new(signing: SigningKey, more: Vec<PublicKey>, discarded: &[PublicKey]) -> Self {
        let mut verifying = vec![signing.public.clone()];
        for key in more {
            if !verifying.contains(&key) {
                verifying.push(key);
            }
        }
        let discarded = discarded.iter().map(|key| key.id.clone()).collect();
        Self { signing: Some(Arc::new(signing)), verifying, discarded }
    }
}

impl Keys {
    pub fn new(signing: SigningKey, more: Vec<PublicKey>, discarded: &[PublicKey]) -> Self {
        Self { own: ArcSwap::from_pointee(Own::new(signing, more, discarded)), external: None }
    }

    /// The keys of an external signer.
    pub fn external(signer: Arc<Signer>) -> Self {
        Self { own: ArcSwap::default(), external: Some(signer) }
    }

    /// The external signer, if there is one.
    pub fn signer(&self) -> Option<&Arc<Signer>> {
        self.external.as_ref()
    }

    /// Signs and verifies with these from now on.
    pub fn replace(&self, signing: SigningKey, more: Vec<PublicKey>, discarded: &[PublicKey]) {
        self.own.store(Arc::new(Own::new(signing, more, discarded)));
    }

    /// The key of this server; `None` where an external signer signs.
    pub fn signing(&self) -> Option<Arc<SigningKey>> {
        self.own.load().signing.clone()
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
        let keys = match (&self.external, &*token.header.kid) {
            (Some(signer), id) => signer.find(id),
            (None, "") => self.all(live),
            (None, id) => self.find(id, live).into_iter().collect(),
        };
        if keys.is_empty() {
            return Err(NO_KEYS);
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
        if let Some(signer) = &self.external {
            return signer.is_known(id);
        }
        let own = self.own.load();
        let is_published = || live.get(live.resources.keys, "", id).is_some();
        own.verifying.iter().any(|key| key.id == id)
            || is_published() && !own.discarded.iter().any(|discarded| discarded == id)
    }

    /// The row that publishes a key which only another server has.
    pub(super) fn row(&self, id: &str, live: &Live<'_>) -> Option<Requirement> {
        if self.external.is_some() || self.own.load().verifying.iter().any(|key| key.id == id) {
            return None;
        }
        let resource = live.resources.keys;
        let expect = live.get(resource, "", id).map_or(Expect::Absent, |row| Expect::At(row.revision()));
        Some(Requirement { key: Key::new(resource, "", id), expect })
    }

    fn find(&self, id: &str, live: &Live<'_>) -> Option<PublicKey> {
        let own = self.own.load();
        if let Some(key) = own.verifying.iter().find(|key| key.id == id) {
            return Some(key.clone());
        }
        let key = published(&*live.get(live.resources.keys, "", id)?)?;
        (key.id == id && !own.discarded.contains(&key.id)).then_some(key)
    }

    /// The keys that documents show.
    pub(super) fn shown(&self, live: &Live<'_>) -> Vec<PublicKey> {
        self.external.as_ref().map_or_else(|| self.all(live), |signer| signer.shown())
    }

    /// All keys of the store, this server's own first.
    fn all(&self, live: &Live<'_>) -> Vec<PublicKey> {
        let own = self.own.load();
        let mut all = own.verifying.clone();
        for object in live.state.objects(live.resources.keys).range(&Range::of(None)) {
            let more = published(object)
                .filter(|key| !own.verifying.contains(key) && !own.discarded.contains(&key.id));
            all.extend(more);
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
