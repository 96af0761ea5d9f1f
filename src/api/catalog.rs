//! What is served, a generation at a time.
//!
//! A [`Served`] never changes. A request takes the newest one at the door and keeps it, so that it never sees half a change;
//! documents, the collector of garbage and the registration of this server follow by [`Catalog::subscribe`]. Built-in
//! resources are the same in every generation: whoever needs one of them borrows it from [`Api::resources`].
//!
//! A resource is in the cache before a generation serves it, and leaves the cache after the last generation that does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, watch};

use super::Api;
use super::definitions::Custom;
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

/// What a generation serves under a name.
pub struct Found<'a> {
    pub definition: Arc<ResourceDefinition>,
    /// As it is stored; reviews are not.
    pub resource: Option<&'a Arc<Resource>>,
}

/// What is to be known of a resource that a generation serves first.
struct Added {
    id: ResourceId,
    custom: Option<Custom>,
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
        served.fill(None, |served, definition| {
            let Storage::Table { resource, .. } = &definition.storage else { return None };
            served.resource(definition, *ids.get(resource)?, None)
        });
        served
    }

    /// The generation after this one. Resources whose definition is the same are the same.
    fn next(&self, registry: Arc<Registry>, added: &HashMap<Gvr, Added>) -> Self {
        let generation = self.generation + 1;
        let mut next = Self { generation, registry, by_plural: HashMap::new(), media_type: self.media_type };
        next.fill(Some(self), |next, definition| {
            let Added { id, custom } = added.get(&definition.gvr())?;
            next.resource(definition, *id, custom.clone())
        });
        next
    }

    fn fill(
        &mut self,
        before: Option<&Self>,
        make: impl Fn(&Self, &Arc<ResourceDefinition>) -> Option<Arc<Resource>>,
    ) {
        for definition in self.registry.definitions() {
            let known = before.and_then(|before| before.get(&definition.gvr()));
            let known = known.filter(|known| Arc::ptr_eq(&known.definition, definition)).cloned();
            let Some(resource) = known.or_else(|| make(self, definition)) else { continue };
            self.by_plural.entry(definition.plural.clone()).or_default().push(resource);
        }
    }

    /// `None` for what is not stored.
    fn resource(
        &self,
        definition: &Arc<ResourceDefinition>,
        id: ResourceId,
        custom: Option<Custom>,
    ) -> Option<Arc<Resource>> {
        let Storage::Table { version, .. } = &definition.storage else { return None };
        let kind = match &custom {
            Some(custom) => custom.version.definition.stored().kind.clone(),
            None => in_version(&self.registry, &definition.kind, version),
        };
        // What has no types has one form.
        let media_type = if definition.is_custom() { StorageMediaType::Json } else { self.media_type };
        let stored = StoredAs { kind, media_type };
        Some(Arc::new(Resource::new(&self.registry, definition.clone(), id, stored, custom)))
    }

    /// Ends watches on what the next generation serves in another form. Those on what it does not store at all end when
    /// they have been told everything.
    fn replace(&self, next: &Self) {
        let stored: HashSet<ResourceId> = next.stored().map(|resource| resource.id).collect();
        for resource in self.by_plural.values().flatten() {
            let Some(custom) = &resource.custom else { continue };
            let newer = next.get(&resource.definition.gvr()).and_then(|newer| newer.custom.as_ref());
            let stays = newer.is_some_and(|newer| Arc::ptr_eq(&newer.replaced, &custom.replaced));
            if !stays && stored.contains(&resource.id) {
                custom.replaced.cancel();
            }
        }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn get(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        let of_version =
            |resource: &&Arc<Resource>| *resource.definition.group_version() == name.group_version;
        self.by_plural.get(&name.plural)?.iter().find(of_version)
    }

    /// What a URL names, in one look-up; `None` if this generation does not serve it.
    pub fn find(&self, name: &Gvr) -> Option<Found<'_>> {
        match self.get(name) {
            Some(resource) => {
                Some(Found { definition: resource.definition.clone(), resource: Some(resource) })
            }
            None => self.registry.lookup(name).map(|definition| Found { definition, resource: None }),
        }
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
        self.serve_next(custom.into_iter().map(|definition| (definition, None)).collect()).await
    }

    /// As [`Api::serve`], of what stored definitions define.
    pub(super) async fn serve_custom(&self, custom: Vec<Custom>) -> Result<Arc<Served>, Error> {
        let with_definition = |custom: Custom| (custom.version.resource.clone(), Some(custom));
        self.serve_next(custom.into_iter().map(with_definition).collect()).await
    }

    async fn serve_next(
        &self,
        custom: Vec<(Arc<ResourceDefinition>, Option<Custom>)>,
    ) -> Result<Arc<Served>, Error> {
        let _turn = self.catalog.turn.lock().await;
        let before = self.catalog.served();
        let (definitions, customs): (Vec<_>, Vec<_>) = custom.into_iter().unzip();
        let ids = self.ids_of(&before, &definitions).await?;
        let names = definitions.iter().map(|definition| definition.gvr());
        let added = ids.iter().zip(customs).map(|(id, custom)| Added { id: *id, custom });
        let added = names.zip(added).collect();
        let built_in = self.resources.registry.definitions().cloned();
        let registry = Arc::new(Registry::of(built_in.chain(definitions)));
        let next = Arc::new(before.next(registry, &added));
        let needed: HashSet<ResourceId> = next.stored().map(|resource| resource.id).collect();
        self.cache.add_all(&needed.iter().copied().collect::<Vec<_>>()).await?;
        self.catalog.publish(next.clone());
        before.replace(&next);
        // Also what was added for a generation that never came to be.
        let own = [self.port_claims, self.definitions.names()];
        let held: Vec<ResourceId> = self.cache.any().resources().collect();
        for id in held.into_iter().filter(|id| !needed.contains(id) && !own.contains(id)) {
            self.cache.remove(id).await?;
        }
        Ok(next)
    }

    /// The store's numbers of these resources; it is asked for those that were not served before.
    async fn ids_of(
        &self,
        before: &Served,
        definitions: &[Arc<ResourceDefinition>],
    ) -> Result<Vec<ResourceId>, Error> {
        let stored = definitions.iter().map(|definition| match &definition.storage {
            Storage::Table { resource, .. } => resource.clone(),
            Storage::Virtual => definition.group_resource(),
        });
        let known =
            |definition: &Arc<ResourceDefinition>| before.get(&definition.gvr()).map(|known| known.id);
        let known: Vec<Option<ResourceId>> = definitions.iter().map(known).collect();
        let mut names: Vec<GroupResource> =
            stored.clone().zip(&known).filter(|(_, known)| known.is_none()).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        let ids = match names.is_empty() {
            true => Vec::new(),
            false => self.cache.backend().resource_ids(&names).await?,
        };
        let new: HashMap<GroupResource, ResourceId> = names.into_iter().zip(ids).collect();
        let id = |(name, known): (GroupResource, Option<ResourceId>)| {
            known
                .or_else(|| new.get(&name).copied())
                .ok_or_else(|| Error::Internal(format!("the store has no number for {name}")))
        };
        stored.zip(known).map(id).collect()
    }
}
