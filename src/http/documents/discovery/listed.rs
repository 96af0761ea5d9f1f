//! The groups and versions that discovery lists, in its order: those of APIServices, and those of definitions whose APIService
//! is still to be made.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::api::followers::api_services::{ALWAYS, ApiService, ApiServices};
use crate::schema::names::GroupVersion;
use crate::schema::registry::Registry;
use crate::schema::registry::order::compare_versions;
use crate::schema::resource::Origin;

/// The group that has no APIService and always comes first.
const FIRST: &str = "apiregistration.k8s.io";
/// The priorities of a definition.
const CUSTOM: (i64, i64) = (1000, 100);

/// A group with its versions; the first one is preferred. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub name: String,
    pub versions: Vec<GroupVersion>,
}

struct Entry<'a> {
    version: &'a GroupVersion,
    name: String,
    group_priority: i64,
    version_priority: i64,
}

/// The groups of the legacy documents, but for the core group: by the highest priority of an APIService, and versions by theirs
/// (`SortedByGroupAndVersion`).
pub fn groups(registry: &Registry, services: &ApiServices) -> Vec<ListedGroup> {
    if services.all.is_empty() {
        return own(registry);
    }
    // An APIService that the server keeps goes a moment later than what it stands for.
    let is_left_over = |service: &ApiService| {
        service.automanaged.as_deref() == Some(ALWAYS) && registry.version(&service.version).is_none()
    };
    let present = services.all.values().filter(|service| service.remote.is_some() || !is_left_over(service));
    let of_services = present.map(|service| Entry {
        version: &service.version,
        name: service.name.to_string(),
        group_priority: service.group_priority,
        version_priority: service.version_priority,
    });
    let custom = registry.groups().iter().flat_map(|group| &group.versions);
    let custom =
        custom.filter(|version| version.resources.first().is_some_and(|one| one.origin == Origin::Custom));
    let of_definitions = custom.filter_map(|version| {
        let name = format!("{}.{}", version.version(), version.group());
        let (group_priority, version_priority) = CUSTOM;
        let is_missing = !services.all.contains_key(name.as_str());
        is_missing.then_some(Entry { version: &version.name, name, group_priority, version_priority })
    });
    let mut by_group: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    for entry in of_services.chain(of_definitions) {
        by_group.entry(entry.version.group()).or_default().push(entry);
    }
    by_group.remove("");
    by_group.remove(FIRST);
    let mut sorted: Vec<(i64, String, ListedGroup)> =
        by_group.into_iter().map(|(name, entries)| rank(name, entries)).collect();
    sorted.sort_by(|one, other| (Reverse(one.0), &one.1).cmp(&(Reverse(other.0), &other.1)));
    let first = registry.group(FIRST).map(|group| ListedGroup {
        name: FIRST.to_owned(),
        versions: group.versions.iter().map(|version| version.name.clone()).collect(),
    });
    first.into_iter().chain(sorted.into_iter().map(|(_, _, group)| group)).collect()
}

/// The groups of a server without any APIService, which has not begun to keep them.
fn own(registry: &Registry) -> Vec<ListedGroup> {
    let named = registry.groups().iter().filter(|group| !group.name.is_empty());
    let listed = named.map(|group| ListedGroup {
        name: group.name.to_string(),
        versions: group.versions.iter().map(|version| version.name.clone()).collect(),
    });
    listed.collect()
}

/// A group with its priority, and the name of the APIService that has it.
fn rank(name: &str, mut entries: Vec<Entry<'_>>) -> (i64, String, ListedGroup) {
    entries.sort_by(|one, other| {
        let by_name = || compare_versions(one.version.version(), other.version.version());
        other.version_priority.cmp(&one.version_priority).then_with(by_name)
    });
    let highest = entries.iter().map(|entry| entry.group_priority).max().unwrap_or_default();
    let service =
        entries.iter().filter(|entry| entry.group_priority == highest).map(|entry| entry.name.clone()).min();
    let versions = entries.iter().map(|entry| entry.version.clone()).collect();
    (highest, service.unwrap_or_default(), ListedGroup { name: name.to_owned(), versions })
}
