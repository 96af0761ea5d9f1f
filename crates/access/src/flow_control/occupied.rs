//! The requests of a FlowSchema that wait or run at its level now, and their seats.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metrics::FlowMetrics;

/// The requests of a FlowSchema that wait or run, and their seats. Gauges get these numbers when somebody reads metrics.
#[derive(Debug, Default)]
pub struct Occupied {
    waiting: AtomicUsize,
    executing: AtomicUsize,
    seats: AtomicUsize,
}

impl Occupied {
    /// Counts a request that waits, as long as the result lives.
    pub fn wait(self: &Arc<Self>) -> Waits {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waits(self.clone())
    }

    /// Counts a request that runs on so many seats.
    pub fn run(&self, seats: usize) {
        self.executing.fetch_add(1, Ordering::Relaxed);
        self.seats.fetch_add(seats, Ordering::Relaxed);
    }

    /// Counts a request as ended. It may keep its seats for a while.
    pub fn end(&self) {
        self.executing.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn release(&self, seats: usize) {
        self.seats.fetch_sub(seats, Ordering::Relaxed);
    }

    /// Puts the numbers into the gauges.
    pub fn observe(&self, metrics: &FlowMetrics) {
        let [waiting, executing, seats] =
            [&self.waiting, &self.executing, &self.seats].map(|number| number.load(Ordering::Relaxed) as f64);
        metrics.observe(waiting, executing, seats);
    }
}

/// A request that waits.
pub struct Waits(Arc<Occupied>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
