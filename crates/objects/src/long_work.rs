//! Runs work that takes too long for a thread of the runtime.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::ready;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task;

/// From this size in bytes on, processing an object is long work: reading, checking and writing it takes some
/// milliseconds.
pub const LONG: usize = 128 * 1024;

/// Runs long work. The other tasks of this thread move to another one.
pub fn run<R>(work: impl FnOnce() -> R) -> R {
    let others = Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if others { task::block_in_place(work) } else { work() }
}

/// Limits concurrent long work to half of the processors, so that short requests get the rest. The lanes of a process are
/// shared by its clusters: each has a [part](Lanes::part) of them, so that no more of its work waits for a lane of the process
/// than there are lanes, and a flood in one cluster does not keep the others waiting behind all of it.
#[derive(Clone, Debug)]
pub struct Lanes {
    own: Arc<Semaphore>,
    /// The lanes of the process; `None` for these themselves.
    process: Option<Arc<Semaphore>>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { own: Self::of_processors(), process: None }
    }
}

/// A lane in use. It is free again when this is dropped.
struct Lane {
    _own: Option<OwnedSemaphorePermit>,
    _process: Option<OwnedSemaphorePermit>,
}

impl Lanes {
    /// The lanes of one cluster of the process whose lanes these are.
    pub fn part(&self) -> Self {
        Self { own: Self::of_processors(), process: Some(self.own.clone()) }
    }

    fn of_processors() -> Arc<Semaphore> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Arc::new(Semaphore::new(processors.div_ceil(2)))
    }

    /// Returns when a lane is free. The semaphores are never closed.
    async fn lane(self) -> Lane {
        let own = self.own.acquire_owned().await.ok();
        let process = match self.process {
            Some(process) => process.acquire_owned().await.ok(),
            None => None,
        };
        Lane { _own: own, _process: process }
    }

    /// Runs work on this many bytes: at once if they are few, otherwise when a lane is free.
    pub async fn run<R>(&self, bytes: usize, work: impl FnOnce() -> R) -> R {
        if bytes < LONG {
            return work();
        }
        let _lane = self.clone().lane().await;
        run(work)
    }

    /// Drives a future whose polls take long once `is_long` is set. While the future waits, it holds no lane.
    pub async fn drive<F: Future>(&self, mut work: Pin<&mut F>, is_long: &AtomicBool) -> F::Output {
        let mut waiting: Option<Pin<Box<dyn Future<Output = Lane> + Send>>> = None;
        poll_fn(|cx| {
            if !is_long.load(Ordering::Relaxed) {
                return work.as_mut().poll(cx);
            }
            let lane = waiting.get_or_insert_with(|| Box::pin(self.clone().lane()));
            let _lane = ready!(lane.as_mut().poll(cx));
            waiting = None;
            run(|| work.as_mut().poll(cx))
        })
        .await
    }
}

/// How many steps a scan takes between two yields: some milliseconds at most. A step is a look at an object without
/// decoding it.
const TURN: usize = 4096;
/// How many bytes are decoded in one step.
const BYTES: usize = 64;

/// A scan's turn on a thread of the runtime. After it, other tasks must run.
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
    /// Takes steps. Returns whether the turn is over.
    pub fn take(&mut self, steps: usize) -> bool {
        self.left = self.left.saturating_sub(steps);
        self.left == 0
    }

    /// Lets other tasks run, and starts a new turn.
    pub async fn end(&mut self) {
        *self = Self::default();
        task::yield_now().await;
    }
}

/// How long parts of unknown length may take before other tasks must run.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Work in parts whose length nobody knows before, such as expressions that users have written.
#[derive(Debug)]
pub struct Stretch {
    began: Instant,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { began: Instant::now() }
    }
}

impl Stretch {
    /// Lets other tasks run if the parts since the last time have taken long. A request whose time is over ends here.
    pub async fn pause(&mut self) {
        if self.began.elapsed() >= AT_ONCE {
            task::yield_now().await;
            *self = Self::default();
        }
    }
}

/// The number of steps that decoding this many bytes takes.
pub fn decoding(bytes: usize) -> usize {
    16 + bytes / BYTES
}

#[cfg(test)]
mod tests;
