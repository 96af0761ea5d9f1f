//! Custom resources: the version that their definition describes, and the revision from which on it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use super::hook::Hook;
use crate::kinds::custom::ServedVersion;
use crate::revision::Revision;
use crate::storage::{Expect, Key, Requirement};

/// A definition as the store has it.
#[derive(Debug)]
pub struct StoredDefinition {
    key: Key,
    /// The newest revision with the same meaning as when the resources of the definition were made.
    revision: AtomicU64,
}

/// The members that only custom resources have: the version that their definition describes, and the revision from which
/// on it does.
#[derive(Clone, Debug)]
pub struct Custom {
    pub version: ServedVersion,
    pub stored: Arc<StoredDefinition>,
    /// Converts objects from version to version; `None` with strategy `None`.
    pub hook: Option<Arc<Hook>>,
    /// Cancelled when a generation serves the resource in another form; shared by resources of the same form.
    pub replaced: Arc<CancellationToken>,
}

impl StoredDefinition {
    pub fn new(key: Key, revision: Revision) -> Self {
        Self { key, revision: AtomicU64::new(revision.0) }
    }

    /// Notes that the definition means the same at a newer revision.
    pub fn confirm(&self, revision: Revision) {
        self.revision.store(revision.0, Ordering::SeqCst);
    }

    /// The requirement of a write that was judged by the definition: that it still means the same.
    fn requirement(&self) -> Requirement {
        let revision = Revision(self.revision.load(Ordering::SeqCst));
        Requirement { key: self.key.clone(), expect: Expect::At(revision) }
    }
}

impl Custom {
    pub fn requirement(&self) -> Requirement {
        self.stored.requirement()
    }
}
