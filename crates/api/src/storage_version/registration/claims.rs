//! How a server encodes what it serves: what it claims in its registration.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Served;
use crate::kinds::custom::CustomVersion;
use crate::resource::Resource;
use crate::schema::names::GroupResource;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::storage::EncodedResource;
use crate::tree::{Text, Value, json};

/// How a server encodes one resource. It is kept in the registry's rows, and in a StorageVersion object of this name.
#[derive(PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    pub encoded: EncodedResource,
    /// The definition of a custom resource, with which its StorageVersion goes.
    pub owner: Option<Owner>,
}

/// A definition.
#[derive(PartialEq, Eq)]
pub struct Owner {
    name: Text,
    uid: Text,
}

impl Owner {
    fn of(resource: &Resource) -> Option<Self> {
        let definition = &resource.custom.as_ref()?.version.definition;
        Some(Self { name: definition.name.clone(), uid: definition.uid.clone() })
    }

    /// The entry of `metadata.ownerReferences`; the definition's deletion does not wait for the object that has it.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "name": self.name.as_str(), "uid": self.uid.as_str(),
        })
    }
}

/// The object's name. The core group is spelled out: `core.pods`.
pub fn storage_version_name(resource: &GroupResource) -> String {
    let group = if resource.group.is_empty() { "core" } else { &resource.group };
    format!("{group}.{}", resource.plural)
}

/// How this server encodes each stored resource, sorted by name.
pub fn claims(served: &Served) -> Vec<Claim> {
    let registry = served.registry();
    let mut versions: HashMap<&GroupResource, Vec<&ResourceDefinition>> = HashMap::new();
    for definition in registry.definitions() {
        if let Storage::Table { resource, .. } = &definition.storage {
            versions.entry(resource).or_default().push(definition);
        }
    }
    let claim = |(name, definition): (&GroupResource, &Arc<ResourceDefinition>)| {
        let resource = served.get(&definition.gvr())?;
        let encoded = encoded(versions.get(name)?, name, resource);
        Some(Claim { name: storage_version_name(name), encoded, owner: Owner::of(resource) })
    };
    let mut claims: Vec<_> = registry.stored().filter_map(claim).collect();
    claims.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    claims
}

/// The claims that a server makes by a generation and not by the one before, and the claims that it drops. Built-in
/// resources are the same in both.
pub fn changed_claims(before: &Served, served: &Served) -> (Vec<Claim>, Vec<Claim>) {
    let (mut claims, mut dropped) = (Vec::new(), Vec::new());
    let mut olds = before.stored().peekable();
    for new in served.stored() {
        while let Some(old) = olds.next_if(|old| old.id < new.id) {
            dropped.extend(claim_of(before, old));
        }
        let old = olds.next_if(|old| old.id == new.id);
        if old.is_some_and(|old| Arc::ptr_eq(old, new)) {
            continue;
        }
        let claim = claim_of(served, new);
        if claim != old.and_then(|old| claim_of(before, old)) {
            claims.extend(claim);
        }
    }
    dropped.extend(olds.filter_map(|old| claim_of(before, old)));
    (claims, dropped)
}

/// The claim for a resource of which all versions are in one group.
fn claim_of(served: &Served, resource: &Resource) -> Option<Claim> {
    let Storage::Table { resource: name, .. } = &resource.definition.storage else { return None };
    let group = served.registry().group(&name.group)?;
    let all = group.versions.iter().flat_map(|version| &version.resources).map(|definition| &**definition);
    let is_stored = |definition: &&ResourceDefinition| matches!(&definition.storage, Storage::Table { resource, .. } if resource == name);
    let encoded = encoded(&all.filter(is_stored).collect::<Vec<_>>(), name, resource);
    Some(Claim { name: storage_version_name(name), encoded, owner: Owner::of(resource) })
}

/// `all` are the definitions of every version that is stored under the name.
fn encoded(all: &[&ResourceDefinition], stored: &GroupResource, resource: &Resource) -> EncodedResource {
    let versions = |own: bool| {
        let definitions = all.iter().filter(move |definition| (*definition.group() == stored.group) == own);
        definitions.map(|definition| definition.api_version().as_str().into())
    };
    let declared = |is_told: fn(&CustomVersion) -> bool| {
        let versions = resource.custom.iter().flat_map(|custom| &custom.version.definition.versions);
        let told = versions.filter(move |version| is_told(version));
        told.map(|version| version.kind.gvk.api_version().as_str().into()).collect()
    };
    let (decodable, served) = match &resource.custom {
        Some(_) => (declared(|_| true), declared(|version| version.is_served)),
        None => (versions(true).chain(versions(false)).collect(), versions(true).collect()),
    };
    EncodedResource { resource: resource.id, encoding: (&*resource.stored_version).into(), decodable, served }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::samples::{custom, first};

    fn names(claims: &[Claim]) -> Vec<&str> {
        claims.iter().map(|claim| &*claim.name).collect()
    }

    /// However much is served, only what has changed is claimed anew, as it would be among everything.
    #[test]
    fn what_has_changed_is_claimed() {
        let all: Vec<_> = (0..100).map(custom).collect();
        let before = first().with([], &all);
        let (claims_before, dropped) = changed_claims(&before, &before);
        assert!(claims_before.is_empty() && dropped.is_empty());
        let after = before.with(&all[7..8], &[custom(100)]);
        let (new, dropped) = changed_claims(&before, &after);
        assert_eq!(
            (names(&new), names(&dropped)),
            (vec!["g16.example.com.things100"], vec!["g1.example.com.things7"])
        );
        let whole = claims(&after);
        assert!(new.iter().all(|claim| whole.contains(claim)));
        // Another form of the same resource is encoded as before.
        let again = after.with(&all[8..9], &[custom(8)]);
        let (new, dropped) = changed_claims(&after, &again);
        assert!(new.is_empty() && dropped.is_empty());
    }
}
