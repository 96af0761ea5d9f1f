//! Work that takes longer than other requests should wait for a thread of the runtime.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::ready;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task;
use tokio_util::sync::PollSemaphore;

/// From how many bytes on an object is long work: reading, checking and writing so many takes some milliseconds.
pub const LONG: usize = 128 * 1024;

/// Runs work that takes long, while another thread takes over the tasks that this one had.
pub fn run<R>(work: impl FnOnce() -> R) -> R {
    let others = Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if others { task::block_in_place(work) } else { work() }
}

/// Who may do long work at a time: half of the processors, so that short requests get the rest.
#[derive(Clone, Debug)]
pub struct Lanes(Arc<Semaphore>);

impl Default for Lanes {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self(Arc::new(Semaphore::new(processors.div_ceil(2))))
    }
}

impl Lanes {
    /// Runs work on so many bytes: at once if that does not take long, else when a lane is free.
    pub async fn run<R>(&self, bytes: usize, work: impl FnOnce() -> R) -> R {
        if bytes < LONG {
            return work();
        }
        // They are never closed.
        let _lane: Option<SemaphorePermit<'_>> = self.0.acquire().await.ok();
        run(work)
    }

    /// A future whose steps take long from when `is_long` is set. No lane is held while it waits for something.
    pub async fn drive<F: Future>(&self, mut work: Pin<&mut F>, is_long: &AtomicBool) -> F::Output {
        let mut lanes: Option<PollSemaphore> = None;
        poll_fn(|cx| {
            if !is_long.load(Ordering::Relaxed) {
                return work.as_mut().poll(cx);
            }
            let lanes = lanes.get_or_insert_with(|| PollSemaphore::new(self.0.clone()));
            let _lane = ready!(lanes.poll_acquire(cx));
            run(|| work.as_mut().poll(cx))
        })
        .await
    }
}

/// Steps of a scan between two breaks: some milliseconds at most. A step is to look at an object without decoding it.
const TURN: usize = 4096;
/// Bytes that are decoded in one step.
const BYTES: usize = 64;

/// A scan's turn on a thread of the runtime, of which others want to have the next.
#[derive(Debug)]
pub struct Turn {
    left: usize,
}

impl Default for Turn {
    fn default() -> Self {
        Self { left: TURN }
    }
}

impl Turn {
    /// Takes steps. Whether the turn is over.
    pub fn take(&mut self, steps: usize) -> bool {
        self.left = self.left.saturating_sub(steps);
        self.left == 0
    }

    /// Lets others have theirs.
    pub async fn end(&mut self) {
        *self = Self::default();
        task::yield_now().await;
    }
}

/// Steps that decoding so many bytes takes.
pub fn decoding(bytes: usize) -> usize {
    16 + bytes / BYTES
}

#[cfg(test)]
mod tests;
