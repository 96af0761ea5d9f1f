//! Debts of a connection, which are settled before it sends: the audit events of its answers have to be stored. Answers that
//! are sent together are settled together, which costs one write of the audit log instead of one for each.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::layered::Layer;

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

/// The layer of a stream that sends nothing while something is owed.
pub struct Settling {
    debts: Arc<Debts>,
    settling: Option<BoxFuture<'static, ()>>,
}

impl Settling {
    pub fn new(debts: Arc<Debts>) -> Self {
        Self { debts, settling: None }
    }
}

/// Settles the debts of answers that are never sent: what they tell of has happened all the same.
impl Drop for Settling {
    fn drop(&mut self) {
        drop(self.debts.settle());
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer<S> for Settling {
    fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<()> {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::sync::oneshot;

    use super::*;
    use crate::layered::Layered;

    /// A stream that settles, and its peer.
    fn settled(debts: &Arc<Debts>) -> (Layered<DuplexStream, Settling>, DuplexStream) {
        let (stream, peer) = duplex(16);
        (Layered { stream, layer: Settling::new(debts.clone()) }, peer)
    }

    async fn sent(mut peer: DuplexStream) -> String {
        let mut text = String::new();
        peer.read_to_string(&mut text).await.expect("read");
        text
    }

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
        let (mut stream, peer) = settled(&debts);
        stream.write_all(b"a").await.expect("written");
        assert_eq!(log.asked.load(Ordering::Relaxed), 0, "nothing is owed");
        for _ in 0..3 {
            debts.owe(|| log.clone());
        }
        stream.write_all(b"b").await.expect("written");
        stream.write_all(b"c").await.expect("written");
        drop(stream);
        assert_eq!((log.asked.load(Ordering::Relaxed), &*sent(peer).await), (1, "abc"));
    }

    #[tokio::test]
    async fn nothing_is_sent_before_it_is_settled() {
        let (log, debts) = (Arc::new(Log::default()), Arc::new(Debts::default()));
        let (stored, slow) = oneshot::channel();
        *log.slow.lock().expect("a lock") = Some(slow);
        debts.owe(|| log.clone());
        let (mut stream, mut peer) = settled(&debts);
        assert!(stream.write_all(b"a").now_or_never().is_none());
        assert!(peer.read_u8().now_or_never().is_none());
        // Owed while the first is being stored.
        debts.owe(|| log.clone());
        stored.send(()).expect("somebody waits");
        stream.write_all(b"a").await.expect("written");
        drop(stream);
        assert_eq!((log.asked.load(Ordering::Relaxed), &*sent(peer).await), (2, "a"));
    }

    #[test]
    fn a_connection_that_ends_settles() {
        let (log, debts) = (Arc::new(Log::default()), Arc::new(Debts::default()));
        debts.owe(|| log.clone());
        drop(settled(&debts));
        assert_eq!(log.asked.load(Ordering::Relaxed), 1);
    }
}
