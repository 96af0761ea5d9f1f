//! A limit to the bytes that connections of HTTP/2 send before they have shown a credential.
//!
//! The head of a request is held whole until it has come, and there may be many at once. What such a connection reads beyond
//! [`FREE`] waits for one of a few places, which all of them share.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection_state::Connection;
use crate::layered::Layer;

/// How many bytes each connection may read without a credential.
pub const FREE: usize = 64 << 10;
/// How many connections without a credential may read more than that at the same time.
pub const PLACES: usize = 16;

/// The layer of a stream that counts what it reads while its connection has shown no credential.
pub struct FirstReads {
    connection: Arc<Connection>,
    places: Arc<Semaphore>,
    read: usize,
    place: Place,
}

enum Place {
    /// No place is needed yet, or any more.
    None,
    Waiting(BoxFuture<'static, Option<OwnedSemaphorePermit>>),
    Taken {
        _permit: Option<OwnedSemaphorePermit>,
    },
}

impl FirstReads {
    pub fn new(connection: Arc<Connection>, places: Arc<Semaphore>) -> Self {
        Self { connection, places, read: 0, place: Place::None }
    }

    fn poll_place(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.read <= FREE {
            return Poll::Ready(());
        }
        if let Place::None = self.place {
            let place = self.places.clone().acquire_owned();
            self.place = Place::Waiting(place.map(Result::ok).boxed());
        }
        if let Place::Waiting(place) = &mut self.place {
            // Whoever shows a credential meanwhile is woken.
            let _permit = ready!(place.poll_unpin(context));
            self.place = Place::Taken { _permit };
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer<S> for FirstReads {
    fn poll_read(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.connection.is_authenticated() {
            self.place = Place::None;
            return stream.poll_read(context, buffer);
        }
        ready!(self.poll_place(context));
        let before = buffer.filled().len();
        let read = stream.poll_read(context, buffer);
        self.read += buffer.filled().len() - before;
        read
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::super::turns::Turns;
    use super::*;
    use crate::layered::Layered;

    const HEAD: usize = 256 << 10;
    const AT_ONCE: usize = 16 << 10;

    /// A connection, the peer of which has sent a long head.
    struct Peer {
        connection: Arc<Connection>,
        reads: Layered<DuplexStream, FirstReads>,
        _peer: DuplexStream,
    }

    impl Peer {
        async fn new(places: &Arc<Semaphore>) -> Self {
            let (stream, mut peer) = duplex(2 * HEAD);
            peer.write_all(&vec![b'x'; HEAD]).await.expect("room");
            let turns = Arc::new(Turns::new(Default::default()));
            let connection = Arc::new(Connection::accepted_at(1, turns, Arc::new(AtomicUsize::new(0))));
            let reads = Layered { stream, layer: FirstReads::new(connection.clone(), places.clone()) };
            Self { connection, reads, _peer: peer }
        }

        /// How much of the head is read without waiting.
        fn read(&mut self) -> usize {
            let mut buffer = vec![0; AT_ONCE];
            let mut all = 0;
            while let Some(read) = self.reads.read(&mut buffer).now_or_never() {
                all += read.expect("read");
            }
            all
        }
    }

    #[tokio::test]
    async fn a_long_head_waits_for_a_place() {
        let places = Arc::new(Semaphore::new(1));
        let mut first = Peer::new(&places).await;
        let (mut second, mut third) = (Peer::new(&places).await, Peer::new(&places).await);
        assert_eq!(first.read(), HEAD);
        for waiting in [&mut second, &mut third] {
            let read = waiting.read();
            assert!((FREE..=FREE + AT_ONCE).contains(&read), "{read}");
            assert_eq!(waiting.read(), 0);
        }
        third.connection.set_authenticated();
        assert!(third.read() > HEAD / 2, "it has shown a credential");
        drop(first);
        assert!(second.read() > HEAD / 2, "the place is free");
    }
}
