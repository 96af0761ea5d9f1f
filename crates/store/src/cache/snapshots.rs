//! Recent states of single resources, each kept for the next page of a list that was taken from it.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::state::Objects;
use crate::revision::Revision;
use crate::storage::ResourceId;

/// A snapshot keeps all object versions in memory that were replaced since. So only a few are kept, and not for long.
const MAX_KEPT: usize = 32;
const MAX_IDLE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Snapshots {
    /// The one used last is at the end.
    kept: Mutex<VecDeque<Kept>>,
}

struct Kept {
    resource: ResourceId,
    revision: Revision,
    objects: Objects,
    used: Instant,
}

impl Snapshots {
    pub fn put(&self, resource: ResourceId, revision: Revision, objects: Objects) {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let now = Instant::now();
        kept.retain(|k| now - k.used < MAX_IDLE && (k.resource, k.revision) != (resource, revision));
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(Kept { resource, revision, objects, used: now });
    }

    pub fn get(&self, resource: ResourceId, revision: Revision) -> Option<Objects> {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let at = kept.iter().position(|k| (k.resource, k.revision) == (resource, revision))?;
        let mut found = kept.remove(at)?;
        found.used = Instant::now();
        let objects = found.objects.clone();
        kept.push_back(found);
        Some(objects)
    }

    /// Drops the snapshots of a resource that is not held any more.
    pub fn forget(&self, resource: ResourceId) {
        self.kept.lock().unwrap_or_else(|e| e.into_inner()).retain(|k| k.resource != resource);
    }

    /// Drops snapshots that were not used lately.
    pub fn expire(&self, now: Instant) {
        self.kept
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .retain(|k| now.saturating_duration_since(k.used) < MAX_IDLE);
    }
}
