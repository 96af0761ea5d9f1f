//! The progress of a response, as the sweep of connections sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use tokio::task::Id;

use crate::metrics::RequestMetrics;

/// The progress of a response, as the sweep sees it.
#[derive(Debug)]
pub struct Delivery {
    /// The tick at which the last piece was passed on; 0 while the reader waits for the next piece.
    waiting_since: AtomicU64,
    /// The tick at which the response's time is over.
    until: u64,
    task: Option<(Id, Waker)>,
    is_reset: AtomicBool,
    /// How many bytes it holds: all of it if its length is known, else the last piece.
    bytes: AtomicUsize,
    metrics: Option<Arc<RequestMetrics>>,
}

impl Delivery {
    /// A response that holds these bytes, and whose time is over at the tick `until`.
    pub fn new(
        until: u64,
        metrics: Option<Arc<RequestMetrics>>,
        task: Option<(Id, Waker)>,
        bytes: usize,
    ) -> Self {
        Self {
            waiting_since: AtomicU64::new(0),
            until,
            task,
            is_reset: AtomicBool::new(false),
            bytes: AtomicUsize::new(bytes),
            metrics,
        }
    }

    /// The limit that the response has exceeded.
    pub fn overdue(&self, now: u64, patience: u64) -> Option<&'static str> {
        let since = self.waiting_since.load(Ordering::Relaxed);
        match () {
            () if now > self.until => Some("response-time"),
            () if since > 0 && now.saturating_sub(since) > patience => Some("response-progress"),
            () => None,
        }
    }

    /// Whether the reader has taken nothing since the last tick.
    pub fn is_stalled(&self, now: u64) -> bool {
        let since = self.waiting_since.load(Ordering::Relaxed);
        since > 0 && now.saturating_sub(since) > 1 && !self.is_reset()
    }

    pub fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// Notes how many bytes the response holds.
    pub fn hold(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Marks the response as reset. The first call returns the task to stop.
    pub fn reset(&self) -> Option<Id> {
        let (task, _) = self.task.as_ref()?;
        if self.is_reset.swap(true, Ordering::Relaxed) {
            return None;
        }
        if let Some(metrics) = &self.metrics {
            metrics.aborted();
        }
        Some(*task)
    }

    /// The task that was stopped because of this response.
    pub fn reset_task(&self) -> Option<Id> {
        let (task, _) = self.task.as_ref()?;
        self.is_reset().then_some(*task)
    }

    pub fn wake(&self) {
        if let Some((_, waker)) = &self.task {
            waker.wake_by_ref();
        }
    }

    pub fn asked(&self) {
        self.waiting_since.store(0, Ordering::Relaxed);
    }

    pub fn handed_over(&self, now: u64) {
        self.waiting_since.store(now, Ordering::Relaxed);
    }
}
