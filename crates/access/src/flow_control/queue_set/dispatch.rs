//! The order in which requests of a queue set get seats.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::queue::{Queue, Waiting};
use super::{Discipline, QueueSet, QueuedRequest, Ticket};
use crate::flow_control::dealer::Hand;
use crate::flow_control::width::Width;

impl QueueSet {
    pub(super) fn queue_of(&mut self, ticket: &Ticket) -> Option<(usize, &mut Queue)> {
        let index = ticket.queue?;
        Some((index, self.queues.get_mut(index)?))
    }

    /// The queue, which gets a request. One that had none starts at the time of now.
    pub(super) fn awaken(&mut self, index: usize) -> &mut Queue {
        let queue = self.queues.get_or_add(index);
        if queue.is_idle() {
            queue.next_r = self.r;
            self.active += 1;
        }
        queue
    }

    /// Notes that a request has left a queue.
    pub(super) fn rest(&mut self, index: usize) {
        if self.queues.get(index).is_some_and(Queue::is_idle) {
            self.active -= 1;
            self.clear_away(index);
        }
    }

    pub(super) fn clear_away(&mut self, index: usize) {
        if self.queues.get(index).is_some_and(Queue::is_empty) {
            self.queues.remove(index);
        }
    }

    /// Brings virtual time up to date.
    pub(super) fn sync(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.synced).as_secs_f64();
        self.synced = self.synced.max(now);
        if self.active > 0 {
            self.r += self.requested.min(self.limit) as f64 / self.active as f64 * passed;
        }
    }

    /// The queue with the least waiting work among those of a hand.
    pub(super) fn pick(&mut self, hand: &Hand) -> usize {
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

    pub(super) fn enqueue(&mut self, index: usize, width: Width) -> QueuedRequest {
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

    pub(super) fn forget_waiting(&mut self, index: usize, width: Width) {
        self.waiting -= 1;
        self.waiting_seats -= width.seats();
        if let Some(queue) = self.queues.get_mut(index) {
            queue.work = if queue.waiting.is_empty() { 0.0 } else { queue.work - width.work() };
        }
    }

    /// Dispatches as many requests as there is room for.
    pub(super) fn dispatch(&mut self, now: Instant) {
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
    pub(super) fn next_queue(&self) -> Option<(usize, Width)> {
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

    pub(super) fn accommodates(&self, seats: usize) -> bool {
        match self.discipline {
            Discipline::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// Counts a request that runs. Its queue has counted it already.
    pub(super) fn run(&mut self, queue: Option<usize>, width: Width, now: Instant) -> Ticket {
        self.executing += 1;
        self.totals.dispatched += 1;
        self.seats_in_use += width.seats();
        self.observe(now);
        self.ids += 1;
        Ticket { id: self.ids, queue, width, started: now }
    }

    /// Takes back a dispatch that nobody has used.
    pub(super) fn undo(&mut self, ticket: &Ticket, now: Instant) {
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

    pub(super) fn observe(&mut self, now: Instant) {
        self.demand.set(self.seats_in_use + self.waiting_seats, now);
    }
}
