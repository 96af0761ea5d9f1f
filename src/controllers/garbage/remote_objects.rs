//! Objects of extension servers that have owners or wait for dependents, as the last listings showed them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::graph::{Facts, OwnerReference};
use crate::api::followers::api_services::{ApiService, ApiServices};
use crate::relay::call::segment;
use crate::revision::Revision;

/// A resource of an extension server whose objects are collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteResource {
    /// `<group>/<version>`.
    pub api_version: String,
    pub plural: String,
    pub is_namespaced: bool,
}

/// An object of an extension server.
#[derive(Debug)]
pub struct RemoteObject {
    pub resource: Arc<RemoteResource>,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
    pub resource_version: String,
    pub facts: Facts,
}

impl RemoteResource {
    /// The path of all objects.
    pub fn path(&self) -> String {
        format!("/apis/{}/{}", self.api_version, self.plural)
    }
}

impl RemoteObject {
    /// The path of the object; `None` if no object can have its name.
    pub fn path(&self) -> Option<String> {
        let RemoteResource { api_version, plural, is_namespaced } = &*self.resource;
        let name = segment(&self.name)?;
        Some(match is_namespaced {
            true => format!("/apis/{api_version}/namespaces/{}/{plural}/{name}", segment(&self.namespace)?),
            false => format!("/apis/{api_version}/{plural}/{name}"),
        })
    }
}

/// The objects of one extension server.
#[derive(Debug)]
pub struct Objects {
    /// When the listing began.
    began: Instant,
    /// A revision of this cluster that was there when the listing began.
    at: Revision,
    all: Vec<Arc<RemoteObject>>,
    /// Indexes of the dependents by their owner's uid.
    dependents: HashMap<Box<str>, Vec<usize>>,
    /// When a listing first showed that the owner with this uid waits for its dependents.
    waiting_since: HashMap<Box<str>, Instant>,
}

/// The objects of all extension servers.
#[derive(Default)]
pub struct RemoteObjects {
    services: Mutex<HashMap<Box<str>, Known>>,
    wanted: Notify,
}

/// The knowledge about one APIService.
struct Known {
    /// The uid of the APIService.
    uid: Box<str>,
    /// The newest complete listing.
    objects: Option<Arc<Objects>>,
    /// Whether the APIService was available when the last listing failed; `None` if it did not fail.
    failed: Option<bool>,
}

/// The event after which a listing must have begun.
#[derive(Clone, Copy, Debug)]
pub enum Since {
    Revision(Revision),
    Instant(Instant),
}

impl Objects {
    /// Takes a listing over that has just ended.
    pub fn new((began, at): (Instant, Revision), all: Vec<RemoteObject>, before: Option<&Self>) -> Self {
        let mut dependents: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        let mut waiting_since = HashMap::new();
        for (index, object) in all.iter().enumerate() {
            let facts = &object.facts;
            for owner in &facts.owner_references {
                dependents.entry(owner.uid.as_str().into()).or_default().push(index);
            }
            if facts.waits_for_dependents() || facts.waits_to_orphan() {
                let uid: Box<str> = facts.uid.as_str().into();
                let since = before.and_then(|before| before.waiting_since.get(&uid)).copied();
                waiting_since.insert(uid, since.unwrap_or_else(Instant::now));
            }
        }
        Self { began, at, all: all.into_iter().map(Arc::new).collect(), dependents, waiting_since }
    }

    pub fn all(&self) -> &[Arc<RemoteObject>] {
        &self.all
    }

    /// When the owner was first seen to wait for its dependents.
    pub fn waiting_since(&self, uid: &str) -> Option<Instant> {
        self.waiting_since.get(uid).copied()
    }

    fn is_since(&self, since: Since) -> bool {
        match since {
            Since::Revision(revision) => self.at >= revision,
            Since::Instant(instant) => self.began >= instant,
        }
    }
}

impl RemoteObjects {
    /// Forgets the objects of APIServices that are gone or lead elsewhere.
    pub fn keep_only(&self, services: &ApiServices) {
        let is_kept = |name: &str, known: &Known| {
            services.all.get(name).is_some_and(|one| one.remote.is_some() && one.uid == known.uid)
        };
        self.lock().retain(|name, known| is_kept(name, known));
    }

    /// The newest complete listing of an APIService.
    pub fn of(&self, service: &ApiService) -> Option<Arc<Objects>> {
        let services = self.lock();
        services.get(&service.name).filter(|known| known.uid == service.uid)?.objects.clone()
    }

    /// Notes a listing. After a failure the objects of the last complete one stay.
    pub fn note(&self, service: &ApiService, listed: Option<Arc<Objects>>) {
        let mut services = self.lock();
        let before = services.remove(&service.name).filter(|known| known.uid == service.uid);
        let failed = listed.is_none().then(|| service.condition.is_true());
        let objects = listed.or_else(|| before.and_then(|before| before.objects));
        services.insert(service.name.clone(), Known { uid: service.uid.clone(), objects, failed });
    }

    /// Whether all extension servers that answer have been listed since. If not, new listings are asked for. As with
    /// upstream's collector, owners do not wait for a server that does not answer, but for its last known dependents.
    pub fn covers(&self, services: &ApiServices, since: Since) -> bool {
        let known = self.lock();
        let is_covered = services.remote().all(|service| {
            let known = known.get(&service.name).filter(|known| known.uid == service.uid);
            let is_since = |objects: &Arc<Objects>| objects.is_since(since);
            // A failure of the time when it was not available tells nothing about an APIService that is.
            let is_failing = |known: &Known| known.failed == Some(service.condition.is_true());
            known.is_some_and(|known| is_failing(known) || known.objects.as_ref().is_some_and(is_since))
        });
        if !is_covered {
            self.wanted.notify_one();
        }
        is_covered
    }

    /// The objects that name this owner.
    pub fn dependents(&self, uid: &str) -> Vec<Arc<RemoteObject>> {
        let services = self.lock();
        let mut found = Vec::new();
        for objects in services.values().filter_map(|known| known.objects.as_ref()) {
            let indexes = objects.dependents.get(uid).into_iter().flatten();
            found.extend(indexes.map(|index| objects.all[*index].clone()));
        }
        found
    }

    /// Whether no extension server has objects with owners.
    pub fn is_empty(&self) -> bool {
        let services = self.lock();
        services.values().filter_map(|known| known.objects.as_ref()).all(|objects| objects.all.is_empty())
    }

    /// Whether an object names this owner.
    pub fn has_dependents(&self, uid: &str) -> bool {
        let services = self.lock();
        let mut objects = services.values().filter_map(|known| known.objects.as_ref());
        objects.any(|objects| objects.dependents.contains_key(uid))
    }

    /// Whether an object names this owner and blocks its foreground deletion.
    pub fn has_blocking_dependents(&self, uid: &str) -> bool {
        let blocks = |owner: &OwnerReference| owner.uid == uid && owner.blocks();
        self.dependents(uid).iter().any(|object| object.facts.owner_references.iter().any(blocks))
    }

    /// Asks for new listings.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Returns once somebody has asked for new listings.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Known>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
