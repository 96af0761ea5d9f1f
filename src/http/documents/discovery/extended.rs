//! Aggregated discovery with the resources of extension servers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::aggregated;
use crate::api::followers::api_services::discovered::Discovered;
use crate::api::followers::api_services::{ApiService, ApiServices};
use crate::schema::registry::Registry;
use crate::schema::registry::order::compare_versions;
use crate::tree::{Value, json};

/// A version, with the priority that an APIService gives it.
struct Version {
    priority: Option<i64>,
    name: String,
    entry: Value,
}

/// The `APIGroupDiscoveryList` of groups that are shown: this server's own, and those of remote APIServices, which take over
/// single versions.
pub fn group_list(
    registry: &Registry,
    services: &ApiServices,
    discovered: &Discovered,
    shows: fn(&str) -> bool,
) -> Value {
    let mut groups: BTreeMap<&str, (i64, Vec<Version>)> = BTreeMap::new();
    for group in registry.groups().iter().filter(|group| shows(&group.name)) {
        let own = group.versions.iter().filter(|version| services.remote_of(&version.name).is_none());
        let versions = own.map(|version| Version {
            priority: None,
            name: version.version().to_owned(),
            entry: aggregated::entry(group.origin, version),
        });
        groups.insert(&group.name, (i64::from(group.priority()), versions.collect()));
    }
    for service in services.remote().filter(|service| shows(service.version.group())) {
        let (priority, versions) = groups.entry(service.version.group()).or_insert((0, Vec::new()));
        *priority = (*priority).max(service.group_priority);
        versions.push(remote(service, discovered));
    }
    let mut sorted: Vec<_> = groups.into_iter().filter(|(_, (_, versions))| !versions.is_empty()).collect();
    sorted.sort_by_key(|(name, (priority, _))| (Reverse(*priority), *name));
    let items = sorted.into_iter().map(|(name, (_, mut versions))| {
        versions.sort_by(|one, other| {
            let by_name = || compare_versions(&one.name, &other.name);
            other.rank().cmp(&one.rank()).then_with(by_name)
        });
        let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
        let versions: Vec<Value> = versions.into_iter().map(|version| version.entry).collect();
        json!({"metadata": metadata, "versions": versions})
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

impl Version {
    /// Versions of this server's own have the priority of definitions; among each other their names decide.
    fn rank(&self) -> i64 {
        self.priority.unwrap_or(100)
    }
}

fn remote(service: &Arc<ApiService>, discovered: &Discovered) -> Version {
    let name = service.version.version().to_owned();
    let mut entry = json!({"version": name.as_str()});
    let found = discovered.versions.get(&service.version);
    if let Some(found) = found.filter(|found| !found.resources.is_empty()) {
        entry["resources"] = found.resources.clone().into();
    }
    let is_current = found.is_some_and(|found| found.is_current);
    entry["freshness"] = json!(if is_current { "Current" } else { "Stale" });
    Version { priority: Some(service.version_priority), name, entry }
}
