//! The pace of a migration: its configured rate while no one else writes, and much slower otherwise.

use std::time::Duration;

use tokio::time::Instant;

use crate::revision::Revision;

/// The period in which others' writes are counted.
const WINDOW: Duration = Duration::from_millis(200);
/// More writes per second than heartbeats and status updates of controllers cause.
const OTHERS_PER_SECOND: f64 = 20.0;
/// While others write, each page is followed by a pause this many times as long as the page took. A page occupies the
/// clock's lock and processors no longer than it takes, so a migration costs others at most a tenth.
const REST: u32 = 9;
/// The most rows in a page while others write: few enough that a single page goes unnoticed.
const BESIDE_OTHERS: u32 = 32;

/// The clock's revision at some time.
#[derive(Clone, Copy, Debug)]
struct Sight {
    at: Instant,
    revision: Revision,
    /// Writes of the migration since then.
    own: u64,
}

#[derive(Debug)]
pub struct Pace {
    /// Objects per second.
    rate: u32,
    last: Sight,
    others_write: bool,
}

impl Pace {
    pub fn new(rate: u32, at: Instant, revision: Revision) -> Self {
        Self { rate, last: Sight { at, revision, own: 0 }, others_write: false }
    }

    /// How many rows the next page may have; at most `size`.
    pub fn page(&self, size: u32) -> u32 {
        if self.others_write { size.min(BESIDE_OTHERS) } else { size }
    }

    /// How long to pause after a page of `objects` that was started at `began` and finished at `now`. `revision` is the
    /// store's clock, which the writes of all servers advance.
    pub fn rest(&mut self, objects: usize, began: Instant, now: Instant, revision: Revision) -> Duration {
        self.last.own += objects as u64;
        let seen = now - self.last.at;
        if seen >= WINDOW {
            let others = (revision.0 - self.last.revision.0).saturating_sub(self.last.own);
            self.others_write = others as f64 / seen.as_secs_f64() > OTHERS_PER_SECOND;
            self.last = Sight { at: now, revision, own: 0 };
        }
        let took = now - began;
        let due = Duration::from_secs_f64(objects as f64 / f64::from(self.rate)).saturating_sub(took);
        if self.others_write { due.max(took * REST) } else { due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The pauses after pages of 100 objects that took 10 ms each. `others` are the numbers of writes by others during
    /// each page.
    fn rests(others: &[u64]) -> Vec<u128> {
        let mut now = Instant::now();
        let mut revision = 0;
        let mut pace = Pace::new(5000, now, Revision(revision));
        let mut rests = Vec::new();
        for others in others {
            let began = now;
            now += 10 * MS;
            revision += 100 + others;
            let rest = pace.rest(100, began, now, Revision(revision));
            now += rest;
            rests.push(rest.as_millis());
        }
        rests
    }

    #[test]
    fn the_rate_is_kept_and_the_writes_of_others_make_room() {
        // 100 objects at 5,000 per second take 20 ms. Heartbeats do not count as other writers.
        assert_eq!(rests(&[0; 40]), [10; 40]);
        assert_eq!(rests(&[vec![0; 20], vec![1], vec![0; 19]].concat()), [10; 40]);
        let busy = rests(&[vec![0; 12], vec![20; 12], vec![0; 20]].concat());
        assert_eq!((busy[0], busy[20], busy[43]), (10, 90, 10), "{busy:?}");
    }

    #[test]
    fn pages_are_small_while_others_write() {
        let start = Instant::now();
        let mut pace = Pace::new(5000, start, Revision(0));
        assert_eq!(pace.page(256), 256);
        pace.rest(256, start, start + WINDOW, Revision(1000));
        assert_eq!((pace.page(256), pace.page(10)), (BESIDE_OTHERS, 10));
    }

    #[test]
    fn a_slow_page_is_not_made_slower() {
        let start = Instant::now();
        let mut pace = Pace::new(1000, start, Revision(0));
        assert_eq!(pace.rest(100, start, start + 150 * MS, Revision(100)), Duration::ZERO);
    }
}
