//! The built-in resources of Kubernetes v1.37: every GA group version, and the internal StorageVersion API.
//!
//! `componentstatuses` and the subresources that connect to kubelets or issue tokens are absent until they work.

use std::sync::Arc;

use super::GROUPS;
use super::behavior::definition::{Definition, Keeping};
use super::behavior::{Behavior, BuiltIn};
use crate::schema::names::{GroupResource, api_version};
use crate::schema::resource::{ForeignKind, ResourceDefinition, Storage, Subresource, Verb};

/// All built-in definitions, in no particular order.
pub fn definitions() -> Vec<ResourceDefinition> {
    let versions = GROUPS.iter().flat_map(|group| group.versions.iter().map(|version| (group.name, version)));
    versions
        .flat_map(|(group, version)| {
            version.kinds.iter().map(|kind| definition(group, version.name, &kind.definition))
        })
        .collect()
}

/// What the server knows about a built-in kind; `None` for custom resources.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static BuiltIn> {
    let group = GROUPS.iter().find(|known| known.name == group)?;
    let version = group.versions.iter().find(|known| known.name == version)?;
    version.kinds.iter().find(|known| known.definition.kind == kind).copied()
}

/// A kind in the newest of its versions.
#[cfg(test)]
pub fn any_version(group: &str, kind: &str) -> &'static BuiltIn {
    let group = GROUPS.iter().find(|known| known.name == group).expect(group);
    let mut kinds = group.versions.iter().rev().flat_map(|version| version.kinds);
    kinds.find(|known| known.definition.kind == kind).expect(kind)
}

/// What verbs ask about the kind of a resource.
pub fn behavior(definition: &ResourceDefinition) -> Behavior {
    match find(&definition.group, &definition.version, &definition.kind) {
        Some(kind) => Behavior::built_in(kind, definition),
        None => Behavior::custom(definition),
    }
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

fn definition(group: &str, version: &str, row: &Definition) -> ResourceDefinition {
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

fn verbs(row: &Definition) -> Vec<Verb> {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    match (&row.keeping, row.plural) {
        (Keeping::Nothing, _) => vec![Create],
        // Emptying a namespace takes long; upstream never offered to do it to all of them at once.
        (_, "namespaces") => vec![Create, Delete, Get, List, Patch, Update, Watch],
        _ => vec![Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch],
    }
}

fn subresources(row: &Definition) -> Vec<Subresource> {
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

fn storage(group: &str, version: &str, row: &Definition) -> Storage {
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
