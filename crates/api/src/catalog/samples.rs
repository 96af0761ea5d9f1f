//! Generations for tests.

use std::collections::HashMap;
use std::sync::Arc;

use super::served::{Added, Changes, Served};
use crate::codec::at_rest::StorageMediaType;
use crate::kinds::built_in;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupResource, GroupVersion, Gvk, Gvr};
use crate::schema::registry::Registry;
use crate::schema::resource::{Origin, ResourceDefinition, Storage};
use crate::storage::ResourceId;

/// The generation of the built-in resources.
pub fn first() -> Served {
    let registry = Arc::new(Registry::new(built_in::definitions()));
    let ids = registry.stored().zip(1..).map(|((name, _), id)| (name.clone(), ResourceId(id)));
    let ids: HashMap<GroupResource, ResourceId> = ids.collect();
    Served::new(registry, &ids, StorageMediaType::default(), crate::concerns::of_definition)
}

/// A new definition of the resource of this number, of which there are six in a group.
pub fn custom(number: usize) -> Arc<ResourceDefinition> {
    let registry = Registry::new(built_in::definitions());
    let mut definition = (*registry.lookup(&Gvr::fixed("v1", "configmaps")).expect("built in")).clone();
    let group_version = GroupVersion::new(&format!("g{}.example.com", number / 6), "v1");
    let plural = format!("things{number}");
    definition.storage = Storage::Table {
        resource: GroupResource::new(group_version.group(), &plural),
        version: group_version.clone(),
    };
    definition.kind = Kind::opaque(Gvk { group_version, kind: format!("Thing{number}").into() });
    definition.plural = plural.into();
    (definition.origin, definition.group_priority) = (Origin::Custom, 1_000);
    Arc::new(definition)
}

/// The store's number of a custom resource.
fn id_of(definition: &ResourceDefinition) -> ResourceId {
    let number = definition.plural.trim_start_matches("things").parse::<i32>();
    ResourceId(10_000 + number.expect("a number"))
}

impl Served {
    pub fn with<'a>(
        &self,
        removed: impl IntoIterator<Item = &'a Arc<ResourceDefinition>>,
        added: &[Arc<ResourceDefinition>],
    ) -> Self {
        let ids: Vec<_> = added.iter().map(|definition| id_of(definition)).collect();
        let added = added.iter().map(|definition| Added { definition: definition.clone(), custom: None });
        let changes = Changes { removed: removed.into_iter().cloned().collect(), added: added.collect() };
        self.next(&changes, &ids)
    }
}
