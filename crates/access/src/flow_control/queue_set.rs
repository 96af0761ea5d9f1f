//! The queues of one priority level: fair queuing over virtual time, as upstream's queue sets do it.
//!
//! Virtual time R advances by the seats that each active queue gets. A queue's `next_r` is when its first request would start
//! if the queue alone were served at that pace; the request that would end first goes next. Everything here is computed under
//! the level's lock; nothing waits.

mod dispatch;
mod queue;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use self::queue::{Queue, Queues};
pub use self::state::{QueueState, Running, SetState, Totals};
use super::dealer::Hand;
use super::demand::Demand;
use super::waiter::Waiter;
use super::width::{ESTIMATED_SECONDS, Width};

/// The treatment of requests for which there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// There is always a seat.
    Exempt,
    Reject,
    Queue {
        queues: usize,
        hand: usize,
        /// The most requests that wait in a queue.
        length: usize,
    },
}

/// The seats of a request that runs.
#[derive(Debug)]
pub struct Ticket {
    id: u64,
    queue: Option<usize>,
    width: Width,
    started: Instant,
}

impl Ticket {
    /// How long the request has had its seats.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn seats(&self) -> usize {
        self.width.seats()
    }
}

/// The outcome of a request's arrival.
#[derive(Debug)]
pub enum Start {
    Runs(Ticket),
    Waits(QueuedRequest),
    /// Refused, for this reason in metrics.
    Refused(&'static str),
}

/// A request in a queue.
#[derive(Debug)]
pub struct QueuedRequest {
    pub queue: usize,
    pub id: u64,
    pub dispatched: oneshot::Receiver<Ticket>,
}

#[derive(Debug)]
pub struct QueueSet {
    discipline: Discipline,
    limit: usize,
    /// The queues in which something waits, runs or keeps seats.
    queues: Queues,
    r: f64,
    synced: Instant,
    waiting: usize,
    waiting_seats: usize,
    executing: usize,
    /// Requests that run and have said what they are, by the ids of their tickets.
    running: BTreeMap<u64, Running>,
    seats_in_use: usize,
    /// Queues with requests that wait or run.
    active: usize,
    /// Seats that requests of queues use or wait for.
    requested: usize,
    enqueued: usize,
    /// The queue that was served last.
    robin: usize,
    ids: u64,
    demand: Demand,
    totals: Totals,
}

impl QueueSet {
    pub fn new(discipline: Discipline, limit: usize, now: Instant) -> Self {
        Self {
            discipline,
            limit,
            queues: Queues::default(),
            r: 0.0,
            synced: now,
            waiting: 0,
            waiting_seats: 0,
            executing: 0,
            running: BTreeMap::new(),
            seats_in_use: 0,
            active: 0,
            requested: 0,
            enqueued: 0,
            robin: 0,
            ids: 0,
            demand: Demand::new(now),
            totals: Totals::default(),
        }
    }

    /// Changes how requests are queued, and how many seats there are.
    pub fn configure(&mut self, discipline: Discipline, limit: usize, now: Instant) {
        self.sync(now);
        (self.discipline, self.limit) = (discipline, limit);
        self.dispatch(now);
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn set_limit(&mut self, limit: usize, now: Instant) {
        self.configure(self.discipline, limit, now);
    }

    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    #[cfg(test)]
    pub fn seats_in_use(&self) -> usize {
        self.seats_in_use
    }

    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0 && self.seats_in_use == 0
    }

    /// The demand for seats since the last call.
    pub fn take_demand(&mut self, now: Instant) -> super::demand::Observed {
        self.demand.take(now)
    }

    /// Starts a request, or puts it into a queue, or refuses it.
    pub fn start(&mut self, width: Width, hash: u64, now: Instant) -> Start {
        self.sync(now);
        let Discipline::Queue { queues, hand, length } = self.discipline else {
            return match self.accommodates(width.seats()) {
                true => Start::Runs(self.run(None, width, now)),
                false => self.refuse("concurrency-limit"),
            };
        };
        let index = self.pick(&Hand::dealt(queues, hand, hash));
        let waiting = || self.queues.get(index).map_or(0, |queue| queue.waiting.len());
        if self.seats_in_use >= self.limit && waiting() >= length {
            return self.refuse("queue-full");
        }
        // The usual case: nobody waits, and there is room.
        if self.waiting == 0 && self.seats_in_use < self.limit && self.accommodates(width.seats()) {
            let width = width.within(self.limit);
            let r = self.r;
            let queue = self.awaken(index);
            queue.next_r = queue.next_r.max(r);
            queue.run(width);
            self.requested += width.seats();
            self.robin = index;
            return Start::Runs(self.run(Some(index), width, now));
        }
        let place = self.enqueue(index, width);
        self.observe(now);
        self.dispatch(now);
        Start::Waits(place)
    }

    fn refuse(&mut self, reason: &'static str) -> Start {
        self.totals.rejected += 1;
        Start::Refused(reason)
    }

    /// Says what a request is that waits.
    pub fn describe(&mut self, index: usize, id: u64, waiter: Waiter) {
        let waiting = self.queues.get_mut(index).map(|queue| &mut queue.waiting);
        if let Some(waiting) = waiting.and_then(|waiting| waiting.iter_mut().rev().find(|own| own.id == id)) {
            waiting.waiter = Some(Arc::new(waiter));
        }
    }

    /// Describes a request that runs.
    pub fn describe_running(&mut self, ticket: &Ticket, waiter: Arc<Waiter>) {
        let Ticket { id, queue, width, started } = *ticket;
        // One that has waited has said it then.
        self.running.entry(id).or_insert(Running { queue, width, started, waiter });
    }

    /// The state of the queues now.
    pub fn state(&self) -> SetState {
        let count = match self.discipline {
            Discipline::Queue { queues, .. } => queues,
            _ => 0,
        };
        let running = |queue| {
            let own = self.running.values().filter(move |running| running.queue == queue);
            own.cloned().collect()
        };
        let queue = |index| {
            let state = self.queues.get(index).map(Queue::state).unwrap_or_default();
            QueueState { running: running(Some(index)), ..state }
        };
        SetState {
            queues: (0..count).map(queue).collect(),
            queueless: running(None),
            is_idle: self.is_idle(),
            waiting: self.waiting,
            executing: self.executing,
            totals: self.totals,
        }
    }

    /// Takes a request out of its queue; false if it was dispatched before.
    pub fn cancel(&mut self, index: usize, id: u64, now: Instant) -> bool {
        self.sync(now);
        let Some(queue) = self.queues.get_mut(index) else { return false };
        let at = queue.waiting.iter().position(|waiting| waiting.id == id);
        let Some(waiting) = at.and_then(|at| queue.waiting.remove(at)) else { return false };
        queue.bound();
        self.totals.rejected += 1;
        self.totals.cancelled += 1;
        self.forget_waiting(index, waiting.width);
        self.requested -= waiting.width.seats();
        self.rest(index);
        self.observe(now);
        self.dispatch(now);
        true
    }

    /// Ends the work of a request. If it keeps its seats for some time, answers with that time, after which
    /// [`QueueSet::release`] is called.
    pub fn finish(&mut self, ticket: &Ticket, now: Instant) -> Option<Duration> {
        self.sync(now);
        self.executing -= 1;
        self.running.remove(&ticket.id);
        let lingering = Some(ticket.width.lingering).filter(|lingering| !lingering.is_zero());
        let released = if lingering.is_none() { ticket.width.seats() } else { 0 };
        if let Some((index, queue)) = self.queue_of(ticket) {
            let took = now.saturating_duration_since(ticket.started).as_secs_f64();
            queue.executing -= 1;
            queue.next_r -= ticket.width.initial as f64 * (ESTIMATED_SECONDS - took);
            queue.bound();
            queue.seats_in_use -= released;
            let (is_idle, is_empty) = (queue.is_idle(), queue.is_empty());
            self.active -= usize::from(is_idle);
            self.requested -= released;
            if is_empty {
                self.queues.remove(index);
            }
        }
        self.seats_in_use -= released;
        if lingering.is_none() {
            self.observe(now);
        }
        self.dispatch(now);
        lingering
    }

    /// Takes the seats back from a request that has not begun its work, as if it had not been dispatched.
    pub fn give_back(&mut self, ticket: &Ticket, now: Instant) {
        self.sync(now);
        self.undo(ticket, now);
        self.dispatch(now);
    }

    /// Gives the seats back that a finished request has kept.
    pub fn release(&mut self, ticket: &Ticket, now: Instant) {
        self.sync(now);
        let seats = ticket.width.seats();
        self.seats_in_use -= seats;
        if let Some((index, queue)) = self.queue_of(ticket) {
            queue.seats_in_use -= seats;
            self.requested -= seats;
            self.clear_away(index);
        }
        self.observe(now);
        self.dispatch(now);
    }
}

#[cfg(test)]
mod tests;
