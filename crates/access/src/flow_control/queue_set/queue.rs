//! One queue of a priority level, and the queues in use by their numbers.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{QueueState, Ticket};
use crate::flow_control::waiter::Waiter;
use crate::flow_control::width::Width;

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) arrival_r: f64,
    pub(super) width: Width,
    pub(super) dispatch: oneshot::Sender<Ticket>,
    /// Told once the request has begun to wait.
    pub(super) waiter: Option<Arc<Waiter>>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Waiting>,
    /// The work of the waiting requests, in seat-seconds.
    pub(super) work: f64,
    pub(super) executing: usize,
    pub(super) seats_in_use: usize,
    pub(super) next_r: f64,
}

impl Queue {
    /// Counts a request that runs.
    pub(super) fn run(&mut self, width: Width) {
        self.executing += 1;
        self.seats_in_use += width.seats();
        self.next_r += width.work();
    }

    /// Whether nothing of it has to be known.
    pub(super) fn is_empty(&self) -> bool {
        self.is_idle() && self.seats_in_use == 0
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }

    pub(super) fn state(&self) -> QueueState {
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
    pub(super) fn bound(&mut self) {
        if let Some(head) = self.waiting.front() {
            self.next_r = self.next_r.max(head.arrival_r);
        }
    }
}

/// Queues by their numbers, ascending: few of many are in use, and these come and go with single requests.
#[derive(Debug, Default)]
pub(super) struct Queues(Vec<(usize, Queue)>);

impl Queues {
    pub(super) fn at(&self, index: usize) -> Result<usize, usize> {
        self.0.binary_search_by_key(&index, |(index, _)| *index)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Queue> {
        self.at(index).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Queue> {
        self.at(index).ok().map(|at| &mut self.0[at].1)
    }

    pub(super) fn get_or_add(&mut self, index: usize) -> &mut Queue {
        let at = self.at(index).unwrap_or_else(|at| {
            self.0.insert(at, (index, Queue::default()));
            at
        });
        &mut self.0[at].1
    }

    pub(super) fn remove(&mut self, index: usize) {
        if let Ok(at) = self.at(index) {
            self.0.remove(at);
        }
    }

    /// All queues, those with larger numbers than this one first.
    pub(super) fn behind(&self, index: usize) -> impl Iterator<Item = &(usize, Queue)> {
        let (until, behind) = self.0.split_at(self.0.partition_point(|(own, _)| *own <= index));
        behind.iter().chain(until)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
