//! Turns of the writers of one process: those who write the same key wait for each other, so that none of them is
//! refused again and again by what the others have written meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Key(Bytes),
    Lease(i64),
}

/// Locks by name. A lock exists as long as somebody holds it or waits for it.
#[derive(Default)]
pub struct Locks {
    held: Arc<Mutex<HashMap<Name, Arc<RwLock<()>>>>>,
}

/// Locks that are held until this is dropped.
pub struct Held {
    guards: Vec<Guard>,
    names: Vec<Name>,
    locks: Arc<Mutex<HashMap<Name, Arc<RwLock<()>>>>>,
}

/// Kept for its drop.
enum Guard {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Locks {
    /// Takes the locks of what is written, and shares those of what has to stay as it is. They are taken in their
    /// order, so nobody waits for somebody who waits for him; who comes first goes first.
    pub async fn take(&self, alone: BTreeSet<Name>, shared: BTreeSet<Name>) -> Held {
        let mut held = Held { guards: Vec::new(), names: Vec::new(), locks: self.held.clone() };
        let all: BTreeSet<_> = alone.union(&shared).cloned().collect();
        for name in all {
            let lock = {
                let mut locks = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                locks.entry(name.clone()).or_default().clone()
            };
            let is_alone = alone.contains(&name);
            held.names.push(name);
            held.guards.push(match is_alone {
                true => Guard::Alone { _guard: lock.write_owned().await },
                false => Guard::Shared { _guard: lock.read_owned().await },
            });
        }
        held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.guards.clear();
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        for name in &self.names {
            // Whoever waits has a clone of his own.
            if locks.get(name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                locks.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn keys(names: &[&'static str]) -> BTreeSet<Name> {
        names.iter().map(|name| Name::Key(Bytes::from_static(name.as_bytes()))).collect()
    }

    #[tokio::test]
    async fn who_writes_a_key_waits_for_its_turn() {
        let locks = Locks::default();
        let first = locks.take(keys(&["a", "b"]), BTreeSet::new()).await;
        assert!(locks.take(keys(&["b", "c"]), BTreeSet::new()).now_or_never().is_none());
        let other =
            locks.take(keys(&["c"]), BTreeSet::from([Name::Lease(1)])).now_or_never().expect("is free");
        assert!(locks.take(keys(&["d"]), BTreeSet::from([Name::Lease(1)])).now_or_never().is_some());
        assert!(locks.take(BTreeSet::from([Name::Lease(1)]), BTreeSet::new()).now_or_never().is_none());
        drop((first, other));
        assert!(locks.take(keys(&["b", "c"]), BTreeSet::new()).now_or_never().is_some());
        assert!(locks.held.lock().expect("not poisoned").is_empty());
    }
}
