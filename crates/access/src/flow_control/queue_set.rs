//! The queues of one priority level: fair queuing over virtual time, as upstream's queue sets do it.
//!
//! Virtual time R advances by the seats that each active queue gets. A queue's `next_r` is when its first request would start
//! if the queue alone were served at that pace; the request that would end first goes next. Everything here is computed under
//! the level's lock; nothing waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::dealer::Hand;
use super::demand::Demand;
use super::dump::Waiter;

/// How long a request is taken to need its seats before that is known.
const ESTIMATED_SECONDS: f64 = 0.003;

/// How many seats a request needs, and for how long it keeps some after it was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    pub initial: usize,
    /// Needed after the answer, while watchers are served.
    pub last: usize,
    pub lingering: Duration,
}

impl Width {
    pub const ONE: Self = Self { initial: 1, last: 0, lingering: Duration::ZERO };

    pub fn of(seats: usize) -> Self {
        Self { initial: seats, ..Self::ONE }
    }

    pub fn seats(self) -> usize {
        self.initial.max(self.last)
    }

    /// In seat-seconds.
    fn work(self) -> f64 {
        self.initial as f64 * ESTIMATED_SECONDS + self.last as f64 * self.lingering.as_secs_f64()
    }

    /// The width with at most `limit` seats after the answer, and the same work.
    fn within(self, limit: usize) -> Self {
        if self.last <= limit || limit == 0 {
            return self;
        }
        Self { last: limit, lingering: self.lingering.mul_f64(self.last as f64 / limit as f64), ..self }
    }
}

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
struct Waiting {
    id: u64,
    arrival_r: f64,
    width: Width,
    dispatch: oneshot::Sender<Ticket>,
    /// Told once the request has begun to wait.
    waiter: Option<Arc<Waiter>>,
}

/// The numbers of requests since the level is there, by their outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub dispatched: u64,
    /// Includes cancelled requests.
    pub rejected: u64,
    pub cancelled: u64,
}

/// A running request and its description.
#[derive(Clone, Debug)]
pub struct Running {
    queue: Option<usize>,
    pub width: Width,
    pub started: Instant,
    pub waiter: Arc<Waiter>,
}

/// A queue set at one moment.
pub struct SetState {
    pub queues: Vec<QueueState>,
    /// The running requests that are of no queue.
    pub queueless: Vec<Running>,
    pub is_idle: bool,
    pub waiting: usize,
    pub executing: usize,
    pub totals: Totals,
}

#[derive(Default)]
pub struct QueueState {
    pub waiting: Vec<(Width, Option<Arc<Waiter>>)>,
    /// The running requests that have said what they are.
    pub running: Vec<Running>,
    pub executing: usize,
    pub seats_in_use: usize,
    pub next_r: f64,
    pub work: f64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// The work of the waiting requests, in seat-seconds.
    work: f64,
    executing: usize,
    seats_in_use: usize,
    next_r: f64,
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

    fn queue_of(&mut self, ticket: &Ticket) -> Option<(usize, &mut Queue)> {
        let index = ticket.queue?;
        Some((index, self.queues.get_mut(index)?))
    }

    /// The queue, which gets a request. One that had none starts at the time of now.
    fn awaken(&mut self, index: usize) -> &mut Queue {
        let queue = self.queues.get_or_add(index);
        if queue.is_idle() {
            queue.next_r = self.r;
            self.active += 1;
        }
        queue
    }

    /// Notes that a request has left a queue.
    fn rest(&mut self, index: usize) {
        if self.queues.get(index).is_some_and(Queue::is_idle) {
            self.active -= 1;
            self.clear_away(index);
        }
    }

    fn clear_away(&mut self, index: usize) {
        if self.queues.get(index).is_some_and(Queue::is_empty) {
            self.queues.remove(index);
        }
    }

    /// Brings virtual time up to date.
    fn sync(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.synced).as_secs_f64();
        self.synced = self.synced.max(now);
        if self.active > 0 {
            self.r += self.requested.min(self.limit) as f64 / self.active as f64 * passed;
        }
    }

    /// The queue with the least waiting work among those of a hand.
    fn pick(&mut self, hand: &Hand) -> usize {
        let cards = hand.cards();
        let offset = self.enqueued % cards.len();
        self.enqueued = self.enqueued.wrapping_add(1);
        if self.waiting == 0 {
            return cards[offset];
        }
        let (mut best, mut least) = (cards[offset], f64::INFINITY);
        for turn in 0..cards.len() {
            let card = cards[(offset + turn) % cards.len()];
            let work = self.queues.get(card).map_or(0.0, |queue| queue.work);
            if work < least {
                (best, least) = (card, work);
            }
        }
        best
    }

    fn enqueue(&mut self, index: usize, width: Width) -> QueuedRequest {
        let (dispatch, dispatched) = oneshot::channel();
        self.ids += 1;
        let waiting = Waiting { id: self.ids, arrival_r: self.r, width, dispatch, waiter: None };
        let queue = self.awaken(index);
        queue.work += width.work();
        queue.waiting.push_back(waiting);
        queue.bound();
        self.waiting += 1;
        self.waiting_seats += width.seats();
        self.requested += width.seats();
        QueuedRequest { queue: index, id: self.ids, dispatched }
    }

    fn forget_waiting(&mut self, index: usize, width: Width) {
        self.waiting -= 1;
        self.waiting_seats -= width.seats();
        if let Some(queue) = self.queues.get_mut(index) {
            queue.work = if queue.waiting.is_empty() { 0.0 } else { queue.work - width.work() };
        }
    }

    /// Dispatches as many requests as there is room for.
    fn dispatch(&mut self, now: Instant) {
        while self.waiting > 0 && self.seats_in_use < self.limit {
            let Some((index, width)) = self.next_queue() else { return };
            if !self.accommodates(width.seats()) {
                return;
            }
            let next = self.queues.get_mut(index).and_then(|queue| queue.waiting.pop_front());
            let Some(waiting) = next else { return };
            self.robin = index;
            self.forget_waiting(index, width);
            let bounded = width.within(self.limit);
            self.requested -= width.seats() - bounded.seats();
            if let Some(queue) = self.queues.get_mut(index) {
                queue.run(bounded);
                queue.bound();
            }
            let ticket = self.run(Some(index), bounded, now);
            if let Some(waiter) = waiting.waiter {
                self.describe_running(&ticket, waiter);
            }
            if let Err(ticket) = waiting.dispatch.send(ticket) {
                // Whoever waited has gone.
                self.undo(&ticket, now);
            }
        }
    }

    /// The queue whose first request would end first, and what that request needs. The queue that was served last comes
    /// last among equals.
    fn next_queue(&self) -> Option<(usize, Width)> {
        let (mut best, mut earliest) = (None, f64::INFINITY);
        for (index, queue) in self.queues.behind(self.robin) {
            if let Some(head) = queue.waiting.front() {
                let end = queue.next_r + head.width.work();
                if end < earliest {
                    (best, earliest) = (Some((*index, head.width)), end);
                }
            }
        }
        best
    }

    fn accommodates(&self, seats: usize) -> bool {
        match self.discipline {
            Discipline::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// Counts a request that runs. Its queue has counted it already.
    fn run(&mut self, queue: Option<usize>, width: Width, now: Instant) -> Ticket {
        self.executing += 1;
        self.totals.dispatched += 1;
        self.seats_in_use += width.seats();
        self.observe(now);
        self.ids += 1;
        Ticket { id: self.ids, queue, width, started: now }
    }

    /// Takes back a dispatch that nobody has used.
    fn undo(&mut self, ticket: &Ticket, now: Instant) {
        self.executing -= 1;
        self.running.remove(&ticket.id);
        self.totals.dispatched -= 1;
        self.seats_in_use -= ticket.width.seats();
        let seats = ticket.width.seats();
        if let Some((index, queue)) = self.queue_of(ticket) {
            queue.executing -= 1;
            queue.seats_in_use -= seats;
            queue.next_r -= ticket.width.work();
            queue.bound();
            self.requested -= seats;
            self.rest(index);
        }
        self.observe(now);
    }

    fn observe(&mut self, now: Instant) {
        self.demand.set(self.seats_in_use + self.waiting_seats, now);
    }
}

/// Queues by their numbers, ascending: few of many are in use, and these come and go with single requests.
#[derive(Debug, Default)]
struct Queues(Vec<(usize, Queue)>);

impl Queues {
    fn at(&self, index: usize) -> Result<usize, usize> {
        self.0.binary_search_by_key(&index, |(index, _)| *index)
    }

    fn get(&self, index: usize) -> Option<&Queue> {
        self.at(index).ok().map(|at| &self.0[at].1)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut Queue> {
        self.at(index).ok().map(|at| &mut self.0[at].1)
    }

    fn get_or_add(&mut self, index: usize) -> &mut Queue {
        let at = self.at(index).unwrap_or_else(|at| {
            self.0.insert(at, (index, Queue::default()));
            at
        });
        &mut self.0[at].1
    }

    fn remove(&mut self, index: usize) {
        if let Ok(at) = self.at(index) {
            self.0.remove(at);
        }
    }

    /// All queues, those with larger numbers than this one first.
    fn behind(&self, index: usize) -> impl Iterator<Item = &(usize, Queue)> {
        let (until, behind) = self.0.split_at(self.0.partition_point(|(own, _)| *own <= index));
        behind.iter().chain(until)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Queue {
    /// Counts a request that runs.
    fn run(&mut self, width: Width) {
        self.executing += 1;
        self.seats_in_use += width.seats();
        self.next_r += width.work();
    }

    /// Whether nothing of it has to be known.
    fn is_empty(&self) -> bool {
        self.is_idle() && self.seats_in_use == 0
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }

    fn state(&self) -> QueueState {
        QueueState {
            waiting: self.waiting.iter().map(|own| (own.width, own.waiter.clone())).collect(),
            running: Vec::new(),
            executing: self.executing,
            seats_in_use: self.seats_in_use,
            next_r: self.next_r,
            work: self.work,
        }
    }

    /// No queue saves time from when it had nothing to do.
    fn bound(&mut self) {
        if let Some(head) = self.waiting.front() {
            self.next_r = self.next_r.max(head.arrival_r);
        }
    }
}

#[cfg(test)]
mod tests;
