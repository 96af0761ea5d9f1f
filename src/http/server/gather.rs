//! Batches the work of an HTTP/2 connection: several wake-ups become one poll, several frames one write.
//!
//! Every event of every watch wakes the connection's task, and tokio runs a task next that was just woken. Without
//! batching, a connection with a hundred watches would run a hundred times for one event, and since the h2 crate
//! flushes after every frame of 256 bytes or more, each run would end with a TLS record and a system call.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};

/// A stream whose writes are sent when the future that [`Gathered::drive`] polls has nothing left to do.
pub struct Gathered<S> {
    /// The stream, used by only one task, so the lock is never contended.
    stream: Arc<Mutex<BufWriter<S>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gathered<S> {
    /// Writes of at least `capacity` bytes are not copied.
    pub fn new(stream: S, capacity: usize) -> Self {
        Self { stream: Arc::new(Mutex::new(BufWriter::with_capacity(capacity, stream))) }
    }

    /// Another handle to the same stream: one is driven, the other is written to.
    pub fn handle(&self) -> Self {
        Self { stream: self.stream.clone() }
    }

    /// Polls the future that writes. After a wake-up, all other ready tasks run first; when the future waits again,
    /// everything that it has written is sent. If `goes_first` says so, the future is polled at once; it is told whether the
    /// thread has driven no other future since.
    ///
    /// A future that goes first and wakes itself, since it answers requests itself, is polled again at once, a few times.
    /// Neither waits for other tasks without need: tokio would wake another thread to look for work, which costs
    /// more than a short request, and the connection would change its processor.
    pub async fn drive<F: Future>(self, future: F, goes_first: impl Fn(bool) -> bool) -> F::Output {
        let mut future = pin!(future);
        let turn = Arc::new(Turn { state: AtomicU8::new(DUE), task: AtomicWaker::new() });
        let waker = Waker::from(turn.clone());
        let mut rest = pin!(None);
        poll_fn(|context| {
            turn.task.register(context.waker());
            let own = Arc::as_ptr(&turn).addr();
            let is_alone = DRIVEN.replace(own) == own && rest.is_none();
            if rest.is_none() && !goes_first(is_alone) {
                rest.set(Some(tokio::task::yield_now()));
            }
            if rest.as_mut().as_pin_mut().is_some_and(|rest| rest.poll(context).is_pending()) {
                return Poll::Pending;
            }
            rest.set(None);
            let mut context_of_turn = Context::from_waker(&waker);
            for _ in 0..POLLS {
                turn.state.store(POLLED, Ordering::Release);
                let polled = future.as_mut().poll(&mut context_of_turn);
                if polled.is_ready() {
                    return polled;
                }
                // The future meets the error at its next write or read.
                let _ = Pin::new(&mut *self.lock()).poll_flush(&mut context_of_turn);
                let was_woken = turn.state.fetch_and(!POLLED, Ordering::AcqRel) & DUE != 0;
                if !was_woken {
                    return Poll::Pending;
                }
                if !goes_first(is_alone) {
                    break;
                }
            }
            rest.set(Some(tokio::task::yield_now()));
            let _ = rest.as_mut().as_pin_mut().is_some_and(|rest| rest.poll(context).is_ready());
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<S>> {
        self.stream.lock().unwrap_or_else(|e| e.into_inner())
    }
}

thread_local! {
    /// The turn of the future that the thread has driven last.
    static DRIVEN: Cell<usize> = const { Cell::new(0) };
}

/// How often a future is polled that wakes itself, before others run.
const POLLS: u32 = 3;

/// The future has been woken, and is to be polled.
const DUE: u8 = 1;
/// The future is being polled: whoever polls looks afterwards whether it was woken.
const POLLED: u8 = 2;

/// Wakes the task at most once until its next turn.
struct Turn {
    /// [`DUE`], [`POLLED`], both or neither.
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(DUE, Ordering::AcqRel) == 0 {
            self.task.wake();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().is_write_vectored()
    }

    /// Does nothing: [`Gathered::drive`] flushes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::sync::mpsc;

    use super::*;

    /// Drives a future that wakes itself in its first polls; answers how often it is polled by the time another task runs.
    async fn polls_until_others_run(wakes: u32, goes_first: bool) -> u32 {
        let polls = Arc::new(AtomicU32::new(0));
        let counted = polls.clone();
        let future = poll_fn(move |context| match counted.fetch_add(1, Ordering::Relaxed) {
            polled if polled < wakes => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        });
        let driven = tokio::spawn(Gathered::new(tokio::io::empty(), 16).drive(future, move |_| goes_first));
        let seen = polls.clone();
        let other = tokio::spawn(async move { seen.load(Ordering::Relaxed) });
        let seen = other.await.expect("no panic");
        driven.await.expect("it is polled until it ends");
        assert_eq!(polls.load(Ordering::Relaxed), wakes + 1);
        seen
    }

    #[tokio::test]
    async fn what_wakes_itself_is_polled_to_its_end() {
        assert_eq!(polls_until_others_run(POLLS - 1, true).await, POLLS);
        assert_eq!(polls_until_others_run(10 * POLLS, true).await, POLLS, "others run, too");
        assert_eq!(polls_until_others_run(1, false).await, 0, "others run first");
    }

    #[tokio::test]
    async fn a_future_is_told_whether_its_thread_drives_others() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let drive = |name: u32| {
            let (wake, mut woken) = mpsc::unbounded_channel::<()>();
            let future = async move { while woken.recv().await.is_some() {} };
            let told = told.clone();
            let note = move |is_alone| {
                told.lock().expect("a lock").push((name, is_alone));
                false
            };
            tokio::spawn(Gathered::new(tokio::io::empty(), 16).drive(future, note));
            wake
        };
        let others_run = async || {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        };
        let first = drive(1);
        others_run().await;
        for _ in 0..2 {
            first.send(()).expect("it is driven");
            others_run().await;
        }
        let second = drive(2);
        for wake in [&first, &first, &second] {
            others_run().await;
            wake.send(()).expect("it is driven");
        }
        others_run().await;
        let want = [(1, false), (1, true), (1, true), (2, false), (1, false), (1, true), (2, false)];
        assert_eq!(*told.lock().expect("a lock"), want);
    }
}
