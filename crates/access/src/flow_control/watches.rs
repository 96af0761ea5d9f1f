//! Counts watches, to know how many of them a write concerns.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auth::authorizer::Attributes;

/// The numbers of watches by what they see. What they see is known by its hash alone.
#[derive(Debug, Default)]
pub struct Watches {
    hasher: RandomState,
    counts: Mutex<HashMap<u64, usize>>,
}

/// A watch that is counted until this is dropped.
pub struct Watching {
    watches: Arc<Watches>,
    scope: u64,
}

impl Watches {
    pub fn register(self: Arc<Self>, watch: &Attributes<'_>) -> Watching {
        let scope = self.scope(watch, watch.namespace, watch.name);
        *self.counts().entry(scope).or_default() += 1;
        Watching { watches: self, scope }
    }

    /// How many watches see what a request writes: those of the whole resource, of its namespace, and of the object.
    pub fn concerned(&self, write: &Attributes<'_>) -> usize {
        let counts = self.counts();
        if counts.is_empty() {
            return 0;
        }
        let of =
            |namespace, name| counts.get(&self.scope(write, namespace, name)).copied().unwrap_or_default();
        let mut all = of("", "");
        if !write.namespace.is_empty() {
            all += of(write.namespace, "");
        }
        if !write.name.is_empty() {
            all += of(write.namespace, write.name);
        }
        all
    }

    fn scope(&self, request: &Attributes<'_>, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((request.group, request.resource, namespace, name))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut counts = self.watches.counts();
        if let Some(count) = counts.get_mut(&self.scope) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    #[test]
    fn watches_of_everything_of_a_namespace_and_of_one_object() {
        let (user, watches) = (User::default(), Arc::new(Watches::default()));
        let of = |namespace, name| Attributes {
            resource: "pods",
            namespace,
            name,
            ..Attributes::of_path(&user, "watch", "")
        };
        let watching = [of("", ""), of("n", ""), of("n", "p"), of("m", "")]
            .map(|watch| watches.clone().register(&watch));
        assert_eq!(watches.concerned(&of("n", "p")), 3);
        assert_eq!(watches.concerned(&of("n", "q")), 2);
        assert_eq!(watches.concerned(&of("k", "p")), 1);
        drop(watching);
        assert_eq!(watches.concerned(&of("n", "p")), 0);
        assert!(watches.counts().is_empty());
    }
}
