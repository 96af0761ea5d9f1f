//! Debts of a connection, which are settled before it sends: the audit events of its answers have to be stored. Answers that
//! are sent together are settled together, which costs one write of the audit log instead of one for each.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The audit log to which connections owe events.
pub trait Creditor: Send + Sync {
    /// Stores everything that was owed before the call. `None` means that it is stored.
    fn settle(&self) -> Option<BoxFuture<'static, ()>>;
}

/// The debts of a connection's answers.
#[derive(Default)]
pub struct Debts {
    /// Set before an answer is given to the connection, whose next write clears it.
    is_owing: AtomicBool,
    /// The one creditor of the server.
    creditor: OnceLock<Arc<dyn Creditor>>,
}

impl Debts {
    /// Notes that something has to be stored before the next bytes are sent.
    pub fn owe<C: Creditor + 'static>(&self, creditor: impl FnOnce() -> Arc<C>) {
        self.creditor.get_or_init(|| creditor());
        self.is_owing.store(true, Ordering::Release);
    }

    fn settle(&self) -> Option<BoxFuture<'static, ()>> {
        // Most writes owe nothing, and a look costs less than an exchange.
        if !self.is_owing.load(Ordering::Acquire) || !self.is_owing.swap(false, Ordering::AcqRel) {
            return None;
        }
        self.creditor.get()?.settle()
    }
}

impl fmt::Debug for Debts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Debts").field(&self.is_owing).finish()
    }
}

/// A stream that sends nothing while something is owed.
pub struct Settled<S> {
    stream: S,
    debts: Arc<Debts>,
    settling: Option<BoxFuture<'static, ()>>,
}

impl<S> Settled<S> {
    pub fn new(stream: S, debts: Arc<Debts>) -> Self {
        Self { stream, debts, settling: None }
    }

    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(settling) = &mut self.settling {
                ready!(settling.poll_unpin(context));
            }
            // What was added while somebody else was writing is owed, too.
            self.settling = self.debts.settle();
            if self.settling.is_none() {
                return Poll::Ready(());
            }
        }
    }
}

/// Settles the debts of answers that are never sent: what they tell of has happened all the same.
impl<S> Drop for Settled<S> {
    fn drop(&mut self) {
        drop(self.debts.settle());
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Settled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_settled(context));
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_settled(context));
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Settled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use tokio::io::AsyncWriteExt as _;
    use tokio::sync::oneshot;

    use super::*;

    /// Counts how often it is asked, and takes its time if it is given a receiver.
    #[derive(Default)]
    struct Log {
        asked: AtomicUsize,
        slow: Mutex<Option<oneshot::Receiver<()>>>,
    }

    impl Creditor for Log {
        fn settle(&self) -> Option<BoxFuture<'static, ()>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let slow = self.slow.lock().expect("a lock").take()?;
            Some(slow.map(drop).boxed())
        }
    }

    #[tokio::test]
    async fn answers_that_leave_together_are_settled_together() {
        let (log, debts) = (Arc::new(Log::default()), Arc::new(Debts::default()));
        let mut sent = Settled::new(Vec::new(), debts.clone());
        sent.write_all(b"a").await.expect("written");
        assert_eq!(log.asked.load(Ordering::Relaxed), 0, "nothing is owed");
        for _ in 0..3 {
            debts.owe(|| log.clone());
        }
        sent.write_all(b"b").await.expect("written");
        sent.write_all(b"c").await.expect("written");
        assert_eq!((log.asked.load(Ordering::Relaxed), &*sent.stream), (1, &b"abc"[..]));
    }

    #[tokio::test]
    async fn nothing_is_sent_before_it_is_settled() {
        let (log, debts) = (Arc::new(Log::default()), Arc::new(Debts::default()));
        let (stored, slow) = oneshot::channel();
        *log.slow.lock().expect("a lock") = Some(slow);
        debts.owe(|| log.clone());
        let mut sent = Settled::new(Vec::new(), debts.clone());
        assert!(sent.write_all(b"a").now_or_never().is_none());
        assert_eq!(&*sent.stream, b"");
        // Owed while the first is being stored.
        debts.owe(|| log.clone());
        stored.send(()).expect("somebody waits");
        sent.write_all(b"a").await.expect("written");
        assert_eq!((log.asked.load(Ordering::Relaxed), &*sent.stream), (2, &b"a"[..]));
    }

    #[test]
    fn a_connection_that_ends_settles() {
        let (log, debts) = (Arc::new(Log::default()), Arc::new(Debts::default()));
        debts.owe(|| log.clone());
        drop(Settled::new(Vec::<u8>::new(), debts));
        assert_eq!(log.asked.load(Ordering::Relaxed), 1);
    }
}
