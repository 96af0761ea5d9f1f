//! The batches under way.
//!
//! The database commits them one after the other. With a single one under way it would be idle while an answer and the next
//! batch travel, and while this server works on them; more than two make the batches smaller, since a batch takes nothing in
//! once it is sent (`docs/adr/0017-two-batches-are-under-way.md`).

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::batch::Reply;
use crate::storage::Batch;

/// The most batches under way. Each has a connection.
pub const MOST: usize = 2;

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

#[derive(Default)]
struct State {
    under_way: usize,
    /// The batches whose answers are lost, and which let others begin meanwhile.
    lost: usize,
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
        Self { state: Mutex::default(), landed: Notify::new() }
    }

    /// Waits until there is room for another batch.
    pub async fn begin(&self) -> Flight<'_> {
        loop {
            {
                let mut state = self.state();
                if state.under_way < MOST {
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

    /// Notes how large a batch was, and how long it waited for the clock's lock.
    pub fn note(&self, size: usize, reply: &Reply) {
        let mut state = self.state();
        state.landed = size;
        state.waited += (reply.waited.as_secs_f64() - state.waited) / 4.0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test]
    async fn who_waits_is_let_in_when_another_has_landed() {
        let flights = Flights::new();
        let (first, _second) = (flights.begin().await, flights.begin().await);
        let mut third = Box::pin(flights.begin());
        assert!(futures_util::poll!(&mut third).is_pending());
        drop(first);
        let _third = third.await;
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
        let (mut last, _another) = (flights.begin().await, flights.begin().await);
        last.lose();
        let mut next = Box::pin(flights.begin());
        assert!(futures_util::poll!(&mut next).is_pending());
        lost.clear();
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(last);
        drop(next.await);
        let state = flights.state();
        assert_eq!((state.under_way, state.lost), (1, 0));
    }
}
