//! Encryption at rest (`--encryption-provider-config`). Values of configured resources are sealed before they are
//! written, and opened when they are read.
//!
//! A value is sealed once, where its [`Draft`] is made, and opened by [`Opening`], a [layer](storage::Layer) in front of the store's
//! own, so that nobody behind that knows of encryption. The watch cache holds plain objects. What a stored value begins
//! with names the provider and the key, as upstream has it; what is authenticated with it is the key that upstream's etcd
//! would have for the row.
//!
//! A value that cannot be opened is replaced by the reason ([`sealed::refused`]), of which no object is made: it is
//! unreadable like any other value that cannot be decoded, and never absent.

mod backend;
mod ciphers;
pub mod configuration;
mod kms;
mod offline;
mod reload;
mod row_key;
mod transformer;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::StreamExt as _;

pub use self::backend::Opening;
use self::configuration::{Configuration, Reload};
pub use self::offline::OfflineKeys;
use self::reload::Reloading;
use self::row_key::StoredResource;
use self::transformer::{Transformer, Transformers};
use crate::codec::object::Draft;
use crate::codec::sealed;
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::schema::names::GroupResource;
use crate::storage::{self, Backend, HIDDEN_GROUP, Key, ResourceId};
use crate::tree::Text;

/// The quotas of the core group: what is used of them is counted inside the transactions of writes, by the store, which
/// has no keys. They are stored as they are, also under a wildcard.
const COUNTED: &str = "resourcequotas";

/// The key that upstream's etcd would have for an object.
pub fn stored_key(resource: &GroupResource, is_built_in: bool, namespace: &str, name: &str) -> String {
    StoredResource::new(resource, is_built_in).key(namespace, name)
}

/// The flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `--encryption-provider-config`.
    pub file: PathBuf,
    /// `--encryption-provider-config-automatic-reload`.
    pub reload: Reload,
}

/// Why a value could not be sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SealError(pub String);

/// How the values of one store are encrypted. Clones are the same. The default encrypts nothing, and costs nothing.
#[derive(Clone, Default)]
pub struct Encryption(Option<Arc<Shared>>);

struct Shared {
    /// The store as it is, without [`Opening`].
    stored: Arc<dyn Backend>,
    config: Config,
    /// The groups of built-in resources.
    built_in: HashSet<Text>,
    resources: RwLock<HashMap<ResourceId, Arc<StoredResource>>>,
    current: ArcSwap<Transformers>,
    /// Resources whose rows are to be read again when another key may be there: values of them could not be opened, or the
    /// configuration that seals them has changed.
    doubtful: Mutex<BTreeSet<ResourceId>>,
    reloading: tokio::sync::Mutex<Reloading>,
    runtime: Runtime,
}

impl Encryption {
    /// Reads the configuration for the values in `stored`.
    pub async fn start(
        config: &Config,
        stored: Arc<dyn Backend>,
        built_in: HashSet<Text>,
        runtime: Runtime,
    ) -> Result<Self, String> {
        let transformers = Transformers::new(Configuration::load(&config.file, config.reload)?, &runtime);
        // A service that is away is waited for in the background.
        transformers.probe(|_| true).await;
        runtime.metrics.encryption_in_force(&transformers.hash);
        let shared = Shared {
            stored,
            config: config.clone(),
            built_in,
            resources: RwLock::default(),
            current: ArcSwap::from_pointee(transformers),
            doubtful: Mutex::default(),
            reloading: tokio::sync::Mutex::new(Reloading::default()),
            runtime,
        };
        Ok(Self(Some(Arc::new(shared))))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Seals the value of a draft, if its resource is configured so.
    pub fn seal(&self, key: &Key, draft: Draft) -> Result<Draft, SealError> {
        let Some(shared) = &self.0 else { return Ok(draft) };
        let Some((resource, transformer)) = shared.find(key.resource) else { return Ok(draft) };
        let row = resource.key(&key.namespace, &key.name);
        let meter = shared.meter(&resource, "to_storage");
        Ok(match transformer.seal(draft.value(), row.as_bytes(), &meter).map_err(SealError)? {
            Some(value) => draft.sealed(value),
            None => draft,
        })
    }

    /// The first bytes of values that are written from now on; `None` if they are not encrypted.
    pub fn prefix(&self, resource: ResourceId) -> Option<Bytes> {
        self.0.as_ref()?.find(resource)?.1.prefix()
    }

    /// Whether the row of this revision would be stored in another way now. Asks the store, and only if its resource is
    /// configured.
    pub async fn is_stale(&self, resource: ResourceId, revision: Revision) -> Result<bool, storage::Error> {
        let Some(shared) = &self.0 else { return Ok(false) };
        let Some((_, transformer)) = shared.find(resource) else { return Ok(false) };
        let mut blocks = shared.stored.rows_of(vec![revision]).await?;
        let found = blocks.next().await.transpose()?.unwrap_or_default();
        Ok(found.first().is_some_and(|row| !transformer.writes_like(&row.value)))
    }

    /// Opens a stored value. One that cannot be opened becomes a [refused](sealed::refused) one.
    async fn open(&self, resource: ResourceId, namespace: &str, name: &str, value: Bytes) -> Bytes {
        let Some(shared) = &self.0 else { return value };
        // Without a transformer, an encrypted value is refused where it is decoded.
        let Some((stored, transformer)) = shared.find(resource) else { return value };
        let row = stored.key(namespace, name);
        let meter = shared.meter(&stored, "from_storage");
        match transformer.open(&value, row.as_bytes(), &meter).await {
            Ok(opened) => opened,
            Err(why) => {
                shared.doubtful.lock().unwrap_or_else(PoisonError::into_inner).insert(resource);
                sealed::refused(&why)
            }
        }
    }

    /// Notes which resources have these numbers.
    fn note(&self, resources: &[GroupResource], ids: &[ResourceId]) {
        let Some(shared) = &self.0 else { return };
        let mut known = shared.resources.write().unwrap_or_else(PoisonError::into_inner);
        for (resource, id) in resources.iter().zip(ids) {
            let is_counted = resource.group.is_empty() && resource.plural == COUNTED;
            if resource.group != HIDDEN_GROUP && !is_counted {
                let is_built_in = shared.built_in.contains(&resource.group);
                known.entry(*id).or_insert_with(|| Arc::new(StoredResource::new(resource, is_built_in)));
            }
        }
    }
}

impl Shared {
    fn find(&self, resource: ResourceId) -> Option<(Arc<StoredResource>, Arc<Transformer>)> {
        let resources = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        let resource = resources.get(&resource)?.clone();
        let transformer = self.current.load().of(resource.name())?.clone();
        Some((resource, transformer))
    }

    fn meter(&self, resource: &StoredResource, direction: &'static str) -> transformer::Meter<'_> {
        transformer::Meter::new(&self.runtime.metrics, resource.label().to_owned(), direction)
    }
}
