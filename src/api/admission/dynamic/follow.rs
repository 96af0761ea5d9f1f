//! What configures admission, as an index that follows the cache: before somebody asks, the index takes in what has
//! changed, so that a configuration counts from the answer of its write on. Files may configure admission, too: what they
//! hold comes first, and has no revision.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::manifests::{Manifest, Manifests};
use crate::api::Api;
use crate::api::admission::Files;
use crate::api::error::Error;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::gotext::quote;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::ResourceId;

/// What an index makes of objects.
pub trait Content: Default + Send + Sync {
    /// What is asked for, at one moment.
    type Snapshot: Clone + Send + Sync;

    /// What upstream calls such objects when they come from files.
    const NAME: &'static str;

    /// Replaces what was known of an object of the resource at this place of the index's list. The error says why the
    /// object cannot be read.
    fn take_in(&mut self, place: usize, name: &str, object: Option<&Object>) -> Result<(), String>;

    /// What is in force now; `None` if that is nothing.
    fn snapshot(&self) -> Option<Self::Snapshot>;

    /// What the objects of files come to.
    fn of_manifests(manifests: &[Manifest]) -> Self;

    /// One snapshot before another.
    fn joined(first: &Self::Snapshot, then: &Self::Snapshot) -> Self::Snapshot;
}

/// An index of the objects of a few cluster-scoped resources.
pub struct Index<C: Content> {
    resources: &'static [Gvr],
    ids: OnceLock<Vec<ResourceId>>,
    known: RwLock<Known<C>>,
    /// Every change up to here is known. Raised under the lock.
    reached: AtomicU64,
    /// The [count of rereads](State::rereads) of a state that was read as a whole. Raised under the lock.
    rereads: AtomicU64,
    /// Whether nothing is in force. Written under the lock, before `reached`.
    is_empty: AtomicBool,
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
    /// What files hold.
    of_files: Option<C::Snapshot>,
    /// All that is in force.
    snapshot: Option<C::Snapshot>,
    /// Objects that cannot be read: nobody knows what they would have refused.
    unreadable: BTreeSet<(usize, Box<str>)>,
}

impl<C: Content> Index<C> {
    pub fn new(resources: &'static [Gvr]) -> Self {
        let (content, unreadable) = (C::default(), BTreeSet::new());
        let known = Known { content, of_files: None, snapshot: None, unreadable };
        Self {
            resources,
            ids: OnceLock::new(),
            known: RwLock::new(known),
            reached: AtomicU64::new(0),
            rereads: AtomicU64::new(0),
            is_empty: AtomicBool::new(true),
            files: None,
        }
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

    /// What files have put in force.
    pub fn of_files(&self) -> Option<C::Snapshot> {
        self.files.as_ref()?;
        self.known.read().unwrap_or_else(PoisonError::into_inner).of_files.clone()
    }

    fn take_files(&self, manifests: &[Manifest]) {
        let of_files = C::of_manifests(manifests).snapshot();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.of_files = of_files;
        self.renew(&mut known);
    }

    /// What is in force, with every change that the cache has. An error if an object cannot be read.
    pub fn newest(&self, api: &Api) -> Result<Option<C::Snapshot>, Error> {
        let ids = self.ids.get_or_init(|| {
            let ids = self.resources.iter().filter_map(|name| Some(api.resources.get(name)?.id));
            ids.collect()
        });
        let (state, reached) = (api.cache.any(), self.reached.load(Ordering::Acquire));
        let is_behind = || ids.iter().any(|id| state.changed(*id).is_some_and(|changed| changed.0 > reached));
        if reached == 0 || self.is_reread(&state) || is_behind() {
            self.catch_up(api, ids);
        }
        if self.is_empty.load(Ordering::Acquire) {
            return Ok(None);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((place, name)) = known.unreadable.first() {
            let plural = self.resources.get(*place).map_or("", |resource| &*resource.plural);
            return Err(Error::Internal(format!("{plural} {name:?} cannot be read")));
        }
        Ok(known.snapshot.clone())
    }

    /// Whether objects may be readable in a state that were not before, though none has changed.
    fn is_reread(&self, state: &State) -> bool {
        self.rereads.load(Ordering::Acquire) < state.rereads
    }

    fn catch_up(&self, api: &Api, ids: &[ResourceId]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let (state, reached) = (api.cache.any(), Revision(self.reached.load(Ordering::Acquire)));
        if self.is_reread(&state) {
            return self.rebuild(api, ids, &mut known);
        }
        for (place, id) in ids.iter().enumerate() {
            match api.cache.changed_keys(*id, reached).filter(|_| reached.0 > 0) {
                Some(keys) => {
                    for key in keys {
                        let name = key.split_once('\0').map_or(&*key, |(_, name)| name);
                        known.take_in(api, place, name, state.get(*id, "", name).as_deref());
                    }
                }
                None => return self.rebuild(api, ids, &mut known),
            }
        }
        self.finish(&mut known, &state);
    }

    fn rebuild(&self, api: &Api, ids: &[ResourceId], known: &mut Known<C>) {
        let state = api.cache.any();
        known.content = C::default();
        known.unreadable.clear();
        for (place, id) in ids.iter().enumerate() {
            for object in state.objects(*id).range(&Range::of(None)) {
                known.take_in(api, place, object.name(), Some(object));
            }
        }
        self.finish(known, &state);
        self.rereads.fetch_max(state.rereads, Ordering::AcqRel);
    }

    fn finish(&self, known: &mut Known<C>, state: &Arc<State>) {
        self.renew(known);
        self.reached.fetch_max(state.revision.0, Ordering::AcqRel);
    }

    fn renew(&self, known: &mut Known<C>) {
        known.snapshot = match (&known.of_files, known.content.snapshot()) {
            (Some(first), Some(then)) => Some(C::joined(first, &then)),
            (first, then) => then.or_else(|| first.clone()),
        };
        let is_empty = known.snapshot.is_none() && known.unreadable.is_empty();
        self.is_empty.store(is_empty, Ordering::Release);
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

impl<C: Content> Known<C> {
    fn take_in(&mut self, api: &Api, place: usize, name: &str, object: Option<&Object>) {
        let key = (place, Box::from(name));
        self.unreadable.remove(&key);
        let taken = self.content.take_in(place, name, object);
        if let (Err(why), Some(object)) = (taken, object) {
            api.unreadable.tell("admission", object, &why);
            self.unreadable.insert(key);
        }
    }
}
