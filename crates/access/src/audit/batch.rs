//! Gathers events into batches, so that no request waits for their delivery.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::{Batching, Throttle, Truncation};
use super::delivery::{Delivery, Entry, Outlet};
use crate::tasks::Tasks;

/// The way into the buffer of a sink.
pub struct Batches<D: Delivery> {
    outlet: Arc<Outlet<D>>,
    /// `None` once the sink is closed.
    buffer: Mutex<Option<mpsc::Sender<D::Entry>>>,
    /// Cancelled when everything is delivered.
    ended: CancellationToken,
}

impl<D: Delivery> Batches<D> {
    pub fn start(
        outlet: Arc<Outlet<D>>,
        config: Batching,
        truncation: Option<Truncation>,
        tasks: &Tasks,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(config.buffer);
        let ended = CancellationToken::new();
        let gatherer = Gatherer {
            receiver,
            left: None,
            config,
            largest_size: truncation.map_or(usize::MAX, |truncation| truncation.batch_size),
        };
        tasks.spawn("audit-batches", gatherer.run(outlet.clone(), ended.clone()));
        Self { outlet, buffer: Mutex::new(Some(sender)), ended }
    }

    /// Puts an event into the buffer, unless that is full.
    pub fn add(&self, entry: D::Entry) {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match buffer.as_ref().map(|buffer| buffer.try_send(entry)) {
            Some(Ok(())) => return,
            Some(Err(mpsc::error::TrySendError::Full(_))) => "audit buffer queue blocked",
            Some(Err(mpsc::error::TrySendError::Closed(_))) | None => "audit backend shut down",
        };
        drop(buffer);
        self.outlet.losses.lost("buffered", 1, why);
    }

    /// Delivers what is buffered. What comes later is lost.
    pub async fn close(&self) {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ended.cancelled().await;
    }
}

/// Takes batches out of the buffer.
struct Gatherer<E> {
    receiver: mpsc::Receiver<E>,
    /// The entry that did not fit into the last batch.
    left: Option<E>,
    config: Batching,
    /// The most bytes of a batch.
    largest_size: usize,
}

impl<E: Entry> Gatherer<E> {
    async fn run<D: Delivery<Entry = E>>(mut self, outlet: Arc<Outlet<D>>, ended: CancellationToken) {
        let _end = ended.drop_guard();
        let mut pace = self.config.throttle.map(Pace::new);
        let under_way = TaskTracker::new();
        while let Some(batch) = self.next().await {
            if let Some(pace) = &mut pace {
                tokio::time::sleep_until(pace.next(Instant::now())).await;
            }
            if self.config.overlap {
                let outlet = outlet.clone();
                under_way.spawn(async move { outlet.deliver(batch).await });
            } else {
                outlet.deliver(batch).await;
            }
        }
        under_way.close();
        under_way.wait().await;
    }

    /// The next batch; `None` once the buffer is closed and empty.
    async fn next(&mut self) -> Option<Vec<E>> {
        let first = match self.left.take() {
            Some(left) => left,
            None => self.receiver.recv().await?,
        };
        let mut size = first.size();
        let mut batch = vec![first];
        let until = Instant::now() + self.config.wait;
        while batch.len() < self.config.largest {
            let Ok(Some(entry)) = tokio::time::timeout_at(until, self.receiver.recv()).await else { break };
            size += entry.size();
            if size > self.largest_size {
                self.left = Some(entry);
                break;
            }
            batch.push(entry);
        }
        Some(batch)
    }
}

/// A bucket of tokens: so many pass at once, and then so many per second.
struct Pace {
    interval: Duration,
    /// The time in which an empty bucket becomes full.
    capacity: Duration,
    /// When the bucket was, or will be, empty.
    empty_at: Instant,
}

impl Pace {
    fn new(throttle: Throttle) -> Self {
        let interval = Duration::from_secs_f32(1.0 / throttle.per_second);
        let capacity = interval * throttle.burst;
        let now = Instant::now();
        Self { interval, capacity, empty_at: now.checked_sub(capacity).unwrap_or(now) }
    }

    /// When what comes `now` may pass.
    fn next(&mut self, now: Instant) -> Instant {
        let full = now.checked_sub(self.capacity).unwrap_or(now);
        self.empty_at = self.empty_at.max(full) + self.interval;
        self.empty_at.max(now)
    }
}

#[cfg(test)]
mod tests;
