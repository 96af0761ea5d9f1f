//! The built-in resources of Kubernetes v1.37: every GA group version, and the internal StorageVersion API.
//!
//! `componentstatuses` and the subresources that connect to kubelets or issue tokens are absent until they work.

use std::sync::Arc;

use super::kind::Kind;
use super::names::{GroupResource, GroupVersion, Gvk};
use super::resource::{ResourceDefinition, Storage, Subresource, Verb};
use super::types::Types;
use crate::tree::Text;

mod table;

use table::{Keeping, Row};

/// All built-in definitions, in no particular order.
pub fn definitions() -> Vec<ResourceDefinition> {
    let types = types();
    let definitions_of = |(group, version, rows): &table::GroupVersion| {
        let name = GroupVersion::new(group, version);
        rows.iter().map(|row| definition(&types, &name, row)).collect::<Vec<_>>()
    };
    table::GROUP_VERSIONS.iter().flat_map(definitions_of).collect()
}

/// The types of all built-in kinds.
pub fn types() -> Arc<Types> {
    Types::built_in()
}

/// A kind that this program knows without a resource: those that every server answers with or reads (`Status`,
/// `DeleteOptions`), and those of lists.
pub fn kind(gvk: &Gvk) -> Option<Kind> {
    types().kind(gvk)
}

/// The versions in which objects of a stored resource can be decoded, and therefore stored.
pub fn storage_versions(resource: &GroupResource) -> Vec<GroupVersion> {
    let stored = |definition: &ResourceDefinition| matches!(&definition.storage, Storage::Table { resource: r, .. } if r == resource);
    let versions = definitions().into_iter().filter(stored);
    versions.map(|definition| definition.kind.gvk.group_version).collect()
}

/// As [`definitions`], but with these resources stored in another of their [`storage_versions`].
pub fn definitions_stored_in(versions: &[(GroupResource, GroupVersion)]) -> Vec<ResourceDefinition> {
    let mut definitions = definitions();
    for definition in &mut definitions {
        let Storage::Table { resource, version } = &mut definition.storage else { continue };
        if let Some((_, chosen)) = versions.iter().rev().find(|(name, _)| name == resource) {
            *version = chosen.clone();
        }
    }
    definitions
}

/// Whether the group is one of upstream's; all others hold custom resources.
pub fn has_group(group: &str) -> bool {
    table::GROUP_VERSIONS.iter().any(|(own, _, _)| *own == group)
}

fn definition(types: &Arc<Types>, name: &GroupVersion, row: &Row) -> ResourceDefinition {
    ResourceDefinition {
        kind: known(types, name.with_kind(row.kind)),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        short_names: row.short_names.iter().map(|&name| name.into()).collect(),
        categories: row.category.into_iter().map(Text::from).collect(),
        scope: row.scope,
        verbs: verbs(row),
        subresources: subresources(types, row),
        storage: storage(name, row),
        behavior: row.behavior,
    }
}

/// `proto/` has a message for each kind of the table, which a test makes sure of.
fn known(types: &Arc<Types>, gvk: Gvk) -> Kind {
    types.kind(&gvk).unwrap_or_else(|| Kind::opaque(gvk))
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

fn subresources(types: &Arc<Types>, row: &Row) -> Vec<Subresource> {
    use Verb::{Create, Get, Patch, Update};
    let own_kind = |gvk: Gvk| Some(known(types, gvk));
    let of = |name: &str| match name {
        "finalize" => (vec![Update], None),
        "binding" => (vec![Create], own_kind(Gvk::fixed("v1", "Binding"))),
        "eviction" => (vec![Create], own_kind(Gvk::fixed("policy/v1", "Eviction"))),
        "scale" => (vec![Get, Patch, Update], own_kind(Gvk::fixed("autoscaling/v1", "Scale"))),
        _ => (vec![Get, Patch, Update], None),
    };
    let subresource = |&name: &&str| {
        let (verbs, kind) = of(name);
        Subresource { name: name.into(), verbs, kind }
    };
    row.subresources.iter().map(subresource).collect()
}

fn storage(name: &GroupVersion, row: &Row) -> Storage {
    let version = match &row.keeping {
        Keeping::Nothing => return Storage::Virtual,
        Keeping::Own => name.clone(),
        Keeping::SharedWith(version) => GroupVersion::fixed(version),
    };
    Storage::Table { resource: GroupResource::new(version.group(), row.plural), version }
}

#[cfg(test)]
mod tests;
