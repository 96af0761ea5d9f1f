//! The owners of an object: which of them are there, and which are in another namespace.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::Collector;
use super::decision::{Owner, Owners};
use super::remote::{Asked, RemoteOwners};
use crate::api::Target;
use crate::cache::Range;
use crate::codec::object::Object;
use crate::controllers::garbage::graph::{Facts, OwnerReference};
use crate::controllers::garbage::remote_objects::RemoteObjects;
use crate::controllers::recorder::{self, About, Told};
use crate::gotext;
use crate::schema::names::{Gvk, Gvr};

/// The collector's name in events.
const CONTROLLER: &str = "garbage-collector-controller";
/// The most owners, and the most references, that are remembered.
const REMEMBERED: usize = 4096;

/// A dependent, as its owners are looked for.
#[derive(Clone, Copy)]
pub struct Dependent<'a> {
    pub is_namespaced: bool,
    pub namespace: &'a str,
    /// Whether it is an object of an extension server.
    pub is_remote: bool,
}

impl Collector<'_> {
    pub(super) fn owners<'a>(&self, dependent: Target<'_>, facts: &'a Facts) -> Owners<'a> {
        let dependent = Dependent {
            is_namespaced: dependent.resource.definition.namespaced(),
            namespace: dependent.namespace,
            is_remote: false,
        };
        let mut owners = Owners::default();
        for owner in &facts.owner_references {
            match self.remote_owner(dependent.namespace, owner) {
                Some(asked) => {
                    owners.remote = true;
                    owners.add(owner, self.elsewhere.remote.verdict(asked));
                }
                None => owners.add(owner, self.owner(dependent, owner)),
            }
        }
        owners
    }

    /// The question for an owner of a group version that an extension server answers for, whatever this server stores under
    /// the name.
    pub fn remote_owner(&self, namespace: &str, owner: &OwnerReference) -> Option<Asked> {
        let gvk = Gvk::parse(&owner.api_version, &owner.kind).ok()?;
        let services = self.api.extensions.newest(&self.api.cache);
        services.remote_of(&gvk.group_version)?;
        let OwnerReference { api_version, kind, name, uid, .. } = owner;
        Some(Asked {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.clone(),
            uid: uid.clone(),
        })
    }

    /// The state of an owner that this server stores.
    pub fn owner(&self, dependent: Dependent<'_>, owner: &OwnerReference) -> Owner {
        let gvk = Gvk::parse(&owner.api_version, &owner.kind).ok();
        let Some(resource) = gvk.and_then(|gvk| self.api.catalog.served().by_kind(&gvk).cloned()) else {
            return Owner::Unknown;
        };
        let namespaced = resource.definition.namespaced();
        if namespaced && !dependent.is_namespaced {
            return Owner::Unknown;
        }
        let namespace = if namespaced { dependent.namespace } else { "" };
        let state = self.api.cache.any();
        // A resource that the cache does not hold has not lost its objects.
        if !state.holds(resource.id) {
            return Owner::Unknown;
        }
        let Some(found) = state.get(resource.id, namespace, &owner.name) else { return Owner::Dangling };
        match self.facts(&found) {
            None => Owner::Unknown,
            Some(facts) if facts.uid != owner.uid => Owner::Dangling,
            Some(facts) if dependent.is_remote => Owner::of(&facts),
            Some(facts) if facts.waits_for_dependents() => Owner::Waiting,
            Some(_) => Owner::Solid,
        }
    }

    /// Tells by events of owners that exist in other namespaces, where they cannot own the object
    /// (`graph_builder.go`, `reportInvalidNamespaceOwnerRef`).
    pub(super) async fn tell_of_other_namespaces(&self, dependent: Target<'_>, facts: &Facts) {
        for owner in &facts.owner_references {
            if !self.is_elsewhere(dependent, owner)
                || !remember(&self.elsewhere.told, (facts.uid.as_str().into(), owner.uid.as_str().into()))
            {
                continue;
            }
            let gvk = dependent.resource.definition.gvk();
            let about = About {
                api_version: gvk.api_version(),
                kind: &gvk.kind,
                namespace: dependent.namespace,
                name: dependent.name,
                uid: &facts.uid,
            };
            let OwnerReference { api_version, kind, name, uid, .. } = owner;
            let namespace = dependent.namespace;
            let message = format!(
                "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {}",
                gotext::quote(namespace)
            );
            let told = Told { kind: "Warning", reason: "OwnerRefInvalidNamespace", message: &message };
            recorder::record(self.api, CONTROLLER, about, told).await;
        }
    }

    /// Whether the owner exists in a namespace, but not in that of the dependent.
    fn is_elsewhere(&self, dependent: Target<'_>, owner: &OwnerReference) -> bool {
        let gvk = Gvk::parse(&owner.api_version, &owner.kind).ok();
        let resource = gvk.and_then(|gvk| self.api.catalog.served().by_kind(&gvk).cloned());
        let Some(resource) = resource.filter(|resource| resource.definition.namespaced()) else {
            return false;
        };
        let state = self.api.cache.any();
        let is_owner = |namespace: &str| {
            let found = state.get(resource.id, namespace, &owner.name);
            found.is_some_and(|found| Facts::of(&found).is_ok_and(|found| found.uid == owner.uid))
        };
        let is_absent = || {
            let absent = self.elsewhere.absent.lock().unwrap_or_else(PoisonError::into_inner);
            absent.contains(owner.uid.as_str())
        };
        if is_owner(dependent.namespace) || is_absent() {
            return false;
        }
        let Some(namespaces) = self.api.resources.get(&Gvr::fixed("v1", "namespaces")) else { return false };
        let namespaces = state.objects(namespaces.id);
        let found = namespaces.range(&Range::of(None)).any(|namespace| is_owner(namespace.name()));
        if !found {
            remember(&self.elsewhere.absent, owner.uid.as_str().into());
        }
        found
    }
}

/// Owners and dependents at extension servers, and owners in other namespaces that have been looked for, so that each is
/// looked for and told once.
#[derive(Default)]
pub struct Elsewhere {
    /// Owners that extension servers have.
    pub remote: RemoteOwners,
    /// Objects of extension servers.
    pub objects: RemoteObjects,
    /// The uids of owners that are in no namespace. A uid never comes back.
    absent: Mutex<HashSet<Box<str>>>,
    /// The uids of dependents with those of their owners.
    told: Mutex<HashSet<(Box<str>, Box<str>)>>,
}

impl Elsewhere {
    /// Has the dependents of an object that is gone looked at, if extension servers have any.
    pub fn owner_is_gone(&self, gone: &Object) {
        if !self.objects.is_empty()
            && Facts::of(gone).is_ok_and(|facts| self.objects.has_dependents(&facts.uid))
        {
            self.objects.want();
        }
    }
}

/// Remembers an item; returns whether it is new. When too much is remembered, all is forgotten.
fn remember<T: Eq + std::hash::Hash>(known: &Mutex<HashSet<T>>, item: T) -> bool {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(item)
}
