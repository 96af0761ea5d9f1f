//! All webhooks of one kind of configurations. The index follows the cache: before somebody asks, it takes in what has
//! changed, so that a configuration counts from the answer of its write on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::configuration::{Configuration, Hook};
use crate::api::Api;
use crate::api::error::Error;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::ResourceId;

pub struct Index {
    resource: Gvr,
    id: OnceLock<Option<ResourceId>>,
    known: RwLock<Known>,
    /// Every change up to here is known. Raised under the lock.
    reached: AtomicU64,
    /// Whether there is anything. Written under the lock, before `reached`.
    is_empty: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// By name, which is the order of calls; `None` for a configuration that cannot be read.
    configurations: BTreeMap<Box<str>, Option<Configuration>>,
    hooks: Arc<[Arc<Hook>]>,
}

/// The webhooks at one moment, in the order in which they are called.
pub type Hooks = Arc<[Arc<Hook>]>;

impl Index {
    pub fn new(resource: Gvr) -> Self {
        let (reached, is_empty) = (AtomicU64::new(0), AtomicBool::new(true));
        Self { resource, id: OnceLock::new(), known: RwLock::default(), reached, is_empty }
    }

    /// All webhooks, with every change that the cache has; `None` if there are none. An error if a configuration cannot
    /// be read: nobody knows what it would have refused.
    pub fn newest(&self, api: &Api) -> Result<Option<Hooks>, Error> {
        let id = self.id.get_or_init(|| api.resources.get(&self.resource).map(|resource| resource.id));
        let Some(id) = *id else { return Ok(None) };
        let state = api.cache.any();
        let reached = self.reached.load(Ordering::Acquire);
        if reached == 0 || state.changed(id).is_some_and(|changed| changed.0 > reached) {
            self.catch_up(api, id);
        }
        if self.is_empty.load(Ordering::Acquire) {
            return Ok(None);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, _)) = known.configurations.iter().find(|(_, read)| read.is_none()) {
            return Err(Error::Internal(format!("{} {name:?} cannot be read", self.resource.plural)));
        }
        Ok(Some(known.hooks.clone()))
    }

    fn catch_up(&self, api: &Api, id: ResourceId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let (state, reached) = (api.cache.any(), Revision(self.reached.load(Ordering::Acquire)));
        match api.cache.changed_keys(id, reached).filter(|_| reached.0 > 0) {
            Some(keys) => {
                for key in keys {
                    let name = key.split_once('\0').map_or(&*key, |(_, name)| name);
                    known.take_in(api, name, state.get(id, "", name).as_ref());
                }
            }
            None => known.rebuild(api, &state, id),
        }
        let hooks = known.configurations.values().flatten().flat_map(|one| one.hooks.iter().cloned());
        known.hooks = hooks.collect();
        self.is_empty.store(known.configurations.is_empty(), Ordering::Release);
        self.reached.fetch_max(state.revision.0, Ordering::AcqRel);
    }
}

impl Known {
    fn rebuild(&mut self, api: &Api, state: &State, id: ResourceId) {
        self.configurations.clear();
        for object in state.objects(id).range(&Range::of(None)) {
            self.take_in(api, object.name(), Some(object));
        }
    }

    fn take_in(&mut self, api: &Api, name: &str, object: Option<&Arc<Object>>) {
        let Some(object) = object else {
            self.configurations.remove(name);
            return;
        };
        let read = Configuration::of(object);
        if let Err(why) = &read {
            api.unreadable.tell("admission", object, why);
        }
        self.configurations.insert(name.into(), read.ok());
    }
}
