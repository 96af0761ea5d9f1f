//! One generation of what is served.

use std::collections::HashMap;
use std::sync::Arc;

use imbl::OrdMap;

use crate::codec::at_rest::StorageMediaType;
use crate::resource::custom::Custom;
use crate::resource::{ConcernSet, Resource, StoredAs, in_version};
use crate::schema::names::{GroupResource, Gvk, Gvr};
use crate::schema::registry::Registry;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::storage::ResourceId;
use crate::tree::Text;

/// All served resources, by their place in a URL.
#[derive(Clone)]
pub struct Served {
    /// Grows by one with every change.
    pub generation: u64,
    registry: Arc<Registry>,
    /// Every version of every group with this plural: rarely more than one, and found without making a key. The same in
    /// every generation.
    built_in: Arc<HashMap<Text, Vec<Arc<Resource>>>>,
    /// The resources that are served and never stored: reviews, and bindings without a pod in their path. The same in
    /// every generation.
    unstored: Arc<Vec<Arc<Resource>>>,
    /// The resources that are served beside the built-in ones, by plural as well. Generations share what is the same.
    besides: imbl::HashMap<Text, Vec<Arc<Resource>>>,
    /// Every stored resource once, in the version it is stored in where that is served.
    stored: OrdMap<ResourceId, Arc<Resource>>,
    /// The form of new rows.
    media_type: StorageMediaType,
    concerns: ConcernsOf,
}

/// The function that says which concerns the writes of a resource have.
pub type ConcernsOf = fn(&ResourceDefinition) -> ConcernSet;

/// The definitions that the next generation takes away and adds.
#[derive(Default)]
pub(crate) struct Changes {
    pub removed: Vec<Arc<ResourceDefinition>>,
    pub added: Vec<Added>,
}

/// A definition that a generation serves first.
pub(crate) struct Added {
    pub definition: Arc<ResourceDefinition>,
    pub custom: Option<Custom>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

impl Served {
    /// The first generation. `ids` tells the store's number of each stored resource.
    pub fn new(
        registry: Arc<Registry>,
        ids: &HashMap<GroupResource, ResourceId>,
        media_type: StorageMediaType,
        concerns: ConcernsOf,
    ) -> Self {
        let mut built_in: HashMap<Text, Vec<Arc<Resource>>> = HashMap::new();
        let mut unstored = Vec::new();
        for definition in registry.definitions() {
            let make = |id| make(&registry, (media_type, concerns), definition, id, None);
            match &definition.storage {
                Storage::Virtual => unstored.push(make(ResourceId::NONE)),
                Storage::Table { resource, .. } => {
                    let Some(id) = ids.get(resource) else { continue };
                    built_in.entry(definition.plural.clone()).or_default().push(make(*id));
                }
            }
        }
        let mut served = Self {
            generation: 1,
            registry,
            built_in: Arc::new(built_in),
            unstored: Arc::new(unstored),
            besides: imbl::HashMap::new(),
            stored: OrdMap::new(),
            media_type,
            concerns,
        };
        for (name, _) in served.registry.clone().stored() {
            if let Some(id) = ids.get(name) {
                served.represent(name, *id);
            }
        }
        served
    }

    /// The generation after this one; `ids` are the store's numbers of what is added. Resources whose definition is the same
    /// are the same. The work depends on what changes, however much is served.
    pub(crate) fn next(&self, changes: &Changes, ids: &[ResourceId]) -> Self {
        let removed = &changes.removed;
        let added = changes.added.iter().map(|added| added.definition.clone());
        let mut next = Self {
            generation: self.generation + 1,
            registry: Arc::new(self.registry.with_changes(removed, added)),
            ..self.clone()
        };
        let mut touched: Vec<(GroupResource, ResourceId)> = Vec::new();
        let mut touch = |definition: &ResourceDefinition, id| {
            if let Storage::Table { resource, .. } = &definition.storage {
                touched.push((resource.clone(), id));
            }
        };
        for definition in removed {
            if let Some(resource) = next.take(definition) {
                touch(definition, resource.id);
            }
        }
        for (Added { definition, custom }, id) in changes.added.iter().zip(ids) {
            next.add(definition, custom.clone(), *id);
            touch(definition, *id);
        }
        for (name, id) in touched {
            next.represent(&name, id);
        }
        next
    }

    fn add(&mut self, definition: &Arc<ResourceDefinition>, custom: Option<Custom>, id: ResourceId) {
        let is_served =
            self.registry.lookup(&definition.gvr()).is_some_and(|found| Arc::ptr_eq(&found, definition));
        if !is_served {
            return;
        }
        let resource = make(&self.registry, (self.media_type, self.concerns), definition, id, custom);
        self.besides.entry(definition.plural.clone()).or_default().push(resource);
    }

    /// Takes out the resource of this very definition.
    fn take(&mut self, definition: &Arc<ResourceDefinition>) -> Option<Arc<Resource>> {
        let resources = self.besides.get_mut(&definition.plural)?;
        let at = resources.iter().position(|resource| Arc::ptr_eq(&resource.definition, definition))?;
        let taken = resources.swap_remove(at);
        if resources.is_empty() {
            self.besides.remove(&definition.plural);
        }
        Some(taken)
    }

    /// Notes in which version a stored resource is to be found.
    fn represent(&mut self, name: &GroupResource, id: ResourceId) {
        let definition = self.registry.for_storage(name);
        match definition.and_then(|definition| self.get(&definition.gvr()).cloned()) {
            Some(resource) => self.stored.insert(id, resource),
            None => self.stored.remove(&id),
        };
    }

    /// Ends watches on resources that the next generation serves in another form. A watch on a resource that it does not
    /// store at all ends when all events have been sent.
    pub(crate) fn replace(&self, next: &Self, removed: &[Arc<ResourceDefinition>]) {
        for definition in removed {
            let Some(resource) = self.get(&definition.gvr()) else { continue };
            let Some(custom) = &resource.custom else { continue };
            let newer = next.get(&definition.gvr()).and_then(|newer| newer.custom.as_ref());
            let stays = newer.is_some_and(|newer| Arc::ptr_eq(&newer.replaced, &custom.replaced));
            if !stays && next.stores(resource.id) {
                custom.replaced.cancel();
            }
        }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// A stored resource.
    pub fn get(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        let of_version =
            |resource: &&Arc<Resource>| *resource.definition.group_version() == name.group_version;
        let built_in = self.built_in.get(&name.plural).and_then(|found| found.iter().find(of_version));
        built_in.or_else(|| self.besides.get(&name.plural)?.iter().find(of_version))
    }

    /// The store's numbers of resources; `None` for those that are not served.
    pub fn ids<const N: usize>(&self, names: &[Gvr; N]) -> [Option<ResourceId>; N] {
        names.each_ref().map(|name| Some(self.get(name)?.id))
    }

    /// The resource that a URL names, stored or not; `None` if this generation does not serve it.
    pub fn find(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        let is_named = |resource: &&Arc<Resource>| {
            let definition = &resource.definition;
            definition.plural == name.plural && *definition.group_version() == name.group_version
        };
        self.get(name).or_else(|| self.unstored.iter().find(is_named))
    }

    /// All versions of the resources of this name, in any group.
    pub fn of_plural(&self, plural: &str) -> impl Iterator<Item = &Arc<Resource>> {
        let (built_in, besides) = (self.built_in.get(plural), self.besides.get(plural));
        built_in.into_iter().chain(besides).flatten()
    }

    /// A version of a kind, by what an `ownerReference` says.
    pub fn by_kind(&self, gvk: &Gvk) -> Option<&Arc<Resource>> {
        self.get(&self.registry.by_kind(gvk)?.gvr())
    }

    /// Every stored resource once, in the version it is stored in where that is served. Sorted by their numbers.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.stored.values()
    }

    /// A stored resource by the store's number of it.
    pub fn by_id(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        self.stored.get(&id)
    }

    /// A stored resource by its name in the store.
    pub fn by_storage(&self, name: &GroupResource) -> Option<&Arc<Resource>> {
        self.get(&self.registry.for_storage(name)?.gvr())
    }

    pub fn stores(&self, id: ResourceId) -> bool {
        self.stored.contains_key(&id)
    }

    /// How many resources are stored.
    pub fn stored_count(&self) -> usize {
        self.stored.len()
    }

    /// Every version and group in which the rows of a resource are served.
    pub fn versions_of_row(&self, resource: &Resource) -> impl Iterator<Item = &Arc<Resource>> {
        let plural = &resource.definition.plural;
        let (built_in, besides) = (self.built_in.get(plural), self.besides.get(plural));
        let id = resource.id;
        built_in.into_iter().chain(besides).flatten().filter(move |other| other.id == id)
    }

    /// All versions of what is served besides the built-in resources.
    pub(crate) fn besides(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.besides.values().flatten()
    }

    /// The versions in which a definition's resource is served.
    pub(crate) fn versions_of<'a>(
        &'a self,
        name: &'a GroupResource,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        let named = self.besides.get(&name.plural).into_iter().flatten();
        named.filter(|resource| *resource.definition.group() == name.group && resource.custom.is_some())
    }
}

fn make(
    registry: &Registry,
    (media_type, concerns): (StorageMediaType, ConcernsOf),
    definition: &Arc<ResourceDefinition>,
    id: ResourceId,
    custom: Option<Custom>,
) -> Arc<Resource> {
    let kind = match (&custom, &definition.storage) {
        (Some(custom), _) => custom.version.definition.stored().kind.clone(),
        (None, Storage::Table { version, .. }) => in_version(registry, &definition.kind, version),
        (None, Storage::Virtual) => definition.kind.clone(),
    };
    // What has no types has one form.
    let media_type = if definition.is_custom() { StorageMediaType::Json } else { media_type };
    let stored = StoredAs { kind, media_type, concerns: concerns(definition) };
    Arc::new(Resource::new(registry, definition.clone(), id, stored, custom))
}
