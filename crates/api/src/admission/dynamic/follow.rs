//! The configuration of admission as an index that follows the cache, so that a configuration counts from the answer of its
//! write on. Files may configure admission, too: their contents come first, and have no revision.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::manifests::{Manifest, Manifests};
use crate::Cluster;
use crate::admission::Files;
use crate::cache::follower::{self, Follower};
use crate::codec::object::Object;
use crate::error::Error;
use crate::gotext::quote;
use crate::schema::names::Gvr;
use crate::storage::ResourceId;
use crate::unreadable::Unreadable;

/// The content of an index, made of the objects that it follows.
pub trait Content: Default + Send + Sync {
    /// The content at one moment, as requests use it.
    type Snapshot: Clone + Send + Sync;

    /// Upstream's word for such objects when they come from files.
    const NAME: &'static str;

    /// Replaces what was known of an object of the resource at this place of the index's list. The error says why the
    /// object cannot be read.
    fn take_in(&mut self, place: usize, name: &str, object: Option<&Object>) -> Result<(), String>;

    /// The snapshot that is in force now; `None` if nothing is.
    fn snapshot(&self) -> Option<Self::Snapshot>;

    /// The content that is made of the objects of files.
    fn of_manifests(manifests: &[Manifest]) -> Self;

    /// One snapshot before another.
    fn joined(first: &Self::Snapshot, then: &Self::Snapshot) -> Self::Snapshot;
}

/// An index of the objects of a few cluster-scoped resources.
pub struct Index<C: Content> {
    resources: &'static [Gvr],
    /// Made once the resources' numbers are known.
    known: OnceLock<Follower<Known<C>>>,
    of_files: Mutex<Option<C::Snapshot>>,
    files: Option<Directory>,
}

/// The directory whose files are in the index, too.
struct Directory {
    path: PathBuf,
    kinds: &'static [&'static str],
    /// A hash of what the files held when they were read last.
    hash: Mutex<String>,
}

struct Known<C: Content> {
    content: C,
    of_files: Option<C::Snapshot>,
    /// The configuration in force.
    snapshot: Option<C::Snapshot>,
    /// Objects that cannot be read: nobody knows what they would have refused.
    unreadable: BTreeSet<(usize, Box<str>)>,
}

impl<C: Content> Default for Known<C> {
    fn default() -> Self {
        Self { content: C::default(), of_files: None, snapshot: None, unreadable: BTreeSet::new() }
    }
}

impl<C: Content> Index<C> {
    pub fn new(resources: &'static [Gvr]) -> Self {
        Self { resources, known: OnceLock::new(), of_files: Mutex::new(None), files: None }
    }

    /// Adds what the files of a directory hold. An error if they cannot be used.
    pub fn with_files(
        mut self,
        directory: Option<PathBuf>,
        kinds: &'static [&'static str],
    ) -> Result<Self, String> {
        let Some(path) = directory else { return Ok(self) };
        let read = Manifests::read(&path, kinds).map_err(|why| {
            let shown = quote(&path.to_string_lossy());
            format!("failed to load static {} manifests from {shown}: {why}", C::NAME)
        })?;
        self.take_files(&read.list);
        self.files = Some(Directory { path, kinds, hash: Mutex::new(read.hash) });
        Ok(self)
    }

    pub fn files(&self) -> Option<&dyn Files> {
        self.files.as_ref().map(|_| self as &dyn Files)
    }

    /// The snapshot of the objects of files, if it has any.
    pub fn of_files(&self) -> Option<C::Snapshot> {
        self.files.as_ref()?;
        self.of_files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take_files(&self, manifests: &[Manifest]) {
        let of_files = C::of_manifests(manifests).snapshot();
        let mut held = self.of_files.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone_from(&of_files);
        if let Some(follower) = self.known.get() {
            let mut known = follower.write();
            known.of_files = of_files;
            follower::Content::finish(&mut *known);
        }
    }

    /// The index, once the first request asks for it.
    fn follower(&self, cluster: &Cluster) -> &Follower<Known<C>> {
        self.known.get_or_init(|| {
            let id =
                |name: &Gvr| cluster.resources.get(name).map_or(ResourceId::NONE, |resource| resource.id);
            let ids: Vec<ResourceId> = self.resources.iter().map(id).collect();
            let mut known = Known::default();
            known.of_files.clone_from(&self.of_files.lock().unwrap_or_else(PoisonError::into_inner));
            Follower::new(ids, known)
        })
    }

    /// The snapshot that is in force, with every change that the cache has. An error if an object cannot be read.
    pub fn newest(&self, cluster: &Cluster) -> Result<Option<C::Snapshot>, Error> {
        let known = self.follower(cluster).newest(&cluster.cache, &cluster.unreadable);
        if let Some((place, name)) = known.unreadable.first() {
            let plural = self.resources.get(*place).map_or("", |resource| &*resource.plural);
            return Err(Error::Internal(format!("{plural} {name:?} cannot be read")));
        }
        Ok(known.snapshot.clone())
    }
}

impl<C: Content> Files for Index<C> {
    fn directory(&self) -> &Path {
        self.files.as_ref().map_or(Path::new(""), |files| &files.path)
    }

    fn hash(&self) -> String {
        let hash = |files: &Directory| files.hash.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.files.as_ref().map(hash).unwrap_or_default()
    }

    fn reload(&self) -> Result<Option<String>, String> {
        let Some(files) = &self.files else { return Ok(None) };
        let mut hash = files.hash.lock().unwrap_or_else(PoisonError::into_inner);
        let read = Manifests::read(&files.path, files.kinds)?;
        if read.hash == *hash {
            return Ok(None);
        }
        self.take_files(&read.list);
        hash.clone_from(&read.hash);
        Ok(Some(read.hash))
    }
}

impl<C: Content> follower::Content for Known<C> {
    type Context = Unreadable;

    fn clear(&mut self, _: &Unreadable) {
        self.content = C::default();
        self.unreadable.clear();
    }

    fn take_in(&mut self, told: &Unreadable, place: usize, key: &str, object: Option<&Arc<Object>>) {
        let name = key.split_once('\0').map_or(key, |(_, name)| name);
        let key = (place, Box::from(name));
        self.unreadable.remove(&key);
        let taken = self.content.take_in(place, name, object.map(|object| &**object));
        if let (Err(why), Some(object)) = (taken, object) {
            told.tell("admission", object, &why);
            self.unreadable.insert(key);
        }
    }

    fn finish(&mut self) {
        self.snapshot = match (&self.of_files, self.content.snapshot()) {
            (Some(first), Some(then)) => Some(C::joined(first, &then)),
            (first, then) => then.or_else(|| first.clone()),
        };
    }
}
