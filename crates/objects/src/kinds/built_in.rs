//! The built-in resources of Kubernetes v1.37: all GA group versions, the internal StorageVersion API, and beta versions that are
//! off by default.

pub mod enablement;

use std::sync::Arc;

use self::enablement::{Enablement, is_off_by_default};
use super::GROUPS;
use super::behavior::declared::Declared;
use super::behavior::definition::{Definition, Keeping};
use super::behavior::{Behavior, BuiltIn, Group, Version};
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupResource, GroupVersion, Gvk};
use crate::schema::resource::{Nature, Origin, ResourceDefinition, Storage, Subresource, Verb};
use crate::schema::types::Types;
use crate::tree::Text;

/// All built-in definitions, in no particular order.
pub fn definitions() -> Vec<ResourceDefinition> {
    let types = builtin::types();
    let versions = GROUPS.iter().flat_map(|group| group.versions.iter().map(move |version| (group, version)));
    let definitions_of = |(group, version): (&&Group, &Version)| {
        let define = |kind: &&BuiltIn| definition(&types, group, version, &kind.definition);
        version.kinds.iter().map(define).collect::<Vec<_>>()
    };
    versions.flat_map(definitions_of).collect()
}

/// The description of a built-in kind; `None` for custom resources.
pub fn find(gvk: &Gvk) -> Option<&'static BuiltIn> {
    let group = GROUPS.iter().find(|known| gvk.group().as_str() == known.name)?;
    let version = group.versions.iter().find(|known| gvk.version() == known.name)?;
    version.kinds.iter().find(|known| gvk.kind.as_str() == known.definition.kind).copied()
}

/// Whether the server has a version of a group of its own, which no definition adds to.
pub fn has_version(version: &GroupVersion) -> bool {
    let group = GROUPS.iter().find(|known| version.group().as_str() == known.name);
    group.is_some_and(|group| group.versions.iter().any(|known| version.version() == known.name))
}

/// A kind in its newest version, for tests.
///
/// # Panics
/// There is no such kind.
pub fn any_version(group: &str, kind: &str) -> &'static BuiltIn {
    let group = GROUPS.iter().find(|known| known.name == group).expect(group);
    let mut kinds = group.versions.iter().rev().flat_map(|version| version.kinds);
    kinds.find(|known| known.definition.kind == kind).expect(kind)
}

/// The behavior of a resource's kind, as verbs ask it.
pub fn behavior(definition: &ResourceDefinition) -> Behavior {
    match find(definition.gvk()) {
        Some(kind) => Behavior::built_in(kind, definition),
        None => Behavior::declared(definition, Declared::nothing(definition.namespaced())),
    }
}

/// The versions in which objects of a stored resource can be decoded, and in which they can therefore be stored.
pub fn storage_versions(resource: &GroupResource) -> Vec<GroupVersion> {
    let stored = |definition: &ResourceDefinition| matches!(&definition.storage, Storage::Table { resource: r, .. } if r == resource);
    let versions =
        definitions().into_iter().filter(stored).map(|definition| definition.kind.gvk.group_version);
    versions.filter(|version| !is_off_by_default(version.version())).collect()
}

/// Like [`definitions`], but stores these resources in another of their [`storage_versions`], and serves clients only what is
/// enabled. Of the others those that are on by default are there for the server itself.
pub fn definitions_stored_in(
    versions: &[(GroupResource, GroupVersion)],
    enablement: &Enablement,
) -> Vec<ResourceDefinition> {
    let mut definitions = definitions();
    definitions.retain_mut(|definition| {
        definition.is_discoverable = enablement.serves(definition);
        definition.is_discoverable || !is_off_by_default(definition.version())
    });
    for definition in &mut definitions {
        let Storage::Table { resource, version } = &mut definition.storage else { continue };
        if let Some((_, chosen)) = versions.iter().rev().find(|(name, _)| name == resource) {
            *version = chosen.clone();
        }
    }
    definitions
}

fn definition(types: &Arc<Types>, group: &Group, version: &Version, row: &Definition) -> ResourceDefinition {
    let name = GroupVersion::new(group.name, version.name);
    ResourceDefinition {
        kind: known(types, name.with_kind(row.kind)),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        short_names: row.short_names.iter().map(|&name| name.into()).collect(),
        categories: row.category.into_iter().map(Text::from).collect(),
        scope: row.scope,
        origin: Origin::BuiltIn,
        group_priority: group.priority,
        verbs: verbs(row),
        subresources: subresources(types, row),
        storage: storage(&name, row),
        behavior: row.behavior,
        is_discoverable: true,
        declaration: None,
    }
}

/// The kind with its message in `proto/`. A test makes sure that every kind of the table has one.
fn known(types: &Arc<Types>, gvk: Gvk) -> Kind {
    types.kind(&gvk).unwrap_or_else(|| Kind::opaque(gvk))
}

fn verbs(row: &Definition) -> Vec<Verb> {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    let mut verbs = match row.keeping {
        Keeping::Nothing => vec![Create],
        Keeping::Computed => vec![Get, List],
        _ => vec![Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch],
    };
    verbs.retain(|verb| *verb != DeleteCollection || row.deletes_collection);
    verbs
}

fn subresources(types: &Arc<Types>, row: &Definition) -> Vec<Subresource> {
    use Verb::{Create, Delete, Get, Patch, Update};
    let own_kind = |gvk: Gvk| Some(known(types, gvk));
    let of = |name: &str| match name {
        "finalize" => (vec![Update], None),
        "binding" => (vec![Create], own_kind(Gvk::fixed("v1", "Binding"))),
        "eviction" => (vec![Create], own_kind(Gvk::fixed("policy/v1", "Eviction"))),
        "token" => (vec![Create], own_kind(Gvk::fixed("authentication.k8s.io/v1", "TokenRequest"))),
        "scale" => (vec![Get, Patch, Update], own_kind(Gvk::fixed("autoscaling/v1", "Scale"))),
        _ => (vec![Get, Patch, Update], None),
    };
    let options = |name: &str| own_kind(GroupVersion::fixed("v1").with_kind(name));
    let subresource = |&name: &&str| {
        let (nature, verbs, kind) = match name {
            "attach" => (Nature::Stream, vec![Create, Get], options("PodAttachOptions")),
            "exec" => (Nature::Stream, vec![Create, Get], options("PodExecOptions")),
            "portforward" => (Nature::Stream, vec![Create, Get], options("PodPortForwardOptions")),
            "log" => (Nature::Log, vec![Get], None),
            "proxy" => {
                let verbs = vec![Create, Delete, Get, Patch, Update];
                (Nature::Proxy, verbs, options(&format!("{}ProxyOptions", row.kind)))
            }
            name => {
                let (verbs, kind) = of(name);
                (Nature::Object, verbs, kind)
            }
        };
        Subresource { name: name.into(), verbs, kind, nature }
    };
    row.subresources.iter().map(subresource).collect()
}

fn storage(name: &GroupVersion, row: &Definition) -> Storage {
    let version = match &row.keeping {
        Keeping::Nothing | Keeping::Computed => return Storage::Virtual,
        Keeping::Own => name.clone(),
        Keeping::SharedWith(version) => GroupVersion::fixed(version),
    };
    Storage::Table { resource: GroupResource::new(version.group(), row.plural), version }
}
