//! Resources that are served for a definition.

use std::sync::Arc;

use super::{CustomDefinition, CustomVersion, ServedVersion};
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::schema::resource::{Behavior, Nature, Origin, ResourceDefinition, Storage, Subresource, Verb};

/// The priority of the groups of custom resources in discovery: behind all others.
const GROUP_PRIORITY: u32 = 1000;

/// All verbs, in the order in which upstream lists those of custom resources.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The verbs in discovery of a resource that is going away. The others are served all the same.
const LAST_VERBS: [Verb; 5] = [Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch];

impl CustomDefinition {
    /// A resource for each version that is served.
    pub fn served(self: &Arc<Self>) -> Vec<ServedVersion> {
        let versions = self.versions.iter().enumerate().filter(|(_, version)| version.is_served);
        let served = |(index, version)| ServedVersion {
            resource: Arc::new(self.resource_definition(version)),
            definition: self.clone(),
            index,
        };
        versions.map(served).collect()
    }

    fn resource_definition(&self, version: &CustomVersion) -> ResourceDefinition {
        ResourceDefinition {
            kind: version.kind.clone(),
            list_kind: self.names.list_kind.clone(),
            plural: self.resource.plural.clone(),
            singular: self.names.singular.clone(),
            short_names: self.names.short_names.clone(),
            categories: self.names.categories.clone(),
            scope: self.scope,
            origin: Origin::Custom,
            group_priority: GROUP_PRIORITY,
            verbs: if self.is_terminating { LAST_VERBS.to_vec() } else { VERBS.to_vec() },
            subresources: subresources(version),
            storage: Storage::Table {
                resource: self.resource.clone(),
                version: self.stored().kind.gvk.group_version.clone(),
            },
            behavior: Behavior { generation: true, ..Behavior::default() },
            is_discoverable: self.is_established,
            declaration: Some(self.source.clone()),
        }
    }
}

fn subresources(version: &CustomVersion) -> Vec<Subresource> {
    let subresource = |name: &str, kind: Option<Kind>| Subresource {
        name: name.into(),
        verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
        kind,
        nature: Nature::Object,
    };
    let mut subresources = Vec::new();
    if version.has_subresource("scale") {
        subresources.push(subresource("scale", builtin::kind(&Gvk::fixed("autoscaling/v1", "Scale"))));
    }
    if version.has_subresource("status") {
        subresources.push(subresource("status", None));
    }
    subresources
}
