//! Batches the work of an HTTP/2 connection: several wake-ups become one poll, several frames one write.
//!
//! Every event of every watch wakes the connection's task, and tokio runs a task next that was just woken. Without
//! batching, a connection with a hundred watches would run a hundred times for one event, and since the h2 crate
//! flushes after every frame of 256 bytes or more, each run would end with a TLS record and a system call.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};

/// A stream whose writes are sent when the future that [`Gathered::drive`] polls has nothing left to do.
pub struct Gathered<S> {
    /// Used by only one task, so the lock is never contended.
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
    /// everything that it has written is sent. If `goes_first` says so, the future is polled at once.
    pub async fn drive<F: Future>(self, future: F, goes_first: impl Fn() -> bool) -> F::Output {
        let mut future = pin!(future);
        let turn = Arc::new(Turn { due: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(turn.clone());
        let mut rest = pin!(None);
        poll_fn(|context| {
            turn.task.register(context.waker());
            if rest.is_none() && !goes_first() {
                rest.set(Some(tokio::task::yield_now()));
            }
            if rest.as_mut().as_pin_mut().is_some_and(|rest| rest.poll(context).is_pending()) {
                return Poll::Pending;
            }
            rest.set(None);
            turn.due.store(false, Ordering::Release);
            let mut context = Context::from_waker(&waker);
            let polled = future.as_mut().poll(&mut context);
            if polled.is_pending() {
                // The future meets the error at its next write or read.
                let _ = Pin::new(&mut *self.lock()).poll_flush(&mut context);
            }
            polled
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<S>> {
        self.stream.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Wakes the task at most once until its next turn.
struct Turn {
    due: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.due.swap(true, Ordering::AcqRel) {
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
