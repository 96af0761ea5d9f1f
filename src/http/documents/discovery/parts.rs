//! Parts of discovery, each about one group version. Parts of group versions in which nothing has changed are the same in the
//! next generation, so that a definition costs the same however many there are.

use std::sync::{Arc, OnceLock};

use super::{Encodings, aggregated, legacy};
use crate::schema::registry::{Group, Registry, ServedVersion};
use crate::schema::resource::{Origin, ResourceDefinition, Storage};

/// A group version, and its documents as far as somebody has asked for them.
pub struct Part {
    origin: Origin,
    version: ServedVersion,
    /// The legacy document: `/apis/<group>/<version>`.
    pub legacy: Encodings,
    /// The entry in aggregated discovery, as JSON.
    aggregated: OnceLock<String>,
}

impl Part {
    pub fn new(registry: &Registry, group: &Group, version: &ServedVersion) -> Self {
        let hashed: Vec<bool> = version.resources.iter().map(|each| has_hash(registry, each)).collect();
        let listed = version.clone();
        Self {
            origin: group.origin,
            version: version.clone(),
            legacy: Encodings::new(move || legacy::resource_list(&listed, &hashed)),
            aggregated: OnceLock::new(),
        }
    }

    /// Whether the part says what is to be said of a version.
    pub fn is_of(&self, origin: Origin, version: &ServedVersion) -> bool {
        let (own, other) = (&self.version.resources, &version.resources);
        let same =
            |(own, other): (&Arc<ResourceDefinition>, &Arc<ResourceDefinition>)| Arc::ptr_eq(own, other);
        self.origin == origin && own.len() == other.len() && own.iter().zip(other).all(same)
    }

    /// An element of `versions`.
    pub fn aggregated(&self) -> &str {
        self.aggregated.get_or_init(|| aggregated::entry(self.origin, &self.version).to_string())
    }
}

/// Upstream tells no hash of custom resources whose storage version is not served.
fn has_hash(registry: &Registry, definition: &ResourceDefinition) -> bool {
    match (definition.origin, &definition.storage) {
        (Origin::Custom, Storage::Table { version, .. }) => {
            registry.lookup(&version.with_plural(definition.plural.clone())).is_some()
        }
        _ => true,
    }
}
