//! Indexes that follow the cache: an index takes in what has changed before somebody asks it, so that a write counts from
//! its answer on. Rows that are [read again](State::rereads), which no revision tells, are taken in like changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Cache, Range, State};
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::storage::ResourceId;

/// The state up to which an index has followed the cache. An index that has read nothing is behind every state.
#[derive(Debug, Default)]
pub struct Position {
    /// A revision and one; zero of an index that has read nothing.
    reached: AtomicU64,
    /// The [count of rereads](State::rereads) of that state.
    rereads: AtomicU64,
}

impl Position {
    /// Whether a state has objects of the resources that the index does not know.
    pub fn is_behind(&self, state: &State, resources: impl IntoIterator<Item = ResourceId>) -> bool {
        let Some(reached) = self.reached(state) else { return true };
        let mut changed = resources.into_iter().filter_map(|resource| state.changed(resource));
        changed.any(|changed| changed > reached)
    }

    /// The revision up to which the index is right; `None` if it has to be built anew from the state.
    pub fn reached(&self, state: &State) -> Option<Revision> {
        let reached = self.reached.load(Ordering::Acquire).checked_sub(1)?;
        (self.rereads.load(Ordering::Acquire) == state.rereads).then_some(Revision(reached))
    }

    /// The [keys](Object::key) of the objects that have changed between the position and the state; `None` if the index has to be
    /// built anew from the state.
    pub fn changed_keys(
        &self,
        cache: &Cache,
        state: &State,
        resource: ResourceId,
    ) -> Option<BTreeSet<Box<str>>> {
        let reached = self.reached(state)?;
        match state.changed(resource) {
            Some(changed) if changed > reached => cache.changed_keys(resource, reached),
            _ => Some(BTreeSet::new()),
        }
    }

    /// Notes that everything in a state has been taken in. Only one thread at a time may do so.
    pub fn advance(&self, state: &State) {
        self.reached.store(state.revision.0 + 1, Ordering::Release);
        self.rereads.store(state.rereads, Ordering::Release);
    }
}

/// The content of an index.
pub trait Content {
    /// Things that the content needs to take objects in.
    type Context: ?Sized;

    /// Forgets all objects, since nobody knows which have changed. All that there are follow.
    fn clear(&mut self, context: &Self::Context);

    /// Replaces what was known of the object with a key. `place` is that of its resource among those of the index;
    /// `object` is `None` if the object is gone.
    fn take_in(&mut self, context: &Self::Context, place: usize, key: &str, object: Option<&Arc<Object>>);

    /// Makes of the objects what readers need, once all that have changed are taken in.
    fn finish(&mut self) {}
}

/// An index of the objects of some resources.
#[derive(Debug)]
pub struct Follower<C> {
    resources: Box<[ResourceId]>,
    content: RwLock<C>,
    position: Position,
    /// The serial number of a state that holds nothing new. Most states have changed none of the resources.
    seen: AtomicU64,
}

impl<C: Content> Follower<C> {
    pub fn new(resources: impl Into<Box<[ResourceId]>>, content: C) -> Self {
        let (content, position) = (RwLock::new(content), Position::default());
        Self { resources: resources.into(), content, position, seen: AtomicU64::new(0) }
    }

    pub fn resources(&self) -> &[ResourceId] {
        &self.resources
    }

    /// Whether nothing was read yet, so that the next one who asks reads all objects.
    pub fn is_unread(&self) -> bool {
        self.position.reached.load(Ordering::Acquire) == 0
    }

    /// The content with every change that the cache has.
    pub fn newest(&self, cache: &Cache, context: &C::Context) -> RwLockReadGuard<'_, C> {
        self.catch_up(cache, context);
        self.known()
    }

    /// The content as it is; it may lack changes.
    pub fn known(&self) -> RwLockReadGuard<'_, C> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content as it is, to be changed.
    pub fn write(&self) -> RwLockWriteGuard<'_, C> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in every change that the cache has.
    pub fn catch_up(&self, cache: &Cache, context: &C::Context) {
        if self.seen.load(Ordering::Acquire) >= cache.serial() && !self.is_unread() {
            return;
        }
        let mut state = cache.any();
        if self.is_behind(&state) {
            let mut content = self.write();
            state = cache.any();
            if self.is_behind(&state) {
                self.take_in(&mut content, cache, &state, context);
            }
        }
        self.seen.fetch_max(state.serial, Ordering::AcqRel);
    }

    fn is_behind(&self, state: &State) -> bool {
        self.position.is_behind(state, self.resources.iter().copied())
    }

    fn take_in(&self, content: &mut C, cache: &Cache, state: &State, context: &C::Context) {
        let changed = self.resources.iter().map(|id| self.position.changed_keys(cache, state, *id));
        match changed.collect::<Option<Vec<_>>>() {
            Some(changed) => {
                for ((place, id), keys) in self.resources.iter().enumerate().zip(changed) {
                    for key in keys {
                        let (namespace, name) = key.split_once('\0').unwrap_or(("", &key));
                        content.take_in(context, place, &key, state.get(*id, namespace, name).as_ref());
                    }
                }
            }
            None => {
                content.clear(context);
                for (place, id) in self.resources.iter().enumerate() {
                    for object in state.objects(*id).range(&Range::of(None)) {
                        content.take_in(context, place, object.key(), Some(object));
                    }
                }
            }
        }
        content.finish();
        self.position.advance(state);
    }
}
