//! Revisions as etcd counts them, and ranges that have changed.

use super::Tables;
use crate::revision::Revision;
use crate::storage::sequence::check_counted;
use crate::storage::{Clock, Counting, Error, UnchangedRange};

impl Tables {
    /// Whether a row of a range has changed since the range's revision.
    pub fn has_changed(&self, range: &UnchangedRange) -> bool {
        self.changes_of(range.resource, range.since).any(|change| range.covers(&change.key))
    }

    /// How many changes up to a readable revision take no revision in etcd's terms.
    pub fn lag_at(&self, at: Revision) -> i64 {
        self.clock.lag - self.uncounted.range(Revision(at.0 + 1)..).count() as i64
    }

    /// The last revision of a unit at which a revision in etcd's terms is the newest one.
    pub fn sequence_of(&self, revision: i64) -> Result<Revision, Error> {
        let Clock { revision: end, compacted, .. } = self.clock;
        let mut lag = self.lag_at(compacted);
        check_counted(revision, compacted.0 as i64 - lag, self.clock.etcd_revision())?;
        if revision == self.clock.etcd_revision() {
            return Ok(end);
        }
        for uncounted in
            self.uncounted.range(Revision(compacted.0 + 1)..).map(|(uncounted, _)| uncounted.0 as i64)
        {
            if uncounted > revision + 1 + lag {
                break;
            }
            lag += 1;
        }
        // The change that takes the next revision, and before it those that share it.
        let next = Revision((revision + 1 + lag) as u64);
        let shared = self.uncounted.range(Revision(compacted.0 + 1)..next).rev().zip((0..next.0).rev());
        let shared =
            shared.take_while(|((at, counting), before)| at.0 == *before && **counting == Counting::Shared);
        Ok(Revision(next.0 - 1 - shared.count() as u64))
    }
}
