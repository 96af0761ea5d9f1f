//! `Registry`: the served resources, in the order in which discovery prints them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::HashMap;

use super::names::{GroupResource, GroupVersion, Gvk, Gvr};
use super::resource::{Origin, ResourceDefinition, Storage};
use crate::tree::Text;

pub mod order;

use order::compare_versions;

/// An immutable set of definitions. When a definition is added or removed (for a CRD, say), the next registry is made
/// ([`Registry::with_changes`]) and swapped in, so that readers, and the documents made from it, never see half a change.
/// Registries share the groups in which they are the same.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// In discovery order, including the core group.
    groups: Vec<Arc<Group>>,
    by_name: HashMap<Text, Arc<Group>>,
    by_storage: HashMap<GroupResource, Arc<ResourceDefinition>>,
}

#[derive(Clone, Debug)]
pub struct Group {
    /// Empty for the core group.
    pub name: Text,
    pub origin: Origin,
    priority: u32,
    /// In discovery order: the first one is preferred. Never empty.
    pub versions: Vec<ServedVersion>,
}

/// A version of a group, with the resources served in it.
#[derive(Clone, Debug)]
pub struct ServedVersion {
    pub name: GroupVersion,
    /// Sorted by plural. Never empty.
    pub resources: Vec<Arc<ResourceDefinition>>,
}

impl Registry {
    pub fn new(definitions: Vec<ResourceDefinition>) -> Self {
        Self::of(definitions.into_iter().map(Arc::new))
    }

    /// Builds a registry. Of two definitions with the same group, version and plural, the first one counts.
    pub fn of(definitions: impl IntoIterator<Item = Arc<ResourceDefinition>>) -> Self {
        Self::default().with_changes([], definitions)
    }

    /// The registry without some definitions and then with others; what is there already under a name stays. The work
    /// depends on the groups that are touched, however many others there are.
    pub fn with_changes<'a>(
        &self,
        removed: impl IntoIterator<Item = &'a Arc<ResourceDefinition>>,
        added: impl IntoIterator<Item = Arc<ResourceDefinition>>,
    ) -> Self {
        let mut next = self.clone();
        let mut touched: BTreeMap<Text, Option<Group>> = BTreeMap::new();
        let mut lost: Vec<GroupResource> = Vec::new();
        let group = |name: &Text| self.group(name).cloned();
        for definition in removed {
            let name = definition.group();
            if let Some(group) = touched.entry(name.clone()).or_insert_with(|| group(name)) {
                group.remove(definition);
            }
            if let Storage::Table { resource, .. } = &definition.storage
                && next.by_storage.get(resource).is_some_and(|kept| Arc::ptr_eq(kept, definition))
            {
                next.by_storage.remove(resource);
                lost.push(resource.clone());
            }
        }
        for definition in added {
            let name = definition.group();
            let group = touched.entry(name.clone()).or_insert_with(|| group(name));
            if group.get_or_insert_with(|| Group::of(&definition)).add(&definition) {
                next.keep_stored_version(definition);
            }
        }
        for (name, group) in touched {
            next.put(&name, group.filter(|group| !group.versions.is_empty()));
        }
        for resource in lost {
            next.find_stored_version(&resource);
        }
        next
    }

    /// Puts a group into its place, or removes it.
    fn put(&mut self, name: &Text, group: Option<Group>) {
        if let Some(known) = self.by_name.remove(name)
            && let Ok(at) = self.groups.binary_search_by(|other| other.order().cmp(&known.order()))
        {
            self.groups.remove(at);
        }
        let Some(group) = group.map(Arc::new) else { return };
        let at = self.groups.partition_point(|other| other.order() < group.order());
        self.groups.insert(at, group.clone());
        self.by_name.insert(name.clone(), group);
    }

    fn keep_stored_version(&mut self, definition: Arc<ResourceDefinition>) {
        let Storage::Table { resource, version } = &definition.storage else { return };
        if definition.group_version() == version || !self.by_storage.contains_key(resource) {
            self.by_storage.insert(resource.clone(), definition);
        }
    }

    /// Looks for other versions of a resource that has lost the one that represented it.
    fn find_stored_version(&mut self, resource: &GroupResource) {
        if self.by_storage.contains_key(resource) {
            return;
        }
        let Some(group) = self.by_name.get(&resource.group).cloned() else { return };
        for definition in group.versions.iter().flat_map(|version| &version.resources) {
            if matches!(&definition.storage, Storage::Table { resource: stored, .. } if stored == resource) {
                self.keep_stored_version(definition.clone());
            }
        }
    }

    /// The registry of the definitions that discovery and OpenAPI documents tell of.
    pub fn discoverable(self: &Arc<Self>) -> Arc<Self> {
        if self.definitions().all(|definition| definition.is_discoverable) {
            return self.clone();
        }
        let told = self.definitions().filter(|definition| definition.is_discoverable);
        Arc::new(Self::of(told.cloned()))
    }

    /// All groups in discovery order. The core group is named "".
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.by_name.get(name).map(|group| &**group)
    }

    pub fn version(&self, name: &GroupVersion) -> Option<&ServedVersion> {
        self.group(name.group())?.versions.iter().find(|version| version.name == *name)
    }

    pub fn lookup(&self, name: &Gvr) -> Option<Arc<ResourceDefinition>> {
        let resources = &self.version(&name.group_version)?.resources;
        let at = resources.binary_search_by(|d| d.plural.cmp(&name.plural)).ok()?;
        Some(resources[at].clone())
    }

    /// The definition of a kind of single objects; kinds of lists are not found.
    pub fn by_kind(&self, gvk: &Gvk) -> Option<Arc<ResourceDefinition>> {
        let resources = &self.version(&gvk.group_version)?.resources;
        resources.iter().find(|d| *d.kind_name() == gvk.kind).cloned()
    }

    /// The definition whose version is the storage version of a resource; if that version is not served, any other
    /// version of the resource.
    pub fn for_storage(&self, resource: &GroupResource) -> Option<Arc<ResourceDefinition>> {
        self.by_storage.get(resource).cloned()
    }

    /// All stored resources without duplicates, in no particular order.
    pub fn stored(&self) -> impl Iterator<Item = (&GroupResource, &Arc<ResourceDefinition>)> {
        self.by_storage.iter()
    }

    pub fn definitions(&self) -> impl Iterator<Item = &Arc<ResourceDefinition>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }
}

impl Group {
    /// A group without versions, with the origin and the place of its first definition.
    fn of(definition: &ResourceDefinition) -> Self {
        let (origin, priority) = (definition.origin, definition.group_priority);
        Self { name: definition.group().clone(), origin, priority, versions: Vec::new() }
    }

    /// The priority among groups; the highest one comes first.
    pub fn priority(&self) -> u32 {
        self.priority
    }

    /// Whether the group is the server's own, and clients are served some of it.
    pub fn is_built_in(&self) -> bool {
        let mut definitions = self.versions.iter().flat_map(|version| &version.resources);
        self.origin == Origin::BuiltIn && definitions.any(|definition| definition.is_discoverable)
    }

    /// The sort key of groups: descending priority, then the name.
    fn order(&self) -> (Reverse<u32>, &Text) {
        (Reverse(self.priority), &self.name)
    }

    /// Returns whether nothing was there under the definition's name.
    fn add(&mut self, definition: &Arc<ResourceDefinition>) -> bool {
        let name = definition.group_version();
        if let Some(version) = self.versions.iter_mut().find(|version| version.name == *name) {
            return version.add(definition);
        }
        let resources = vec![definition.clone()];
        self.versions.push(ServedVersion { name: name.clone(), resources });
        self.versions.sort_by(|a, b| compare_versions(a.version(), b.version()));
        true
    }

    fn remove(&mut self, definition: &Arc<ResourceDefinition>) {
        for version in &mut self.versions {
            version.resources.retain(|found| !Arc::ptr_eq(found, definition));
        }
        self.versions.retain(|version| !version.resources.is_empty());
    }
}

impl ServedVersion {
    /// Empty for the core group.
    pub fn group(&self) -> &Text {
        self.name.group()
    }

    pub fn version(&self) -> &str {
        self.name.version()
    }

    /// The URL path without leading slash: `api/v1`, `apis/apps/v1`.
    pub fn path(&self) -> String {
        let root = if self.group().is_empty() { "api" } else { "apis" };
        format!("{root}/{}", self.name)
    }

    fn add(&mut self, definition: &Arc<ResourceDefinition>) -> bool {
        match self.resources.binary_search_by(|d| d.plural.cmp(&definition.plural)) {
            Ok(_) => false,
            Err(at) => {
                self.resources.insert(at, definition.clone());
                true
            }
        }
    }
}
