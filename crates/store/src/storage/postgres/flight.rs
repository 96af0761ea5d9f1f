//! How many batches are under way at once.
//!
//! The database commits them one after the other. A single one under way leaves it idle while an answer and the next batch
//! travel; more than are needed to fill that time only make the batches smaller, since a batch takes nothing in once it is
//! sent. So there are as many as fit into the distance, measured from their own answers. Where batches are large, it is this
//! server's work on one of them, before and after, that leaves the database idle; so there are two then.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::batch::Reply;
use crate::storage::Batch;

/// The most batches under way. Each has a connection.
pub const MOST: usize = 4;

/// From this size on, two batches under way are better than one even next door (measured with 128 writers: 1.2 times the rate;
/// with 16 writers, none).
const LARGE: usize = 32;

/// How often a batch lets the server's other tasks run before it looks whether their writes have come.
const YIELDS: usize = 8;
/// The share of the time that a batch would wait for the clock's lock in which it rather waits for more writes.
const LINGER: f64 = 0.5;
/// A shorter wait costs more than it brings, and a longer one would be due to something else than others' batches.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(20);

pub struct Flights {
    state: Mutex<State>,
    landed: Notify,
}

struct State {
    under_way: usize,
    /// The batches whose answers are lost, and which let others begin meanwhile.
    lost: usize,
    /// Seconds that a batch is on its way to the database and back.
    distance: f64,
    /// Seconds that a batch holds the clock's lock.
    held: f64,
    /// Seconds that a batch waited for the lock.
    waited: f64,
    /// The mutations of the batch that was answered last. Their callers may soon have others.
    landed: usize,
}

/// A batch under way.
pub struct Flight<'a> {
    flights: &'a Flights,
    lost: bool,
}

impl Flights {
    pub fn new() -> Self {
        let state = State { under_way: 0, lost: 0, distance: 0.0, held: 0.0, waited: 0.0, landed: 0 };
        Self { state: Mutex::new(state), landed: Notify::new() }
    }

    /// Waits until there is room for another batch.
    pub async fn begin(&self) -> Flight<'_> {
        loop {
            {
                let mut state = self.state();
                if state.under_way < state.most() {
                    state.under_way += 1;
                    return Flight { flights: self, lost: false };
                }
            }
            self.landed.notified().await;
        }
    }

    /// Lets a batch gather until it is as large as the last one: the callers who were answered with that one are just about
    /// to write again. A batch that finds other servers' batches before it would only wait in the database meanwhile.
    pub async fn gather(&self, batch: &mut dyn Batch) {
        let (wanted, pause) = {
            let state = self.state();
            (state.landed, Duration::from_secs_f64(state.waited * LINGER).min(LONGEST))
        };
        if wanted < 2 {
            return;
        }
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
            let done = poll_fn(|context| Poll::Ready(batch.poll_gather(context, wanted).is_ready())).await;
            if done {
                return;
            }
        }
        if pause > SHORTEST {
            let _ = timeout(pause, poll_fn(|context| batch.poll_gather(context, wanted))).await;
        }
    }

    /// Notes how long a batch took.
    pub fn note(&self, took: Duration, size: usize, reply: &Reply) {
        let mut state = self.state();
        state.landed = size;
        state.waited += (reply.waited.as_secs_f64() - state.waited) / 4.0;
        state.note(took.saturating_sub(reply.waited + reply.held), reply.held);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Distances are taken at their shortest, since busy processors only make them longer. That of holding the lock is a
    /// mean.
    fn note(&mut self, distance: Duration, held: Duration) {
        let (distance, held) = (distance.as_secs_f64(), held.as_secs_f64());
        match self.held {
            0.0 => (self.distance, self.held) = (distance, held),
            _ => {
                let share = if distance < self.distance { 0.5 } else { 1.0 / 64.0 };
                self.distance += (distance - self.distance) * share;
                self.held += (held - self.held) / 16.0;
            }
        }
    }

    fn most(&self) -> usize {
        if self.held <= 0.0 {
            return 1;
        }
        let least = if self.landed < LARGE { 1 } else { 2 };
        ((1.0 + self.distance / self.held).round() as usize).clamp(least, MOST)
    }
}

impl Flight<'_> {
    /// The answer is lost, and it may take long to find out what became of the batch. Another may begin meanwhile, so that
    /// its writers are told at once whether the database is there; but no more than [`MOST`], since each keeps a connection.
    pub fn lose(&mut self) {
        let mut state = self.flights.state();
        if !self.lost && state.lost < MOST {
            self.lost = true;
            state.lost += 1;
            state.under_way -= 1;
            self.flights.landed.notify_one();
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut state = self.flights.state();
        match self.lost {
            true => state.lost -= 1,
            false => {
                state.under_way -= 1;
                self.flights.landed.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farther_the_more() {
        let most = |distance: u64, held: u64| {
            let mut state = State { under_way: 0, lost: 0, distance: 0.0, held: 0.0, waited: 0.0, landed: 0 };
            for _ in 0..100 {
                state.note(Duration::from_micros(distance), Duration::from_micros(held));
            }
            state.most()
        };
        assert_eq!([most(200, 1000), most(1200, 1000), most(5400, 1000), most(5400, 8000)], [1, 2, MOST, 2]);
    }

    #[test]
    fn two_where_batches_are_large() {
        let most = |landed: usize| {
            let mut state = State { under_way: 0, lost: 0, distance: 0.0, held: 0.0, waited: 0.0, landed };
            state.note(Duration::from_micros(200), Duration::from_micros(1000));
            state.most()
        };
        assert_eq!([most(LARGE - 1), most(LARGE)], [1, 2]);
    }

    #[tokio::test]
    async fn who_waits_is_let_in_when_another_has_landed() {
        let flights = Flights::new();
        let first = flights.begin().await;
        let mut second = Box::pin(flights.begin());
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        let _second = second.await;
    }

    #[tokio::test]
    async fn who_is_lost_makes_room_within_limits() {
        let flights = Flights::new();
        let mut lost = Vec::new();
        for _ in 0..MOST {
            let mut flight = flights.begin().await;
            flight.lose();
            flight.lose();
            lost.push(flight);
        }
        let mut last = flights.begin().await;
        last.lose();
        let mut next = Box::pin(flights.begin());
        assert!(futures_util::poll!(&mut next).is_pending());
        lost.clear();
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(last);
        drop(next.await);
        let state = flights.state();
        assert_eq!((state.under_way, state.lost), (0, 0));
    }
}
