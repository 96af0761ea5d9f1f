//! When a namespace whose objects wait for others is looked through again: once something of their kind has changed, and
//! less and less often while that does not help.

use std::time::Duration;

use tokio::time::Instant;

use crate::cache::State;
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::storage::ResourceId;

/// The pause after the first look.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause between two looks. Upstream pauses for 8 to 15 s.
const LONGEST: Duration = Duration::from_secs(8);

/// The contents that a look has left in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The resources of which there are objects.
    resources: Vec<ResourceId>,
    /// The number of objects.
    count: usize,
    /// Whether something has failed that may succeed without a change.
    failed: bool,
    /// A revision that the look has seen at least.
    revision: Revision,
    rereads: u64,
}

impl Left {
    /// `seen` is the state before the look.
    pub fn new(resources: Vec<ResourceId>, count: usize, failed: bool, seen: &State) -> Self {
        Self { resources, count, failed, revision: seen.revision, rereads: seen.rereads }
    }

    /// A look that has come to no end.
    pub fn failed() -> Self {
        Self { failed: true, ..Self::default() }
    }
}

/// A namespace that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The version of the namespace.
    namespace: Revision,
    left: Left,
    pause: Duration,
    until: Instant,
}

impl Waiting {
    /// `before` is how the namespace waited until this look.
    pub fn new(namespace: &Object, left: Left, before: Option<Self>, now: Instant) -> Self {
        let in_vain = before.filter(|before| before.left.count == left.count);
        let pause = in_vain.map_or(FIRST, |before| (before.pause * 2).min(LONGEST));
        Self { namespace: namespace.revision(), left, pause, until: now + pause }
    }

    /// Whether another look may show something else.
    pub fn is_due(&self, namespace: &Object, state: &State, now: Instant) -> bool {
        let Left { resources, failed, revision, rereads, .. } = &self.left;
        let has_changed = |id: &ResourceId| state.changed(*id).is_some_and(|changed| changed > *revision);
        let may_differ = *failed
            || *rereads < state.rereads
            || self.namespace != namespace.revision()
            || resources.iter().any(has_changed);
        may_differ && now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cache::Objects;
    use crate::codec::object::Draft;

    const PODS: ResourceId = ResourceId(1);
    const MAPS: ResourceId = ResourceId(2);

    fn namespace(revision: u64) -> Object {
        Draft::of_json("", "t", r#"{"metadata":{"name":"t"}}"#.into()).into_object(Revision(revision))
    }

    /// A state in which a ConfigMap has changed at `revision`.
    fn state(revision: u64) -> State {
        let mut state = State::at(Revision(5));
        for resource in [PODS, MAPS] {
            state.load(resource, Objects::default());
        }
        if revision > 5 {
            let map = Draft::of_json("t", "a", r#"{"metadata":{"name":"a"}}"#.into());
            let map = Arc::new(map.into_object(Revision(revision)));
            state.apply(MAPS, "t\0a", Revision(revision), Some(map)).expect("held");
            state.revision = Revision(revision);
        }
        state
    }

    #[test]
    fn nothing_is_looked_through_again_before_something_of_it_has_changed() {
        let now = Instant::now();
        let later = now + Duration::from_secs(3600);
        let left = |resource| Left::new(vec![resource], 1, false, &state(5));
        let waiting = |resource| Waiting::new(&namespace(3), left(resource), None, now);
        assert!(!waiting(MAPS).is_due(&namespace(3), &state(5), later));
        assert!(!waiting(PODS).is_due(&namespace(3), &state(6), later), "ConfigMaps are no Pods");
        assert!(waiting(MAPS).is_due(&namespace(3), &state(6), later));
        assert!(waiting(MAPS).is_due(&namespace(4), &state(5), later), "the namespace has changed");
        let mut reread = state(5);
        reread.rereads = 1;
        assert!(waiting(MAPS).is_due(&namespace(3), &reread, later));
        let failed = Waiting::new(&namespace(3), Left::failed(), None, now);
        assert!(
            failed.is_due(&namespace(3), &state(5), later) && !failed.is_due(&namespace(3), &state(6), now)
        );
    }

    #[test]
    fn looks_in_vain_become_rare() {
        let now = Instant::now();
        let left = |count| Left::new(vec![MAPS], count, false, &state(5));
        let mut waiting = Waiting::new(&namespace(3), left(7), None, now);
        assert_eq!(waiting.pause, FIRST);
        for _ in 0..5 {
            waiting = Waiting::new(&namespace(3), left(7), Some(waiting), now);
        }
        assert_eq!(waiting.pause, LONGEST);
        assert!(!waiting.is_due(&namespace(3), &state(6), now + LONGEST - FIRST));
        assert!(waiting.is_due(&namespace(3), &state(6), now + LONGEST));
        let waiting = Waiting::new(&namespace(3), left(6), Some(waiting), now);
        assert_eq!(waiting.pause, FIRST, "there is less");
    }
}
