//! `Registry`: the served resources, in the order in which discovery prints them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::names::{GroupResource, GroupVersion, Gvk, Gvr};
use super::resource::{Origin, ResourceDefinition, Storage};
use crate::tree::Text;

pub mod order;

use order::compare_versions;

/// An immutable set of definitions. When a definition is added or removed (for a CRD, say), a new registry is built
/// from the whole list and swapped in, so that readers, and the documents made from it, never see half a change.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// In discovery order, including the core group.
    groups: Vec<Group>,
    /// The index in `groups`, by name.
    by_name: HashMap<Text, usize>,
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
        let mut groups: Vec<Group> = Vec::new();
        let mut by_storage: HashMap<GroupResource, Arc<ResourceDefinition>> = HashMap::new();
        for definition in definitions {
            if group_version(&mut groups, &definition).add(&definition) {
                keep_stored_version(&mut by_storage, definition);
            }
        }
        for group in &mut groups {
            group.versions.sort_by(|a, b| compare_versions(a.version(), b.version()));
        }
        groups.sort_by_cached_key(|group| (Reverse(group.priority), group.name.clone()));
        let by_name = groups.iter().enumerate().map(|(i, group)| (group.name.clone(), i)).collect();
        Self { groups, by_name, by_storage }
    }

    /// What documents tell of.
    pub fn discoverable(self: &Arc<Self>) -> Arc<Self> {
        if self.definitions().all(|definition| definition.is_discoverable) {
            return self.clone();
        }
        let told = self.definitions().filter(|definition| definition.is_discoverable);
        Arc::new(Self::of(told.cloned()))
    }

    /// All groups in discovery order. The core group is named "".
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn group(&self, name: &str) -> Option<&Group> {
        self.by_name.get(name).map(|&i| &self.groups[i])
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

fn group_version<'a>(groups: &'a mut Vec<Group>, definition: &ResourceDefinition) -> &'a mut ServedVersion {
    let at = groups.iter().position(|g| g.name == *definition.group()).unwrap_or_else(|| {
        let (origin, priority) = (definition.origin, definition.group_priority);
        groups.push(Group { name: definition.group().clone(), origin, priority, versions: Vec::new() });
        groups.len() - 1
    });
    let versions = &mut groups[at].versions;
    let at = versions.iter().position(|v| v.name == *definition.group_version()).unwrap_or_else(|| {
        versions.push(ServedVersion { name: definition.group_version().clone(), resources: Vec::new() });
        versions.len() - 1
    });
    &mut versions[at]
}

fn keep_stored_version(
    by_storage: &mut HashMap<GroupResource, Arc<ResourceDefinition>>,
    definition: Arc<ResourceDefinition>,
) {
    let Storage::Table { resource, version } = &definition.storage else { return };
    if definition.group_version() == version {
        by_storage.insert(resource.clone(), definition);
    } else {
        by_storage.entry(resource.clone()).or_insert_with(|| definition.clone());
    }
}

#[cfg(test)]
mod tests;
