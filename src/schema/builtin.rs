//! The built-in resources of Kubernetes v1.37: every GA group version, and the internal StorageVersion API.
//!
//! `componentstatuses` and the subresources that connect to kubelets or issue tokens are absent until they work.

use std::sync::Arc;

use super::names::{GroupResource, api_version};
use super::resource::{ForeignKind, ResourceDefinition, Storage, Subresource, Verb};

mod table;

use table::{Keeping, Row};

/// All built-in definitions, in no particular order.
pub fn definitions() -> Vec<ResourceDefinition> {
    table::GROUP_VERSIONS
        .iter()
        .flat_map(|(group, version, rows)| rows.iter().map(|row| definition(group, version, row)))
        .collect()
}

/// The versions in which objects of a stored resource can be decoded, and therefore stored.
pub fn storage_versions(resource: &GroupResource) -> Vec<String> {
    let stored = |definition: &ResourceDefinition| matches!(&definition.storage, Storage::Table { resource: r, .. } if r == resource);
    definitions()
        .iter()
        .filter(|definition| stored(definition))
        .map(ResourceDefinition::api_version)
        .collect()
}

/// As [`definitions`], but with these resources stored in another of their [`storage_versions`].
pub fn definitions_stored_in(versions: &[(GroupResource, String)]) -> Vec<ResourceDefinition> {
    let mut definitions = definitions();
    for definition in &mut definitions {
        let Storage::Table { resource, api_version } = &mut definition.storage else { continue };
        if let Some((_, version)) = versions.iter().rev().find(|(name, _)| name == resource) {
            *api_version = version.as_str().into();
        }
    }
    definitions
}

/// Whether the group is one of upstream's; all others hold custom resources.
pub fn has_group(group: &str) -> bool {
    table::GROUP_VERSIONS.iter().any(|(own, _, _)| *own == group)
}

fn definition(group: &str, version: &str, row: &Row) -> ResourceDefinition {
    ResourceDefinition {
        group: group.into(),
        version: version.into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        short_names: row.short_names.iter().map(|&name| name.into()).collect(),
        categories: row.category.into_iter().map(Arc::from).collect(),
        scope: row.scope,
        verbs: verbs(row),
        subresources: subresources(row),
        storage: storage(group, version, row),
        behavior: row.behavior,
    }
}

fn verbs(row: &Row) -> Vec<Verb> {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    match (&row.keeping, row.plural) {
        (Keeping::Nothing, _) => vec![Create],
        // Emptying a namespace takes long; upstream never offered to do it to all of them at once.
        (_, "namespaces") => vec![Create, Delete, Get, List, Patch, Update, Watch],
        _ => vec![Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch],
    }
}

fn subresources(row: &Row) -> Vec<Subresource> {
    use Verb::{Create, Get, Patch, Update};
    let of = |name: &str| match name {
        "finalize" => (vec![Update], None),
        "binding" => (vec![Create], Some(foreign("", "v1", "Binding"))),
        "eviction" => (vec![Create], Some(foreign("policy", "v1", "Eviction"))),
        "scale" => (vec![Get, Patch, Update], Some(foreign("autoscaling", "v1", "Scale"))),
        _ => (vec![Get, Patch, Update], None),
    };
    let subresource = |&name: &&str| {
        let (verbs, kind) = of(name);
        Subresource { name: name.into(), verbs, kind }
    };
    row.subresources.iter().map(subresource).collect()
}

fn foreign(group: &str, version: &str, kind: &str) -> ForeignKind {
    ForeignKind { group: group.into(), version: version.into(), kind: kind.into() }
}

fn storage(group: &str, version: &str, row: &Row) -> Storage {
    let (group, version) = match row.keeping {
        Keeping::Nothing => return Storage::Virtual,
        Keeping::Own => (group, version),
        Keeping::SharedWith { group, version } => (group, version),
    };
    Storage::Table {
        resource: GroupResource::new(group, row.plural),
        api_version: api_version(group, version).into(),
    }
}

#[cfg(test)]
mod tests;
