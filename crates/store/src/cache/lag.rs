//! How long the cache has been behind the revisions that are known to be committed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::revision::Revision;

#[derive(Default)]
pub struct Lag {
    committed: AtomicU64,
    /// A revision that the cache had not reached, and when that was first noticed.
    behind: Mutex<Option<(Revision, Instant)>>,
}

impl Lag {
    /// Notes that this revision is committed.
    pub fn committed(&self, revision: Revision) {
        self.committed.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// How long a committed revision has not been reached, judged by the calls so far, while the cache is at `at`. A
    /// cache that reaches revisions some time after their commit, and is behind newer ones by then, is not late.
    pub fn observe(&self, at: Revision, now: Instant) -> Duration {
        let committed = Revision(self.committed.load(Ordering::Relaxed));
        let mut behind = self.behind.lock().unwrap_or_else(|e| e.into_inner());
        match *behind {
            Some((goal, since)) if at < goal => now - since,
            _ => {
                *behind = (at < committed).then_some((committed, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_counted_from_the_first_look_and_ends_with_progress() {
        let (lag, start) = (Lag::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        lag.committed(Revision(10));
        assert_eq!(lag.observe(Revision(10), at(0)), Duration::ZERO);
        lag.committed(Revision(20));
        lag.committed(Revision(15));
        assert_eq!(lag.observe(Revision(10), at(1)), Duration::ZERO);
        assert_eq!(lag.observe(Revision(19), at(7)), Duration::from_secs(6));
        // The cache advances, but is behind again since other servers go on writing.
        lag.committed(Revision(30));
        assert_eq!(lag.observe(Revision(20), at(8)), Duration::ZERO);
        assert_eq!(lag.observe(Revision(29), at(10)), Duration::from_secs(2));
        assert_eq!(lag.observe(Revision(30), at(11)), Duration::ZERO);
    }
}
