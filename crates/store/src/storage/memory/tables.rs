//! The rows of a store in memory, and their indexes. They are persistent maps: a clone shares all rows, and later
//! writes do not change it.
//!
//! The tables of a fork lie over a [`Base`], copy on write: a row of the base is copied when a write first concerns its
//! key, and from then on only the tables know the key.

mod counting;

use std::iter::{Peekable, from_fn};
use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};

use super::base::{Base, BaseObject, row_of};
use crate::revision::Revision;
use crate::storage::commit::required_keys;
use crate::storage::judge::Write;
use crate::storage::sequence::stamped;
use crate::storage::{Author, Change, ChangeKind, Clock, Counting, Key, Mutation, ResourceId, Row, Scan};

/// The clock of a new store; the same as in the databases.
const FIRST: Revision = Revision(1);

/// One version of an object, and the change that made it.
pub struct Version {
    pub key: Key,
    pub revision: Revision,
    pub kind: ChangeKind,
    /// The version that was live before.
    pub previous: Option<Revision>,
    pub stored_version: Arc<str>,
    /// Empty for a deletion.
    pub value: Bytes,
    /// Empty for a deletion.
    pub uid: Arc<str>,
    pub committed_ms: i64,
    pub author: Option<Arc<Author>>,
    pub counting: Counting,
}

/// A live row: of the tables, or of the base below them.
pub enum Live<'a> {
    Own(&'a Arc<Version>),
    Base(Arc<dyn BaseObject>),
}

impl Live<'_> {
    pub fn revision(&self) -> Revision {
        match self {
            Self::Own(version) => version.revision,
            Self::Base(object) => object.revision(),
        }
    }

    pub fn namespace_and_name(&self) -> (&str, &str) {
        match self {
            Self::Own(version) => (&version.key.namespace, &version.key.name),
            Self::Base(object) => (object.namespace(), object.name()),
        }
    }

    pub fn row(&self, resource: ResourceId) -> Row {
        match self {
            Self::Own(version) => version.row(),
            Self::Base(object) => row_of(resource, &**object),
        }
    }
}

#[derive(Clone)]
pub struct Tables {
    pub clock: Clock,
    /// All versions that have not been swept, by revision.
    objects: OrdMap<Revision, Arc<Version>>,
    /// The same versions in key order, the oldest version of a key first.
    by_key: OrdMap<(Key, Revision), Arc<Version>>,
    /// The versions whose changes have not been swept.
    changes: OrdMap<Revision, Arc<Version>>,
    changes_by_resource: OrdSet<(ResourceId, Revision)>,
    /// The changes that take no revision in etcd's terms.
    uncounted: OrdMap<Revision, Counting>,
    /// The state that a fork began with; `None` for a store of its own.
    base: Option<Arc<dyn Base>>,
    /// The keys of the base's rows that have been copied.
    copied: OrdSet<Key>,
    /// The bytes of all values in the tables.
    pub bytes: u64,
    /// The oldest revision at which each resource can be read; those that are not in it, from `other_floors` on.
    pub floors: OrdMap<ResourceId, Revision>,
    pub other_floors: Revision,
    /// The stamp of the newest commit.
    pub committed_ms: i64,
    /// The last commit of each second in which there was one, but for the newest.
    pub marks: OrdMap<i64, Revision>,
}

impl Tables {
    /// The tables of a store that begins at this time.
    pub fn new(now_ms: i64) -> Self {
        Self {
            floors: OrdMap::new(),
            other_floors: FIRST,
            committed_ms: now_ms,
            marks: OrdMap::unit(now_ms, FIRST),
            clock: Clock { revision: FIRST, compacted: FIRST, lag: 0 },
            objects: OrdMap::new(),
            by_key: OrdMap::new(),
            changes: OrdMap::new(),
            changes_by_resource: OrdSet::new(),
            uncounted: OrdMap::new(),
            base: None,
            copied: OrdSet::new(),
            bytes: 0,
        }
    }
}

impl Version {
    pub fn is_live(&self) -> bool {
        self.kind != ChangeKind::Deleted
    }

    fn new(mutation: &Mutation, write: &Write, committed_ms: i64) -> Self {
        let (uid, stored_version, value) = match mutation.change.settled() {
            // The value is copied, since its bytes may be a slice of a larger buffer, which the store would keep alive.
            Change::Put { uid, stored_version, value } => {
                let bytes = match value.is_stamped() {
                    true => stamped(write.etcd_revision, value.bytes()),
                    false => Bytes::copy_from_slice(value.bytes()),
                };
                (uid.clone(), stored_version.clone(), bytes)
            }
            Change::Delete | Change::Count(_) => ("".into(), "".into(), Bytes::new()),
        };
        let Write { revision, kind, previous, .. } = *write;
        let (key, author, counting) = (mutation.key.clone(), mutation.author.clone(), mutation.counting);
        Self { key, revision, kind, previous, stored_version, value, uid, committed_ms, author, counting }
    }

    pub fn row(&self) -> Row {
        Row {
            resource: self.key.resource,
            namespace: Box::from(&*self.key.namespace),
            name: Box::from(&*self.key.name),
            revision: self.revision,
            value: self.value.clone(),
        }
    }

    /// The copy of a row of the base.
    fn copy(key: &Key, object: &dyn BaseObject) -> Self {
        Self {
            key: key.clone(),
            revision: object.revision(),
            kind: ChangeKind::Added,
            previous: None,
            stored_version: object.api_version().unwrap_or_default().into(),
            value: object.to_stored(),
            uid: object.uid().into(),
            // Unknown: the change that made the row is the parent's.
            committed_ms: 0,
            author: None,
            counting: Counting::Own,
        }
    }
}

impl Tables {
    /// The tables of a fork. Its clock goes on from the base's revision, and no state before it can be read.
    pub fn over(base: Arc<dyn Base>, now_ms: i64) -> Self {
        let first = base.revision();
        let clock = Clock { revision: first, compacted: first, lag: 0 };
        let marks = OrdMap::unit(now_ms, first);
        Self { clock, other_floors: first, marks, base: Some(base), ..Self::new(now_ms) }
    }

    pub fn base(&self) -> Option<&dyn Base> {
        self.base.as_deref()
    }

    /// Copies the rows of the base that a batch writes or requires.
    pub fn copy_rows(&mut self, batch: &[Mutation]) {
        let Some(base) = self.base.clone() else { return };
        for key in batch.iter().map(|mutation| &mutation.key).chain(required_keys(batch)) {
            if !self.copied.contains(key)
                && let Some(object) = base.get(key)
            {
                let version = Arc::new(Version::copy(key, &*object));
                self.copied.insert(key.clone());
                self.insert(version);
            }
        }
    }

    /// The live version of each mutation's key, then of each [required key](required_keys).
    pub fn live_versions(&self, batch: &[Mutation]) -> Vec<Option<Revision>> {
        let written = batch.iter().map(|mutation| &mutation.key);
        written.chain(required_keys(batch)).map(|key| self.live_version(key)).collect()
    }

    fn live_version(&self, key: &Key) -> Option<Revision> {
        let versions = (key.clone(), Revision(0))..=(key.clone(), Revision(u64::MAX));
        let (_, newest) = self.by_key.range(versions).next_back()?;
        newest.is_live().then_some(newest.revision)
    }

    /// Adds the rows of a batch and advances the clock. The batch is stamped with this time, or that of the one before.
    pub fn write(&mut self, batch: &[Mutation], writes: &[Write], now_ms: i64) {
        if writes.is_empty() {
            return;
        }
        let stamp = self.committed_ms.max(now_ms);
        if stamp / 1000 != self.committed_ms / 1000 {
            self.marks.insert(self.committed_ms, self.clock.revision);
        }
        self.committed_ms = stamp;
        for write in writes {
            let version = Arc::new(Version::new(&batch[write.index], write, stamp));
            let revision = version.revision;
            if version.counting != Counting::Own {
                self.uncounted.insert(revision, version.counting);
                self.clock.lag += 1;
            }
            self.insert(version.clone());
            self.changes_by_resource.insert((version.key.resource, revision));
            self.changes.insert(revision, version);
            self.clock.revision = revision;
        }
    }

    fn insert(&mut self, version: Arc<Version>) {
        self.bytes += version.value.len() as u64;
        self.objects.insert(version.revision, version.clone());
        self.by_key.insert((version.key.clone(), version.revision), version);
    }

    pub fn version(&self, revision: Revision) -> Option<&Arc<Version>> {
        self.objects.get(&revision)
    }

    /// The live versions of `scan` as of `at`, in key order. The caller applies the scan's limit.
    pub fn live_at<'a>(&'a self, scan: &Scan, at: Revision) -> impl Iterator<Item = Live<'a>> + use<'a> {
        let resource = scan.resource;
        let is_own = move |object: &Arc<dyn BaseObject>| {
            self.copied.contains(&Key::new(resource, object.namespace(), object.name()))
        };
        let base = self.base.as_ref().map(|base| base.objects(scan)).into_iter().flatten();
        merged(self.own_live_at(scan, at), base.filter(move |object| !is_own(object)))
    }

    /// The live versions of `scan` as of `at` that are in the tables, in key order.
    fn own_live_at<'a>(
        &'a self,
        scan: &Scan,
        at: Revision,
    ) -> impl Iterator<Item = &'a Arc<Version>> + use<'a> {
        let mut versions = self.versions(scan).filter(move |version| version.revision <= at).peekable();
        let newest = std::iter::from_fn(move || {
            let mut newest = versions.next()?;
            while let Some(newer) = versions.next_if(|next| next.key == newest.key) {
                newest = newer;
            }
            Some(newest)
        });
        newest.filter(|version| version.is_live())
    }

    /// All versions of the keys that `scan` covers.
    fn versions<'a>(&'a self, scan: &Scan) -> impl Iterator<Item = &'a Arc<Version>> + use<'a> {
        let (namespace, name) = scan.start();
        let start = (Key::new(scan.resource, namespace, name), Revision(u64::MAX));
        let (resource, only) = (scan.resource, scan.namespace.clone());
        let within = move |version: &&Arc<Version>| {
            version.key.resource == resource
                && only.as_deref().is_none_or(|only| *version.key.namespace == *only)
        };
        self.by_key.range(start..).map(|(_, version)| version).take_while(within)
    }

    /// The versions of a key below a revision, newest first.
    pub fn versions_of(&self, key: &Key, before: Revision) -> impl Iterator<Item = Arc<Version>> {
        let versions = (key.clone(), Revision(0))..(key.clone(), before);
        let base = self.base.as_ref().filter(|_| !self.copied.contains(key)).and_then(|base| base.get(key));
        let base = base.filter(|object| object.revision() < before);
        let base = base.map(|object| Arc::new(Version::copy(key, &*object)));
        self.by_key.range(versions).rev().map(|(_, version)| version.clone()).chain(base)
    }

    /// The change that made this revision, if it has not been swept.
    pub fn change(&self, revision: Revision) -> Option<&Arc<Version>> {
        self.changes.get(&revision)
    }

    /// The changes between two revisions, newest first.
    pub fn changes_between(&self, after: Revision, before: Revision) -> impl Iterator<Item = &Arc<Version>> {
        let between = Revision(after.0 + 1)..before.max(Revision(after.0 + 1));
        self.changes.range(between).rev().map(|(_, version)| version)
    }

    /// The changes after a revision, in revision order.
    pub fn changes_after(&self, after: Revision) -> impl Iterator<Item = &Arc<Version>> {
        self.changes.range(Revision(after.0 + 1)..).map(|(_, version)| version)
    }

    /// The changes of one resource after a revision, in revision order.
    pub fn changes_of(&self, resource: ResourceId, after: Revision) -> impl Iterator<Item = &Arc<Version>> {
        let range = (resource, Revision(after.0 + 1))..=(resource, Revision(u64::MAX));
        self.changes_by_resource.range(range).filter_map(|(_, revision)| self.changes.get(revision))
    }

    pub fn oldest_change(&self) -> Option<Revision> {
        self.changes.get_min().map(|(revision, _)| *revision)
    }

    pub fn floor(&self, resource: ResourceId) -> Revision {
        self.floors.get(&resource).copied().unwrap_or(self.other_floors)
    }

    /// The changes at or below the floors of their resources.
    pub fn due(&self) -> impl Iterator<Item = &Arc<Version>> {
        let mut next = self.changes_by_resource.get_min().map(|(resource, _)| *resource);
        let resources = std::iter::from_fn(move || {
            let resource = next?;
            let after = (resource, Revision(u64::MAX))..;
            next = self.changes_by_resource.range(after).next().map(|(resource, _)| *resource);
            Some(resource)
        });
        resources.flat_map(|resource| {
            let floor = self.floor(resource);
            self.changes_of(resource, Revision(0)).take_while(move |change| change.revision <= floor)
        })
    }

    /// Removes up to `limit` changes at or below the floors of their resources, and the versions that they made dead.
    /// Returns the number of changes.
    pub fn sweep(&mut self, limit: u32) -> u64 {
        let swept: Vec<Arc<Version>> = self.due().take(limit as usize).cloned().collect();
        for change in &swept {
            self.changes.remove(&change.revision);
            self.changes_by_resource.remove(&(change.key.resource, change.revision));
            self.uncounted.remove(&change.revision);
            if let Some(previous) = change.previous {
                self.remove(&change.key, previous);
            }
            if !change.is_live() {
                self.remove(&change.key, change.revision);
            }
        }
        swept.len() as u64
    }

    fn remove(&mut self, key: &Key, revision: Revision) {
        if let Some(version) = self.objects.remove(&revision) {
            self.bytes -= version.value.len() as u64;
        }
        self.by_key.remove(&(key.clone(), revision));
    }
}

/// Rows of the tables and of the base, which have no key in common, in key order.
fn merged<'a>(
    own: impl Iterator<Item = &'a Arc<Version>>,
    base: impl Iterator<Item = Arc<dyn BaseObject>>,
) -> impl Iterator<Item = Live<'a>> {
    let (mut own, mut base) = (own.map(Live::Own).peekable(), base.map(Live::Base).peekable());
    from_fn(move || match is_first(&mut own, &mut base) {
        true => own.next(),
        false => base.next(),
    })
}

fn is_first<'a>(
    own: &mut Peekable<impl Iterator<Item = Live<'a>>>,
    base: &mut Peekable<impl Iterator<Item = Live<'a>>>,
) -> bool {
    match (own.peek(), base.peek()) {
        (Some(own), Some(base)) => own.namespace_and_name() < base.namespace_and_name(),
        (own, _) => own.is_some(),
    }
}
