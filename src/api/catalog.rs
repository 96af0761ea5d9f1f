//! What is served, a generation at a time.
//!
//! A [`Served`] never changes. A request takes the newest one at the door and keeps it, so that it never sees half a change;
//! documents, the collector of garbage and the registration of this server follow by [`Catalog::subscribe`]. Built-in
//! resources are the same in every generation: whoever needs one of them borrows it from [`Api::resources`].
//!
//! A resource is in the cache before a generation serves it, and leaves the cache after the last generation that does.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, watch};

use super::Api;
use super::error::Error;
use super::resource::{Resource, StoredAs, in_version};
use crate::codec::at_rest::StorageMediaType;
use crate::schema::names::{GroupResource, Gvk, Gvr};
use crate::schema::registry::Registry;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::storage::ResourceId;
use crate::tree::Text;

/// All served resources, by their place in a URL.
pub struct Served {
    /// Grows by one with every change.
    pub generation: u64,
    registry: Arc<Registry>,
    /// Every version of every group with this plural: rarely more than one, and found without making a key.
    by_plural: HashMap<Text, Vec<Arc<Resource>>>,
    /// The form of new rows.
    media_type: StorageMediaType,
}

/// The generations of what is served.
pub struct Catalog {
    newest: ArcSwap<Served>,
    published: watch::Sender<Arc<Served>>,
    /// Held by whoever makes the next generation.
    turn: Mutex<()>,
}

impl Served {
    /// The first generation. `ids` tells the store's number of each stored resource.
    pub fn new(
        registry: Arc<Registry>,
        ids: &HashMap<GroupResource, ResourceId>,
        media_type: StorageMediaType,
    ) -> Self {
        let mut served = Self { generation: 1, registry, by_plural: HashMap::new(), media_type };
        served.fill(ids, None);
        served
    }

    /// The generation after this one. Resources whose definition is the same are the same.
    fn next(&self, registry: Arc<Registry>, ids: &HashMap<GroupResource, ResourceId>) -> Self {
        let generation = self.generation + 1;
        let mut next = Self { generation, registry, by_plural: HashMap::new(), media_type: self.media_type };
        next.fill(ids, Some(self));
        next
    }

    fn fill(&mut self, ids: &HashMap<GroupResource, ResourceId>, before: Option<&Self>) {
        for definition in self.registry.definitions() {
            let known = before.and_then(|before| before.get(&definition.gvr()));
            let known = known.filter(|known| Arc::ptr_eq(&known.definition, definition)).cloned();
            let Some(resource) = known.or_else(|| self.resource(definition, ids)) else { continue };
            self.by_plural.entry(definition.plural.clone()).or_default().push(resource);
        }
    }

    /// `None` for what is not stored.
    fn resource(
        &self,
        definition: &Arc<ResourceDefinition>,
        ids: &HashMap<GroupResource, ResourceId>,
    ) -> Option<Arc<Resource>> {
        let Storage::Table { resource, version } = &definition.storage else { return None };
        let kind = in_version(&self.registry, &definition.kind, version);
        let stored = StoredAs { kind, media_type: self.media_type };
        let id = *ids.get(resource)?;
        Some(Arc::new(Resource::new(&self.registry, definition.clone(), id, stored)))
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn get(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        let of_version =
            |resource: &&Arc<Resource>| *resource.definition.group_version() == name.group_version;
        self.by_plural.get(&name.plural)?.iter().find(of_version)
    }

    /// A version of a kind, by what an `ownerReference` says.
    pub fn by_kind(&self, gvk: &Gvk) -> Option<&Arc<Resource>> {
        self.get(&self.registry.by_kind(gvk)?.gvr())
    }

    /// Every stored resource once, in the version it is stored in where that is served.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.registry.stored().filter_map(|(_, definition)| self.get(&definition.gvr()))
    }
}

impl Catalog {
    /// Serves what is built in.
    pub fn new(built_in: Arc<Served>) -> Self {
        Self {
            newest: ArcSwap::new(built_in.clone()),
            published: watch::Sender::new(built_in),
            turn: Mutex::new(()),
        }
    }

    /// The newest generation.
    pub fn served(&self) -> Arc<Served> {
        self.newest.load_full()
    }

    /// Tells of every generation that follows; the newest one is there at once.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Served>> {
        self.published.subscribe()
    }

    fn publish(&self, served: Arc<Served>) {
        self.newest.store(served.clone());
        self.published.send_replace(served);
    }
}

impl Api {
    /// Makes the next generation: from now on these resources are served besides the built-in ones, and no others. A
    /// resource whose definitions are the very same as before stays as it is; one of which any version changes needs new
    /// definitions of all its versions. Watches on resources that are not served any more end; what is stored of them stays.
    pub async fn serve(&self, custom: Vec<Arc<ResourceDefinition>>) -> Result<Arc<Served>, Error> {
        let _turn = self.catalog.turn.lock().await;
        let ids = self.ids_of(&custom).await?;
        let built_in = self.resources.registry.definitions().cloned();
        let registry = Arc::new(Registry::of(built_in.chain(custom)));
        let next = Arc::new(self.catalog.served().next(registry, &ids));
        for resource in next.stored() {
            self.cache.add(resource.id).await?;
        }
        self.catalog.publish(next.clone());
        // Also what was added for a generation that never came to be.
        let needed =
            |id: ResourceId| id == self.port_claims || next.stored().any(|resource| resource.id == id);
        let held: Vec<ResourceId> = self.cache.any().resources().collect();
        for id in held.into_iter().filter(|id| !needed(*id)) {
            self.cache.remove(id).await?;
        }
        Ok(next)
    }

    async fn ids_of(
        &self,
        definitions: &[Arc<ResourceDefinition>],
    ) -> Result<HashMap<GroupResource, ResourceId>, Error> {
        let stored = definitions.iter().filter_map(|definition| match &definition.storage {
            Storage::Table { resource, .. } => Some(resource.clone()),
            Storage::Virtual => None,
        });
        let mut names: Vec<GroupResource> = stored.collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let ids = self.cache.backend().resource_ids(&names).await?;
        Ok(names.into_iter().zip(ids).collect())
    }
}
