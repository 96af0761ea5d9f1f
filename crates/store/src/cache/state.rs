//! Immutable snapshots of the store.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};

use crate::codec::object::{Object, joined_key};
use crate::revision::Revision;
use crate::storage::memory::{Base, BaseObject};
use crate::storage::{Key, ResourceId, Scan};

/// All objects of the held resources at one revision. Clones share everything.
#[derive(Clone, Default)]
pub struct State {
    pub revision: Revision,
    /// The revision at which the objects were read from the database as a whole. What has happened since is known one by
    /// one; what was there before, and is not there now, may never have been deleted.
    pub loaded_at: Revision,
    /// The number of states that the cache has had before this one. Others at the same revision hold other resources.
    pub serial: u64,
    /// How often resources were read again at the revision that they had, so that objects differ though none has changed.
    pub rereads: u64,
    resources: OrdMap<ResourceId, Resource>,
}

#[derive(Clone, Default)]
struct Resource {
    objects: Objects,
    /// The revision of the resource's newest change in this state; if there was none yet, the revision at which it was
    /// loaded.
    changed: Revision,
}

/// The cache does not hold the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld;

/// The objects of one resource at one revision, in key order.
#[derive(Clone, Default)]
pub struct Objects {
    set: OrdSet<Entry>,
}

/// An object, ordered by its key, which is stored in the object.
#[derive(Clone)]
struct Entry(Arc<Object>);

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    after: Box<str>,
    /// The first key behind the range; `None` if the range has no upper end.
    before: Option<Box<str>>,
}

impl State {
    pub fn at(revision: Revision) -> Self {
        Self { revision, loaded_at: revision, serial: 0, rereads: 0, resources: OrdMap::new() }
    }

    pub fn holds(&self, resource: ResourceId) -> bool {
        self.resources.contains_key(&resource)
    }

    /// The resources that are held.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = ResourceId> {
        self.resources.keys().copied()
    }

    /// The revision of the resource's newest change in this state; if there was none yet, the revision at which it was
    /// loaded.
    pub fn changed(&self, resource: ResourceId) -> Option<Revision> {
        Some(self.resources.get(&resource)?.changed)
    }

    /// The objects of a resource; none if the resource is not held, see [`State::holds`].
    pub fn objects(&self, resource: ResourceId) -> Objects {
        self.resources.get(&resource).map(|resource| resource.objects.clone()).unwrap_or_default()
    }

    pub fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.resources.get(&resource)?.objects.get(namespace, name)
    }

    /// The resource's objects, if they have not changed since `revision`.
    pub fn unchanged_since(&self, resource: ResourceId, revision: Revision) -> Option<Objects> {
        if revision > self.revision {
            return None;
        }
        match self.resources.get(&resource) {
            Some(found) if found.changed > revision => None,
            Some(found) => Some(found.objects.clone()),
            None => Some(Objects::default()),
        }
    }

    /// Puts or removes one object of a held resource. Returns the object that was there before.
    pub fn apply(
        &mut self,
        resource: ResourceId,
        key: &str,
        revision: Revision,
        object: Option<Arc<Object>>,
    ) -> Result<Option<Arc<Object>>, NotHeld> {
        let resource = self.resources.get_mut(&resource).ok_or(NotHeld)?;
        resource.changed = revision;
        let previous = match object {
            Some(object) => resource.objects.set.insert(Entry(object)),
            None => resource.objects.set.remove(key),
        };
        Ok(previous.map(|entry| entry.0))
    }

    /// Adds a resource with these objects, as of this state's revision.
    pub fn load(&mut self, resource: ResourceId, objects: Objects) {
        self.resources.insert(resource, Resource { objects, changed: self.revision });
    }

    /// Replaces the objects of a held resource by others at the same revisions.
    pub fn replace(&mut self, resource: ResourceId, objects: Objects) {
        if let Some(held) = self.resources.get_mut(&resource) {
            held.objects = objects;
        }
    }

    pub fn remove(&mut self, resource: ResourceId) {
        self.resources.remove(&resource);
    }

    /// The number of objects of each resource.
    pub fn counts(&self) -> impl Iterator<Item = (ResourceId, usize)> {
        self.resources.iter().map(|(id, resource)| (*id, resource.objects.len()))
    }
}

/// A state is what a fork of the store begins with.
impl Base for State {
    fn revision(&self) -> Revision {
        self.revision
    }

    fn get(&self, key: &Key) -> Option<Arc<dyn BaseObject>> {
        let object = State::get(self, key.resource, &key.namespace, &key.name)?;
        Some(object)
    }

    fn objects<'a>(&'a self, scan: &Scan) -> Box<dyn Iterator<Item = Arc<dyn BaseObject>> + Send + 'a> {
        let Some(resource) = self.resources.get(&scan.resource) else { return Box::new(std::iter::empty()) };
        let range = Range::of(scan.namespace.as_deref());
        let range = match &scan.after {
            Some((namespace, name)) => range.after(namespace, name),
            None => range,
        };
        Box::new(resource.objects.range(&range).cloned().map(|object| object as Arc<dyn BaseObject>))
    }

    fn objects_of(&self, revisions: &[Revision]) -> Vec<(ResourceId, Arc<dyn BaseObject>)> {
        let wanted: HashSet<Revision> = revisions.iter().copied().collect();
        let of_resource = |(id, resource): (&ResourceId, &Resource)| {
            let found = resource.objects.set.iter().filter(|entry| wanted.contains(&entry.0.revision()));
            found.map(|entry| (*id, entry.0.clone() as Arc<dyn BaseObject>)).collect::<Vec<_>>()
        };
        self.resources.iter().flat_map(of_resource).collect()
    }
}

impl BaseObject for Object {
    fn revision(&self) -> Revision {
        Object::revision(self)
    }

    fn namespace(&self) -> &str {
        Object::namespace(self)
    }

    fn name(&self) -> &str {
        Object::name(self)
    }

    fn uid(&self) -> Box<str> {
        Object::uid(self).unwrap_or_default().into()
    }

    fn api_version(&self) -> Option<&str> {
        Object::api_version(self)
    }

    fn to_stored(&self) -> Bytes {
        Object::to_stored(self)
    }
}

impl Objects {
    pub fn len(&self) -> usize {
        self.set.len()
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.set.get(&*joined_key(namespace, name)).map(|entry| entry.0.clone())
    }

    /// The objects of a range, in key order.
    pub fn range<'a>(&'a self, range: &Range) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let before = range.before.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.set.range::<_, str>((Bound::Excluded(&*range.after), before)).map(|entry| &entry.0)
    }

    /// Builds the set from objects in key order; any other order works too, but takes longer.
    pub fn of_sorted(objects: impl Iterator<Item = Arc<Object>>) -> Self {
        Self { set: objects.map(Entry).collect() }
    }
}

impl Range {
    /// The whole range of a namespace, or of all namespaces.
    pub fn of(namespace: Option<&str>) -> Self {
        match namespace {
            // NUL separates namespace and name, and sorts before every character that may occur in either.
            Some(namespace) => {
                Self { after: joined_key(namespace, ""), before: Some(format!("{namespace}\u{1}").into()) }
            }
            None => Self { after: "".into(), before: None },
        }
    }

    /// The part of the range after a key.
    pub fn after(self, namespace: &str, name: &str) -> Self {
        self.after_key(&joined_key(namespace, name))
    }

    /// Like [`Range::after`], for a key whose namespace and name are joined already.
    pub fn after_key(self, key: &str) -> Self {
        if *key > *self.after { Self { after: key.into(), ..self } } else { self }
    }
}

impl Borrow<str> for Entry {
    fn borrow(&self) -> &str {
        self.0.key()
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Entry {}
